"""What a library gets wrong before a compiler begins is not the compiler's; the compiler's own faults are."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from fuzzing import backends
from fuzzing.cases import Corpus, KerasLayer, Tensor, TensorArg, TestCase, TorchCall
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.library_check import LibraryCheck
from fuzzing.execute.limits import Limits
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execute.shard import Shard
from fuzzing.execute.shard_run import ShardRun
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from tests.fuzzing.backends.backend_kit import floats, onnx_case, program_case

ROOT = Path(__file__).parents[3]
#: A compiler that adds 1 to each of its results, or crashes, over a library with a fault.
PLANTED = """
import sys

sys.path.append({root!r})
from fuzzing.backends.base import get, register
from fuzzing.cases import Tensor
from tests.fuzzing.execute.planted_library import plant


@register
class Planted(get({compiler!r})):
    name = "planted"

    def load(self, device, options):
        super().load(device, options)
        plant({fault!r})

    def compile(self, model):
        if {crashes!r}:
            raise RuntimeError("the planted compiler fails")
        return super().compile(model)

    def run(self, executable, inputs):
        found = super().run(executable, inputs)
        return [(name, Tensor.of(value.array() + 1)) for name, value in found]
"""


def call(api: str, *shape: int) -> TestCase:
    return program_case(TorchCall(api, (TensorArg("x"),)), x=floats(*shape))


def layer(*shape: int) -> TestCase:
    tensor = TensorArg("x", dtype="float32", shape=shape)
    return program_case(KerasLayer("keras.layers.ReLU", (), (tensor,)), x=floats(*shape))


#: Each a program that the planted faults of the library change, and one that they do not.
CALLS = call("torch.deg2rad", 2, 3), call("torch.relu", 3)
TRACED = call("torch.neg", 2, 3), call("torch.relu", 3)
LAYERS = layer(2, 3), layer(1, 2, 3)
#: How each compiler is given programs, and what its library does then.
_TRIED: list[tuple[str, dict[str, str], tuple[TestCase, ...], str]] = [
    ("openvino", {}, CALLS, "decomposition"),
    ("openvino", {"capture": "traced"}, TRACED, "trace"),
    ("openvino", {}, LAYERS, "export"),
    ("tvm", {}, CALLS, "decomposition"),
    ("tvm", {}, LAYERS, "export"),
    ("onnxruntime", {}, LAYERS, "export"),
]
ROADS = [
    pytest.param(
        *road,
        marks=[getattr(pytest.mark, f"compiler_{road[0]}"), pytest.mark.slow],
        id=f"{road[0]}-{road[3]}",
    )
    for road in _TRIED
]


def judged(
    folder: Path,
    compiler: str,
    options: dict[str, str],
    cases: tuple[TestCase, ...],
    fault: str,
    *,
    crashes: bool = False,
) -> list[Outcome]:
    """The outcomes of a compiler whose every result is wrong, or which fails."""
    path = folder / "planted.py"
    path.write_text(PLANTED.format(root=str(ROOT), compiler=compiler, fault=fault, crashes=crashes))
    shard = Shard("", (), str(path), "digest", sys.executable, options=options)
    with Evaluator(shard) as evaluator:
        return evaluator.evaluate(cases)


def test_every_road_of_a_compiler_to_which_a_library_hands_its_programs_is_tried() -> None:
    tried = {(name, cases[0].program.kind) for name, _, cases, _ in _TRIED}
    for name in backends.compilers():
        captured = backends.get(name).captured
        assert set(captured) <= set(backends.get(name).kinds)
        assert set(captured) - {"TorchProgram"} == {kind for compiler, kind in tried if compiler == name}


def outcome(verdict: Verdict, **kinds: str) -> Outcome:
    """Of a compiler or of the library alone, with differences of these kinds in these outputs."""
    seen = Evidence(mismatches=tuple(Mismatch(name, kind, "differs") for name, kind in kinds.items()))
    return Outcome("0" * 64, "openvino", "t", "CPU", verdict, Phase.RUN, "s", evidence=seen)


class Known(LibraryCheck):
    """A check that knows how the library alone ends."""

    def __init__(self, alone: Outcome | None) -> None:
        runners = ReferenceRunners(ROOT, sys.executable, Limits())
        super().__init__(
            backends.get("openvino"), WorkerCommand(sys.executable, "openvino"), runners, lambda *_: failed()
        )
        self._known[CALLS[0].id] = alone


def failed() -> Outcome:
    pytest.fail("the library need not run")


WRONG, CRASH, PASS = Verdict.WRONG_RESULT, Verdict.CRASH, Verdict.PASS


@pytest.mark.parametrize(
    ("compiler", "alone", "verdict", "left"),
    [
        (outcome(WRONG, a="value"), outcome(WRONG, a="value"), Verdict.UNSUPPORTED, ()),
        (outcome(WRONG, a="value", b="value"), outcome(WRONG, a="shape"), WRONG, ("b",)),
        (outcome(WRONG, a="value"), outcome(PASS), WRONG, ("a",)),
        (outcome(WRONG, a="value"), None, WRONG, ("a",)),  # it cannot be told
        (outcome(WRONG, a="value"), outcome(CRASH), Verdict.UNSUPPORTED, ()),
        (outcome(CRASH), outcome(CRASH), Verdict.UNSUPPORTED, ()),
        (outcome(CRASH), outcome(WRONG, a="type"), Verdict.UNSUPPORTED, ()),
        (outcome(CRASH), outcome(WRONG, a="value"), CRASH, ()),
        (outcome(CRASH), outcome(Verdict.UNSUPPORTED), CRASH, ()),
        (outcome(PASS), outcome(CRASH), PASS, ()),
        (outcome(Verdict.HANG), outcome(CRASH), Verdict.HANG, ()),
    ],
)
def test_what_the_library_alone_excuses(
    compiler: Outcome, alone: Outcome | None, verdict: Verdict, left: tuple[str, ...]
) -> None:
    found = Known(alone).without_library_failures(CALLS[0], True, compiler)
    assert found.verdict is verdict
    assert tuple(item.output for item in found.evidence.mismatches) == left


def test_a_program_that_is_handed_over_as_it_is_needs_no_check() -> None:
    model = onnx_case("(float[1] x) => (float[1] y)", "y = Neg(x)", x=floats(1))
    wrong = outcome(WRONG, y="value")
    assert Known(None).without_library_failures(model, True, wrong) is wrong


@pytest.mark.parametrize(("compiler", "options", "cases", "fault"), ROADS)
def test_a_wrong_result_is_excused_only_where_the_library_gives_one_alone(
    tmp_path: Path, compiler: str, options: dict[str, str], cases: tuple[TestCase, ...], fault: str
) -> None:
    excused, accused = judged(tmp_path, compiler, options, cases, fault)
    assert excused.verdict is Verdict.UNSUPPORTED
    assert excused.summary.startswith("the library's own export or decomposition is wrong: output 0")
    assert accused.verdict is Verdict.WRONG_RESULT


@pytest.mark.slow
@pytest.mark.compiler_openvino
@pytest.mark.parametrize(
    ("options", "cases", "fault", "verdicts"),
    [
        ({}, CALLS, "decomposition", [Verdict.UNSUPPORTED, Verdict.CRASH]),
        ({"capture": "traced"}, TRACED, "trace", [Verdict.CRASH, Verdict.CRASH]),
    ],
)
def test_a_crash_is_excused_only_where_the_library_gives_another_shape(
    tmp_path: Path,
    options: dict[str, str],
    cases: tuple[TestCase, ...],
    fault: str,
    verdicts: list[Verdict],
) -> None:
    found = judged(tmp_path, "openvino", options, cases, fault, crashes=True)
    assert [outcome.verdict for outcome in found] == verdicts


@pytest.mark.slow
@pytest.mark.compiler_openvino
def test_torch_decomposes_a_loss_to_another_shape(tmp_path: Path) -> None:
    arguments = TensorArg("x"), TensorArg("y")
    loss = TorchCall(
        "torch.nn.functional.multilabel_margin_loss", arguments, (("reduction", "none"),)
    )  # of a vector
    case = program_case(loss, x=floats(3), y=Tensor.of(np.array([0, 2, -1])))
    corpus = Corpus(tmp_path)
    corpus.add(case)
    run = ShardRun(Shard(str(tmp_path), (case.id,), "openvino", "digest", sys.executable))
    [(_, found)] = run.outcomes()
    assert found.verdict is Verdict.UNSUPPORTED
    assert "shape" in found.summary
