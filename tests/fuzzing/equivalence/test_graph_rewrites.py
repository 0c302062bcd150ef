"""Every graph rewrite holds: both sides agree in float64 on a model that it applies to."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto

from fuzzing.backends.base import Named
from fuzzing.backends.onnx_reference import OnnxReference
from fuzzing.cases import OnnxModel, Tensor
from fuzzing.equivalence.graphs import rewrite
from fuzzing.equivalence.graphs.tangle import OPSET, OPSETS, Step, apply_steps, tangle
from fuzzing.rng import Rng

#: Signature and body of one model each; every input is drawn in (0.1, 1), or as bools.
_MODELS = (
    "(double[3,4] a, double[3,4] b) => (double[4,3] y) "
    "{ s = Add(a, b) r = Relu(s) y = Transpose<perm=[1,0]>(r) }",
    "(double[3,4] a, double[3,4] b, double[3,4] c) => (double[3,4] y) "
    "{ s = Add(a, b) t = Add(s, c) y = Mul(t, b) }",
    "(double[3,4] a, double[3,4] b, double[3,4] c) => (double[3,4] y) { s = Add(a, b) y = Mul(s, c) }",
    "(double[3,4] a, double[4,2] b) => (double[3,2] y) { y = MatMul(a, b) }",
    "(double[4,3] a, double[4,2] b, double[2] c) => (double[3,2] y) "
    "{ y = Gemm<transA=1, alpha=0.5, beta=2.0>(a, b, c) }",
    "(double[3,4] a, double[3,4] b) => (double[3,4] y) { y = Sub(a, b) }",
    "(double[3,4] a, double[3,4] b) => (double[3,4] y) { y = Div(a, b) }",
    "(double[3,4] a, double[3,4] b) => (double[3,4] y) { y = Max(a, b) }",
    "(double[3,4] a, double[3,4] b) => (double[3,4] y) { y = Min(a, b) }",
    "(double[3,4] a, double[3,4] b) => (bool[3,4] y) { y = Greater(a, b) }",
    "(double[3,4] a, double[3,4] b) => (bool[3,4] y) { y = Less(a, b) }",
    "(double[3,4] a, double[3,4] b) => (bool[3,4] y) { y = GreaterOrEqual(a, b) }",
    "(bool[3,4] a, bool[3,4] b) => (bool[3,4] y) { c = And(a, b) d = Or(c, a) y = Xor(d, b) }",
    *(
        f"(double[3,4] a) => (double[3,4] y) {{ b = Sub(a, a) c = Add(a, b) y = {name}(c) }}"
        for name in (
            "Abs", "Neg", "Sigmoid", "Tanh", "Softsign", "Softplus", "Reciprocal", "Sqrt", "HardSwish",
            "LogSoftmax", "Softmax", "Relu", "Log",
        )
    ),
    "(double[3,4] a) => (double[3,4] y) <double two = {2.0}> { y = Pow(a, two) }",
    *(
        f"(double[3,4] a) => (double y) {{ y = {name}<keepdims=0>(a) }}"
        for name in ("ReduceMean", "ReduceSum", "ReduceL2", "ReduceMax")
    ),
    "(double[2,3,4,4] a) => (double[2,3,1,1] y) "
    "{ b = GlobalAveragePool(a) c = GlobalMaxPool(a) y = Add(b, c) }",
    "(double[2,4,6,6] a, double[6,2,2,3] b) => (double[2,6,2,2] y) "
    "{ y = Conv<group=2, strides=[2,1], dilations=[2,2]>(a, b) }",
    "(double[2,4,6] a, double[6,2,3] b, double[6] c) => (double[2,6,3] y) "
    "{ y = Conv<group=2, strides=[2], pads=[1,1]>(a, b, c) }",
    "(double[2,4,6,6] a, double[3,4,2,3] b) => (double[2,3,4,4] y) "
    "{ y = Conv<strides=[2,1], pads=[1,0,1,0]>(a, b) }",
    "(double[2,3,6,6] a) => (double[2,3,3,2] y) { y = MaxPool<kernel_shape=[2,3], strides=[2,2]>(a) }",
    "(double[2,3,6,6] a) => (double[2,3,3,2] y) { y = AveragePool<kernel_shape=[2,3], strides=[2,2]>(a) }",
    "(double[2,3,6,6] a) => (double[12,18] y) <int64[2] s = {12, 18}> { b = Tanh(a) y = Reshape(b, s) }",
    "(float[3,4] a) => (float[3,4] y) { y = Abs(a) }",
    "(double[3,4] a) => (double[2,3] y) <int64[2] k = {-1, 2}, int64[2] n = {0, 3}, int64[2] m = {-1, 0}> "
    "{ g = Gather<axis=1>(a, k) u = Unsqueeze(g, n) s = Squeeze(u, m) y = Transpose(s) }",
)  # fmt: skip


@cache
def models() -> tuple[ModelProto, ...]:
    head = '<ir_version: 10, opset_import: ["" : 21]> g '
    return tuple(onnx.parser.parse_model(head + text) for text in _MODELS)


@cache
def backend() -> OnnxReference:
    made = OnnxReference()
    made.load("CPU", {})
    return made


def feeds(model: ModelProto) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    held = {item.name for item in model.graph.initializer}
    found: dict[str, Any] = {}
    for given in model.graph.input:
        if given.name in held:
            continue
        tensor = given.type.tensor_type
        values = rng.uniform(0.1, 1, [dim.dim_value for dim in tensor.shape.dim])
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        found[given.name] = values > 0.5 if dtype.kind == "b" else values.astype(dtype)
    return found


def run(model: ModelProto) -> list[Any]:
    values: Named = [(name, Tensor.of(np.asarray(value))) for name, value in feeds(model).items()]
    program = backend().convert(OnnxModel(model.SerializeToString()), values)
    outputs = backend().run(backend().compile(program), values)
    return [value.array() for _, value in outputs if isinstance(value, Tensor)]


def equal(one: ModelProto, other: ModelProto) -> bool:
    return all(
        left.shape == right.shape
        and left.dtype == right.dtype
        and np.allclose(left, right, rtol=1e-9, atol=1e-9)
        for left, right in zip(run(one), run(other), strict=True)
    )


@pytest.mark.parametrize("name", rewrite.names())
def test_both_sides_of_a_rewrite_agree_in_float64(name: str) -> None:
    found = 0
    for model in models():
        for node in model.graph.node:
            changed, steps = apply_steps(model, [Step(name, node.output[0])], feeds(model))
            if steps:
                found += 1
                assert equal(model, changed), onnx.printer.to_text(changed)
    assert found, "no model of this test has what the rewrite is about"


@pytest.mark.parametrize("opset", [*range(OPSETS[0], 21), 22])
def test_a_model_agrees_with_its_form_of_another_opset(opset: int) -> None:
    converted = [
        (model, changed)
        for model in models()
        for changed, steps in [apply_steps(model, [Step(OPSET, str(opset))])]
        if steps
    ]
    assert len(converted) > len(models()) / 2
    for model, changed in converted:
        assert changed.opset_import[0].version == opset
        assert equal(model, changed), onnx.printer.to_text(changed)


def test_there_are_twenty_rewrites_and_each_says_why_it_holds() -> None:
    assert len(rewrite.names()) >= 20
    assert all(rewrite.get(name).proof.endswith(".") for name in rewrite.names())


@pytest.mark.parametrize("seed", range(6))
def test_many_steps_agree_and_are_repeatable(seed: int) -> None:
    model = models()[seed % len(models())]
    changed, steps = tangle(model, Rng(seed), 8, feeds(model))
    assert steps
    assert equal(model, changed)
    again, done = apply_steps(model, steps, feeds(model))
    assert done == steps
    assert again.SerializeToString(deterministic=True) == changed.SerializeToString(deterministic=True)


def test_a_constant_is_the_quotient_toward_zero_of_its_dividend() -> None:
    """So that rounding down, as Python's `//` does, gives another constant for each negative one."""
    text = "(int64[4] a) => (int64[4] y) <int64[4] k = {-3, -1, 0, 2}> { y = Add(a, k) }"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')
    changed, _ = apply_steps(model, [Step("constant-quotient", "y")])
    dividend, divisor = (onnx.numpy_helper.to_array(item) for item in changed.graph.initializer[-2:])
    assert np.trunc(dividend / divisor).tolist() == [-3, -1, 0, 2]
    assert (dividend // divisor).tolist() == [-4, -2, 0, 2]


def test_axes_are_written_with_the_other_sign() -> None:
    steps = [Step("axis-sign", name) for name in ("g", "u", "s")]
    changed, done = apply_steps(models()[-1], steps)
    assert done == steps
    held = {item.name: onnx.numpy_helper.to_array(item).tolist() for item in changed.graph.initializer}
    gather, unsqueeze, squeeze, _ = changed.graph.node
    assert gather.attribute[0].i == -1
    assert held[unsqueeze.input[1]] == [-4, -1]
    assert held[squeeze.input[1]] == [3, -4]


def test_a_function_that_breaks_its_own_standard_is_not_inserted() -> None:
    """AffineGrid's gives Range tensors of one dimension, which onnxruntime rejects."""
    text = "(float[1,2,3] t) => (float[1,2,2,2] y) <int64[4] s = {1, 1, 2, 2}> { y = AffineGrid(t, s) }"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> g {text}')
    assert apply_steps(model, [Step("function-body", "y")])[1] == []
    assert apply_steps(model, [Step("outline", "y")])[1] != []
