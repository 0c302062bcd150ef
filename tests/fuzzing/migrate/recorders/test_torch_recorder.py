"""The recorder of torch in a process of its own: what a script calls, and what it does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fuzzing.backends.shared import torch_programs
from fuzzing.cases import Recipe, Tensor, TestCase, TorchCall
from fuzzing.migrate.recorders import recording
from fuzzing.migrate.recorders.recording import Recording
from fuzzing.migrate.sources import Skip

pytestmark = pytest.mark.compiler_torch_eager

SCRIPT = """
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
x = torch.arange(24.0).reshape(2, 3, 4)

def functions():
    torch.add(x, x, alpha=2)
    torch.add(x + 1, x)                 # other elements, one argument less
    torch.add(x * 3, x)                 # the same instance
    F.softmax(x, dim=-1)
    torch.linalg.vector_norm(x, ord=2)
    torch.sub(x, 1); torch.sub(x, 1.0)  # two instances
    x.transpose(0, 1).mul_(2)           # told before it is written to
    x.mT
    1 - x
    torch.rand(3)
    torch.empty(3)
    torch.cat([x, x[:1]], dim=0)
    torch.cumsum(torch.zeros(300, 300), 0)

def failing():
    for value in (torch.zeros(3, 3), torch.eye(3)):
        try:
            torch.linalg.inv(value)     # fails first, then succeeds: kept as it succeeds
        except RuntimeError:
            pass

def modules():
    wide, narrow = nn.Linear(4, 5), nn.Linear(4, 2)
    wide(x)                             # of the two, the one called
    nn.Sequential(nn.Conv1d(3, 2, 1), nn.ReLU())(x)
    nn.CrossEntropyLoss(weight=torch.tensor([0.25, 0.5, 1.0]))(torch.ones(2, 3), torch.tensor([0, 2]))
    nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1)(x)
    nn.Dropout()(x)
    copy.deepcopy(nn.Hardshrink(0.25))(x)   # nobody saw how it was made
    class Mine(nn.Linear):
        def forward(self, given):
            return torch.tanh(super().forward(given))
    Mine(4, 3)(x)                       # a test's own class: what it calls

def strange():
    torch.vmap(torch.sinh)(x)
    torch.jit.trace(torch.cosh, (x,))
    torch.compile(lambda given: torch.erf(given), backend="eager", fullgraph=True)(x)
    torch.testing.assert_close(x, x.clone())
    x.apply_(lambda number: number)
    x.numel(), x.shape, x.tolist(), str(x), x.dim(), torch.is_tensor(x)

functions(); failing(); modules(); strange()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    script = tmp_path_factory.mktemp("script") / "script.py"
    script.write_text(SCRIPT)
    return recording.record("torch", [sys.executable, "-W", "ignore", str(script)], script.parent)


def cases(recorded: Recording, api: str) -> list[TestCase]:
    found = [item for item in recorded.items if isinstance(item, TestCase)]
    return [case for case in found if call(case).api == api]


def call(case: TestCase) -> TorchCall:
    assert isinstance(case.program, TorchCall)
    return case.program


def text(case: TestCase) -> str:
    return call(case).source()


def only(recorded: Recording, api: str) -> TestCase:
    [case] = cases(recorded, api)
    return case


def test_the_script_ends_as_without_us_and_breaks_nothing_of_ours(recorded: Recording) -> None:
    assert recorded.exit_code == 0
    assert recorded.processes == 1
    assert recorded.bugs == []
    assert 0 < recorded.recording_s < recorded.command_s


def test_an_instance_is_recorded_once_whatever_its_elements(recorded: Recording) -> None:
    assert [dict(call(case).kwargs) for case in cases(recorded, "torch.add")] == [{"alpha": 2}, {}]


def test_numbers_of_different_types_are_different_instances(recorded: Recording) -> None:
    assert [call(case).args[1] for case in cases(recorded, "torch.sub")] == [1, 1.0]
    assert [type(call(case).args[1]) for case in cases(recorded, "torch.sub")] == [int, float]


def test_operators_have_the_names_by_which_they_are_called(recorded: Recording) -> None:
    for api in (
        "torch.nn.functional.softmax",
        "torch.linalg.vector_norm",
        "torch.Tensor.__rsub__",
        "torch.Tensor.mT",
        "torch.Tensor.reshape",
        "torch.Tensor.__getitem__",
        "torch.cat",
    ):
        assert cases(recorded, api), api


def test_arguments_are_told_as_they_were_before_the_call(recorded: Recording) -> None:
    case = only(recorded, "torch.Tensor.mul_")
    [(_, given)] = case.values()
    assert isinstance(given, Tensor)
    assert given.array().ravel().tolist()[1] == 1.0  # not doubled yet
    [argument] = call(case).tensors
    assert argument.strides == (4, 12, 1)


def test_what_failed_is_recorded_when_it_succeeds(recorded: Recording) -> None:
    case = only(recorded, "torch.linalg.inv")
    [(_, given)] = case.values()
    assert isinstance(given, Tensor)
    assert given.array().trace() == 3.0


def test_what_is_random_or_unwritten_is_compared_by_shape(recorded: Recording) -> None:
    assert only(recorded, "torch.rand").comparison == "shapes"
    assert only(recorded, "torch.empty").comparison == "shapes"
    assert only(recorded, "torch.nn.Dropout").comparison == "values"  # replayed in eval mode
    assert only(recorded, "torch.nn.functional.softmax").comparison == "values"


def test_a_large_tensor_is_told_by_a_recipe(recorded: Recording) -> None:
    [(_, given)] = only(recorded, "torch.cumsum").inputs
    assert given == Recipe(
        "uniform", "float32", (300, 300), 0.0, 0.0, given.seed if isinstance(given, Recipe) else 0
    )


def test_a_module_has_the_arguments_of_the_instance_called(recorded: Recording) -> None:
    assert "torch.nn.Linear(4, 5)" in text(only(recorded, "torch.nn.Linear"))
    assert cases(recorded, "torch.nn.functional.linear") == []  # but in Mine, which torch.nn.Linear calls


def test_what_a_container_holds_is_recorded_not_the_container(recorded: Recording) -> None:
    assert cases(recorded, "torch.nn.Sequential") == []
    assert "torch.nn.Conv1d(3, 2, 1)" in text(only(recorded, "torch.nn.Conv1d"))
    assert cases(recorded, "torch.nn.ReLU")


def test_modules_made_from_tensors_and_from_modules_are_told(recorded: Recording) -> None:
    loss = text(only(recorded, "torch.nn.CrossEntropyLoss"))
    assert "weight=torch.tensor([0.25, 0.5, 1.0], dtype=torch.float32)" in loss
    encoder = text(only(recorded, "torch.nn.TransformerEncoder"))
    assert (
        "torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1)"
        in encoder
    )


def test_a_module_that_nobody_saw_made_is_left_out(recorded: Recording) -> None:
    assert cases(recorded, "torch.nn.Hardshrink") == []


def test_a_tests_own_class_is_not_an_operator_but_what_it_calls_is(recorded: Recording) -> None:
    assert cases(recorded, "torch.tanh")


@pytest.mark.parametrize("api", ["torch.sinh", "torch.cosh"])
def test_what_is_batched_or_traced_is_left_alone(api: str, recorded: Recording) -> None:
    assert cases(recorded, api) == []


def test_questions_and_torchs_own_calls_are_no_operators(recorded: Recording) -> None:
    apis = {call(item).api for item in recorded.items if isinstance(item, TestCase)}
    assert not apis & {"torch.Tensor.numel", "torch.is_tensor", "torch.isclose", "torch.tensor"}


def test_a_call_that_cannot_be_told_is_a_skip(recorded: Recording) -> None:
    skips = [item for item in recorded.items if isinstance(item, Skip)]
    assert [skip.reason for skip in skips] == ["an argument is a function without a name in torch"]
    assert skips[0].detail.startswith("torch.Tensor.apply_")


def test_provenance_tells_the_scripts_function_and_line(recorded: Recording) -> None:
    provenance = only(recorded, "torch.cat").provenance
    assert provenance.test.startswith("script.py:functions:")
    assert (provenance.operator, provenance.library) == ("cat", "torch")


def test_every_case_runs_again(recorded: Recording) -> None:
    for item in recorded.items:
        if isinstance(item, TestCase):
            assert torch_programs.build(item.program).run(list(item.values())), call(item).api


def test_the_same_script_gives_the_same_cases(recorded: Recording, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("modules(); strange()", ""))
    again = recording.record("torch", [sys.executable, "-W", "ignore", str(script)], tmp_path)
    ids = [item.id for item in again.items if isinstance(item, TestCase)]
    assert len(ids) > 15
    assert ids == [item.id for item in recorded.items if isinstance(item, TestCase)][: len(ids)]
