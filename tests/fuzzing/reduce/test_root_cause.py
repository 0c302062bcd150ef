"""A failure that only shows what was computed wrongly before it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase, TorchProgram
from fuzzing.deduplicate.strategies.base import Failure
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome, Phase, Verdict
from fuzzing.reduce.engine import ReductionSpec
from fuzzing.reduce.formats import ProgramFormat
from fuzzing.reduce.reduction import reduce_case
from fuzzing.reduce.root_cause import find_root_cause
from fuzzing.triage.signature import explains
from fuzzing.triage.traits import read_traits

SHAPELESS, SQUEEZING = (
    str(Path(__file__).parent / f"{name}_backend.py") for name in ("shapeless", "squeezing")
)
Parts = tuple[str, ...]


def outcome(verdict: Verdict) -> Outcome:
    return Outcome("c" * 64, "b", "t", "CPU", verdict, Phase.RUN, verdict.value)


def program_format(cuttable: Callable[[int], bool] = lambda _at: True) -> ProgramFormat[Parts]:
    """Of a chain of parts; its case is a program whose text names them."""

    def case(parts: Parts) -> TestCase:
        return TestCase(OnnxModel(" ".join(parts).encode()), (), Provenance("s", "t", "", "l", "1"))

    return ProgramFormat(
        "chain",
        load=lambda _case, _evaluator, _outcome: (),
        case=case,
        spec=ReductionSpec(lambda parts: (len(parts),), " ".join, ()),
        words=("parts",),
        split=lambda parts, at: (parts[:at], parts[at:]) if cuttable(at) else None,
        parts=len,
    )


class Compiler:
    """Does what it is told about chains; passes others."""

    def __init__(self, **does: Verdict) -> None:
        self.does = {name.replace("_", " "): verdict for name, verdict in does.items()}
        self.ran: list[str] = []

    def __call__(self, case: TestCase) -> Outcome:
        assert isinstance(case.program, OnnxModel)
        name = case.program.model.decode()
        self.ran.append(name)
        return outcome(self.does.get(name, Verdict.PASS))


WRONG, CRASH = Verdict.WRONG_RESULT, Verdict.CRASH


def test_the_shortest_beginning_that_is_wrong_is_it() -> None:
    compiler = Compiler(a_b_c=CRASH, a_b=WRONG)
    found = find_root_cause(("a", "b", "c", "d"), program_format(), compiler)
    assert found is not None
    assert (found[0], found[1].verdict) == (("a", "b"), WRONG)
    assert compiler.ran == ["a b c", "a b", "a", "c d"]


def test_what_fails_as_a_whole_alone_costs_one_run() -> None:
    compiler = Compiler()
    assert find_root_cause(("a", "b", "c"), program_format(), compiler) is None
    assert compiler.ran == ["a b"]
    assert find_root_cause(("a",), program_format(), compiler) is None
    assert len(compiler.ran) == 1


def test_where_what_is_left_fails_without_it_there_are_two() -> None:
    compiler = Compiler(a=WRONG, b=CRASH)
    assert find_root_cause(("a", "b"), program_format(), compiler) is None


def test_a_later_cut_bears_witness_where_the_nearest_has_a_bug_of_its_own() -> None:
    compiler = Compiler(a=WRONG, a_b=WRONG, b_c=CRASH)
    found = find_root_cause(("a", "b", "c"), program_format(), compiler)
    assert found is not None
    assert found[0] == ("a",)


def test_a_beginning_that_dies_otherwise_is_another_bug() -> None:
    assert find_root_cause(("a", "b"), program_format(), Compiler(a=CRASH)) is None


def test_it_is_cut_only_where_that_can_be() -> None:
    compiler = Compiler(a_b=WRONG)
    found = find_root_cause(("a", "b", "c", "d"), program_format(lambda at: at == 2), compiler)
    assert found is not None
    assert found[0] == ("a", "b")


@pytest.mark.compiler_onnxruntime
@pytest.mark.parametrize(
    "behind",
    ["ConstantOfShape (s)\n z = Add (v, y)", "Expand (y, s)\n z = Relu (v)"],
    ids=["added", "expanded"],
)
def test_whatever_shows_it_the_shape_is_left(behind: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[3, 4] x, float[3] y) => (float[3] z) {{
         s = Shape <end = 1> (x)
         v = {behind}
        }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    values = (("x", Tensor.of(np.ones((3, 4), np.float32))), ("y", Tensor.of(np.ones(3, np.float32))))
    given = TestCase(OnnxModel(model), values, Provenance("s", "shapes", "Shape", "onnx", "1"))
    found = reduce_case(given, Shard("", (), SHAPELESS, "d", sys.executable, options={"fault": "shape-end"}))
    assert found.confirmed
    assert found.root is not None
    root, does = found.root
    assert (operators(root), does.verdict, found.outcome.verdict) == (["Shape"], WRONG, CRASH)
    assert (found.traits.pattern, found.traits.needs) == ("Shape", read_traits(root).needs)
    # Whatever shows it, it is the bug that the root itself would be.
    own = Failure(root, does, reduced=True).signature()
    shown = Failure(found.case, found.outcome, True, found.traits).signature()
    assert (explains(own, shown), explains(shown, own), own.key == shown.key) == (True, True, False)
    assert found.reduced.runs_by_pass["upstream"] >= 2


@pytest.mark.slow
@pytest.mark.compiler_torch_eager
def test_of_programs_too_the_statement_is_left_that_is_wrong_by_itself() -> None:
    body = "a = x.squeeze(0)\n    b = torch.cat([a, y], 0)\n    return b\n"
    text = f"import torch\n\ndef forward(x, y):\n    {body}"
    x, y = Tensor.of(np.ones((1, 1, 3), np.float32)), Tensor.of(np.ones((1, 3), np.float32))
    given = TestCase(TorchProgram(text), (("x", x), ("y", y)), Provenance("s", "t", "squeeze", "torch", "1"))
    # No referee: shapes need none, and it would start torch four more times.
    found = reduce_case(given, Shard("", (), SQUEEZING, "d", sys.executable, profile="without-float64"))
    assert (found.confirmed, found.outcome.verdict) == (True, CRASH)
    assert found.root is not None
    root, does = found.root
    assert isinstance(root.program, TorchProgram)
    assert root.program.text.splitlines()[-2:] == ["    a = x.squeeze(0)", "    return a"]
    assert (does.verdict, found.traits.pattern) == (WRONG, "squeeze")
    own = Failure(root, does, reduced=True).signature()
    assert explains(own, Failure(found.case, found.outcome, True, found.traits).signature())


def operators(case: TestCase) -> list[str]:
    assert isinstance(case.program, OnnxModel)
    return [node.op_type for node in onnx.load_from_string(case.program.model).graph.node]
