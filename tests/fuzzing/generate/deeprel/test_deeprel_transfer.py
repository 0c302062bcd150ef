"""A call of one API as a call of another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuzzing.backends.shared import torch_programs
from fuzzing.cases import Init, NewObject, TensorArg, TensorLiteral, TorchCall
from fuzzing.generate.deeprel.api_inventory import list_apis
from fuzzing.generate.deeprel.call_transfer import Invocation, transfer
from tests.fuzzing.generate.deeprel.deeprel_helpers import X, call

pytestmark = pytest.mark.compiler_torch_eager

Given = Callable[[], Invocation]  # made in the test: to collect tests, torch must not be needed


def expressions(given: Invocation, target: str) -> tuple[str, str] | None:
    """Both calls as Python writes them; None if there is no transfer."""
    found = transfer(given, list_apis()[target])
    cases = found and found.cases()
    if not cases:
        return None
    return tuple(_call(case.program) for case in cases)  # type: ignore[return-value] # two of them


def _call(program: object) -> str:
    assert isinstance(program, TorchCall)
    lines = [line.strip() for line in program.source().splitlines()]
    made = [line for line in lines if line.startswith("self.layer = ")]
    return " ".join(
        made or [line.removeprefix("return ") for line in lines if line.startswith("return ")][:1]
    )


@pytest.mark.parametrize(
    ("given", "target", "there"),
    [
        (lambda: call("torch.amax", X, 1, True), "torch.max", "torch.max(input_, 1, True)"),
        (lambda: call("torch.amax", X, dim=1), "torch.max", "torch.max(input_, 1)"),
        (lambda: call("torch.amax", X), "torch.max", "torch.max(input_)"),
        (lambda: call("torch.amax", X, keepdim=True), "torch.Tensor.amax", "input_.amax(keepdim=True)"),
        (lambda: call("torch.Tensor.permute", X, 1, 0), "torch.permute", "torch.permute(input_, (1, 0))"),
        (lambda: call("torch.Tensor.add", X, X), "torch.sub", "torch.sub(input_, input_)"),
        (
            lambda: call("torch.nn.ReLU6", X, init=Init((True,))),
            "torch.nn.Hardtanh",
            "self.layer = torch.nn.Hardtanh(inplace=True)",
        ),
    ],
)
def test_a_call_is_told_as_one_of_another_api(given: Given, target: str, there: str) -> None:
    found = expressions(given(), target)
    assert found is not None
    assert found[1] == there


def test_what_the_target_cannot_take_neither_call_has() -> None:
    assert expressions(call("torch.nn.functional.relu", X, inplace=True), "torch.relu") == (
        "torch.nn.functional.relu(input_)",
        "torch.relu(input_)",
    )


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (lambda: call("torch.nn.functional.relu", X), "torch.threshold"),  # which needs two numbers
        (lambda: call("torch.nn.ReLU", X, init=Init()), "torch.nn.AdaptiveAvgPool2d"),  # which needs a size
        (lambda: call("torch.zeros", (2, 3)), "torch.Tensor.abs"),  # which needs a tensor
    ],
)
def test_what_does_not_fit_is_not_transferred(given: Given, target: str) -> None:
    assert expressions(given(), target) is None


def test_of_two_ways_the_one_that_takes_more_arguments_is_taken() -> None:
    """torch.median takes one dimension only, or none at all."""
    assert expressions(call("torch.amax", X, 1), "torch.median") == (
        "torch.amax(input_, 1)",
        "torch.median(input_, 1)",
    )
    assert expressions(call("torch.amax", X, (0, 1)), "torch.median") == (
        "torch.amax(input_)",
        "torch.median(input_)",
    )


def test_the_same_call_written_differently_is_one_case() -> None:
    """By position or by keyword, whatever its tensors were called."""
    calls = [
        call("torch.amax", TensorArg("a"), 1),
        call("torch.amax", TensorArg("b"), dim=1),
        call("torch.amax", input=TensorArg("c"), axis=1),
    ]
    found = [transfer(given, list_apis()["torch.amin"]) for given in calls]
    ids = {case.id for each in found if each and (cases := each.cases()) for case in cases}
    assert len(ids) == 2  # amax and amin


def test_tensors_keep_together_wherever_they_are() -> None:
    """In lists, in slices, in objects made on the spot; one that is met twice is one input."""
    one, other = TensorArg("p"), TensorArg("q")
    options = NewObject("torch.nn.functional.LinearCrossEntropyOptions", (), (("weight", one),))
    given = replace(
        call("torch.cat", [one, other]), bound={"tensors": [one, other, options, slice(0, other, None)]}
    )
    case = given.case("t")
    assert isinstance(case.program, TorchCall)
    assert [tensor.name for tensor in case.program.tensors] == ["tensors", "tensors1"]
    assert [name for name, _ in case.inputs] == ["tensors", "tensors1"]


def test_modules_made_from_tensors_and_from_functions_are_bound() -> None:
    weight = TensorLiteral("float32", (2,), (0.5, 1.0))
    assert call("torch.nn.NLLLoss", X, X, init=Init((weight,))).bound == {"weight": weight}
    distance = NewObject("torch.nn.PairwiseDistance")
    made = call(
        "torch.nn.TripletMarginWithDistanceLoss", X, X, X, init=Init((), (("distance_function", distance),))
    )
    assert made.bound == {"distance_function": distance}


def test_the_case_runs_and_says_where_it_comes_from() -> None:
    found = transfer(call("torch.amax", X, 1), list_apis()["torch.Tensor.amin"])
    cases = found and found.cases(seed=3)
    assert cases
    case = cases[1]
    outputs = torch_programs.build(case.program).run(list(case.values()))
    assert [name for name, _ in outputs] == ["0"]
    assert case.provenance.source == "deeprel"
    assert case.provenance.test == "torch.Tensor.amin <- torch.amax torch.amax/0"
    assert (case.provenance.operator, case.provenance.seed) == ("Tensor.amin", 3)
