"""Pairs are reduced with both sides together: what the rule rewrote gets smaller, and the sides follow."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx.parser
import pytest

from fuzzing.backends.shared.keras_models import ENVIRONMENT
from fuzzing.cases import (
    EquivalentPair,
    KerasLayer,
    OnnxModel,
    Provenance,
    Recipe,
    Tensor,
    TensorArg,
    TestCase,
)
from fuzzing.equivalence.graphs import models
from fuzzing.equivalence.graphs.tangle import SATURATION, Step
from fuzzing.equivalence.pairs import pair_of, subject_of
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Verdict
from fuzzing.reduce.reduction import reduce_case
from fuzzing.triage.traits import Traits

FAULTY_KERAS, FAULTY_ONNX = (
    str(Path(__file__).parent / f"faulty_{name}.py") for name in ("keras", "backend")
)


@pytest.mark.compiler_keras_eager
def test_a_pair_of_keras_is_reduced_to_what_the_fault_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault needs a kernel wider than 1 and `same` padding, and nothing else of the layer."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    settings = (
        ("filters", 2), ("kernel_size", 3), ("padding", "same"), ("use_bias", False)
    )  # fmt: skip
    given = TensorArg("input", dtype="float32", shape=(2, 4, 4, 2))
    subject = TestCase(
        KerasLayer("keras.layers.Conv2D", settings, (given,), seed=1),
        (("input", Recipe("uniform", "float32", (2, 4, 4, 2), -1.0, 1.0, 0)),),
        Provenance("eagle-keras", "planted", "keras.layers.Conv2D", "keras", "3"),
    )
    pair = pair_of(subject, "keras-same-padding")
    assert pair is not None
    found = reduce_case(pair, Shard("", (), FAULTY_KERAS, "digest", sys.executable, profile="eagle"))
    assert found.confirmed
    assert found.outcome.verdict is Verdict.WRONG_RESULT
    program = found.case.program
    assert isinstance(program, EquivalentPair)
    assert program.rule == "keras-same-padding"
    layer = subject_of(found.case).program
    assert isinstance(layer, KerasLayer)
    kept = dict(layer.kwargs)
    assert set(kept) == {"filters", "kernel_size", "padding"}
    assert kept["filters"] == 1
    [(_, reduced)] = found.case.values()
    assert isinstance(reduced, Tensor)
    assert reduced.array().size < 2 * 4 * 4 * 2
    assert "padding='same'" in program.left.text
    assert "padding='valid'" in program.right.text


@pytest.mark.compiler_onnxruntime
def test_a_saturated_pair_is_reduced_on_both_sides() -> None:
    """The fault is a matrix product of a transposed value, which only saturation makes of this model."""
    text = (
        "(float[3,3] a, float[3,3] b) => (float[3,3] y) "
        "{ t = MatMul(a, b) u = Abs(t) v = Add(u, b) y = Transpose(v) }"
    )
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]> g {text}')
    given = Recipe("uniform", "float32", (3, 3), -2.0, 2.0, 0)
    origin = Provenance("eagle-graphs", "planted", SATURATION, "onnx", "1")
    left = TestCase(OnnxModel(model.SerializeToString()), (("a", given), ("b", given)), origin)
    pair = models.pair_of(left, [Step(SATURATION)])
    assert pair is not None
    options = {"fault": "wrong-matmul-of-transpose"}
    found = reduce_case(pair, Shard("", (), FAULTY_ONNX, "digest", sys.executable, options=options))
    assert found.confirmed
    left, steps = models.parts_of(found.case)
    assert steps == [Step(SATURATION)]
    assert isinstance(left.program, OnnxModel)
    assert [node.op_type for node in onnx.load_model_from_string(left.program.model).graph.node] == [
        "MatMul",
        "Transpose",
    ]


@pytest.mark.compiler_onnxruntime
def test_a_reduced_pair_names_only_operators_that_the_bug_needs() -> None:
    """The fault is a maximum of a value with itself, which one of three rewrites makes."""
    text = "(float[2,3] a) => (float[2,3] y) { t = Abs(a) u = Add(t, t) y = Softsign(u) }"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]> g {text}')
    given = Recipe("uniform", "float32", (2, 3), 1.0, 2.0, 0)
    origin = Provenance("eagle-graphs", "planted", "identity maximum-itself", "onnx", "1")
    left = TestCase(OnnxModel(model.SerializeToString()), (("a", given),), origin)
    pair = models.pair_of(left, [Step("identity", "t"), Step("maximum-itself", "y"), Step("identity", "y")])
    assert pair is not None
    options = {"fault": "wrong-max-itself"}
    found = reduce_case(pair, Shard("", (), FAULTY_ONNX, "digest", sys.executable, options=options))
    assert found.confirmed
    assert found.traits == Traits(
        "Identity = Max(Identity)",
        ("float",),
        ("Max given one tensor twice", "rank 1", "rank 2"),
        ("Identity", "Max"),
    )
