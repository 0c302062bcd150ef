"""A difference that later operators amplify accuses no operator; a wrong operator or fusion is accused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from fuzzing.cases import OnnxModel, Tensor, TestCase
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.graph.operator_isolation import isolate_operators, observe_numbers
from fuzzing.outcomes import Outcome, Verdict
from tests.fuzzing.backends.backend_kit import onnx_case

ROOT = Path(__file__).parents[3]
#: onnxruntime with another Sigmoid: its result is off by `error`; if `fused`, only where nobody sees it.
PLANTED = """
import sys

sys.path.append({root!r})
import numpy as np
import onnx
from fuzzing.backends.base import get, register
from fuzzing.cases.programs import OnnxModel


@register
class Planted(get("onnxruntime")):
    name = "planted"

    def convert(self, program, inputs):
        model = onnx.load_model_from_string(program.to_bytes())
        shown = {{output.name for output in model.graph.output}}
        nodes = list(model.graph.node)
        del model.graph.node[:]
        for node in nodes:
            model.graph.node.append(node)
            if node.op_type == "Sigmoid" and not ({fused!r} and node.output[0] in shown):
                [name] = node.output
                model.graph.node[-1].output[0] = "exact"
                added = onnx.helper.make_node("Add", ["exact", "error"], [name])
                model.graph.node.append(added)
                error = onnx.numpy_helper.from_array(np.float32({error!r}), "error")
                model.graph.initializer.append(error)
        return super().convert(OnnxModel(model.SerializeToString()), inputs)
"""
BODY = "s = Sigmoid(x)  t = Mul(x, s)  y = Mul(k, t)"


def silu(factor: float) -> TestCase:
    return onnx_case(
        "(float[1] x, float[1] k) => (float[1] y)",
        BODY,
        x=Tensor.of(np.array([-8], np.float32)),
        k=Tensor.of(np.array([factor], np.float32)),
    )


def judged(case: TestCase, folder: Path, error: float, *, fused: bool = False) -> Outcome:
    path = folder / "planted.py"
    path.write_text(PLANTED.format(root=str(ROOT), error=error, fused=fused))
    with Evaluator(Shard("", (), str(path), "digest", sys.executable)) as evaluator:
        [outcome] = evaluator.evaluate([case])
    return outcome


@pytest.mark.compiler_onnxruntime
def test_a_difference_within_the_tolerance_that_later_operators_amplify_passes(tmp_path: Path) -> None:
    outcome = judged(silu(300), tmp_path, 5e-7)
    assert outcome.verdict is Verdict.PASS, outcome.summary
    assert "amplify" in outcome.summary
    [excused] = outcome.evidence.excused
    assert (excused.output, excused.kind) == ("y", "value")


def above(limit: float, dtype: str) -> TestCase:
    """Whether a Sigmoid of -8 (3.3535e-4) is above a limit."""
    body = "s = Sigmoid(x)  g = Greater(s, limit)  y = Identity(g)"
    if dtype != "bool":
        body = f"s = Sigmoid(x)  g = Greater(s, limit)  y = Cast<to={getattr(TensorProto, dtype.upper())}>(g)"
    return onnx_case(
        f"(float[1] x, float[1] limit) => ({dtype}[1] y)",
        body,
        x=Tensor.of(np.array([-8], np.float32)),
        limit=Tensor.of(np.array([limit], np.float32)),
    )


@pytest.mark.compiler_onnxruntime
@pytest.mark.parametrize("dtype", ["bool", "int64"])
def test_a_comparison_that_a_difference_within_the_tolerance_decides_passes(
    dtype: str, tmp_path: Path
) -> None:
    outcome = judged(above(3.356e-4, dtype), tmp_path, 5e-7)
    assert outcome.verdict is Verdict.PASS, outcome.summary
    assert "amplify" in outcome.summary


@pytest.mark.compiler_onnxruntime
def test_a_comparison_that_a_wrong_operator_decides_is_accused(tmp_path: Path) -> None:
    outcome = judged(above(3.5e-4, "bool"), tmp_path, 3e-5)
    assert outcome.verdict is Verdict.WRONG_RESULT


@pytest.mark.compiler_onnxruntime
def test_an_operator_outside_the_tolerance_is_accused(tmp_path: Path) -> None:
    outcome = judged(silu(2), tmp_path, 3e-5)
    assert outcome.verdict is Verdict.WRONG_RESULT


@pytest.mark.compiler_onnxruntime
def test_a_difference_that_is_gone_once_each_number_is_an_output_is_accused(tmp_path: Path) -> None:
    outcome = judged(silu(300), tmp_path, 5e-7, fused=True)
    assert outcome.verdict is Verdict.WRONG_RESULT


def test_each_operator_takes_the_given_numbers() -> None:
    """With numbers of another program, no output is the model's own; what is no float is computed again."""
    case = onnx_case(
        "(float[2] x) => (float[2] y, bool[2] b)",
        "a = Abs(x)  y = Neg(a)  b = Greater(y, x)",
        x=Tensor.of(np.array([1, -2], np.float32)),
    )
    observed = observe_numbers(case)
    assert observed is not None
    given = {"a": Tensor.of(np.array([5, 6], np.float32)), "y": Tensor.of(np.array([0, -4], np.float32))}
    isolated = isolate_operators(case, given)
    with Evaluator(Shard("", (), "onnxruntime", "digest", sys.executable)) as evaluator:
        seen, alone = evaluator.reference(observed), evaluator.reference(isolated)
    assert seen is not None
    assert alone is not None
    assert [(name, value.array().tolist()) for name, value in seen if isinstance(value, Tensor)] == [
        ("y", [-1, -2]),
        ("b", [False, False]),
        ("a", [1, 2]),
    ]
    assert [(name, value.array().tolist()) for name, value in alone if isinstance(value, Tensor)] == [
        ("y", [-5, -6]),
        ("b", [False, False]),
        ("a", [1, 2]),
    ]


def test_a_model_of_one_operator_is_not_taken_apart() -> None:
    case = onnx_case("(float x) => (float y)", "y = Neg(x)", x=Tensor.of(np.array(1, np.float32)))
    assert observe_numbers(case) is None


def test_an_input_that_is_not_given_keeps_its_default() -> None:
    body = "a = Neg(x)  y = Mul(a, k)"
    x = Tensor.of(np.array(1, np.float32))
    case = onnx_case("(float x, float k) => (float y) <float k = {2}>", body, x=x)
    isolated = isolate_operators(case, {"a": Tensor.of(np.array(7, np.float32))})
    with Evaluator(Shard("", (), "onnxruntime", "digest", sys.executable)) as evaluator:
        found = dict(evaluator.reference(isolated) or ())
    assert found["y"] == Tensor.of(np.array(14, np.float32))


def test_bodies_take_the_given_numbers_too() -> None:
    case = onnx_case(
        "(float x, bool c) => (float y)",
        "a = Neg(x)  y = If(c) <then_branch = t () => (float p) { p = Abs(a) }, "
        "else_branch = e () => (float q) { q = Identity(a) }>",
        x=Tensor.of(np.array(1, np.float32)),
        c=Tensor.of(np.array(False)),
    )
    isolated = isolate_operators(case, {"a": Tensor.of(np.array(7, np.float32))})
    assert isinstance(isolated.program, OnnxModel)
    with Evaluator(Shard("", (), "onnxruntime", "digest", sys.executable)) as evaluator:
        found = dict(evaluator.reference(isolated) or ())
    assert found["y"] == Tensor.of(np.array(7, np.float32))
