"""Rewrites that replace an operator by others, written in ONNX's textual syntax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto

from fuzzing.equivalence.graphs.editor import Editor, attribute
from fuzzing.equivalence.graphs.rewrite import register_rewrite

_SMALL = ("float32", "float64")


@dataclass(frozen=True)
class Decomposition:
    """An operator and a body that computes it.

    body   statements; `a`, `b`, … are the node's inputs, `y` its output, `one`, `zero`, … scalars of a's type
    when   what must hold of the node, besides as many inputs as the body names and a float type
    types  of the first input
    """

    name: str
    operator: str
    body: str
    proof: str
    when: Callable[[Editor, NodeProto], bool] = lambda _editor, _node: True
    types: tuple[str, ...] = _SMALL


_SCALARS = {"zero": 0.0, "one": 1.0, "two": 2.0, "half": 0.5, "minus_one": -1.0, "eps": 1e-5}


def _two_inputs(_: Editor, node: NodeProto) -> bool:
    return len(node.input) == 2


def _plain_reduction(editor: Editor, node: NodeProto) -> bool:
    """A reduction of all dimensions to rank 0."""
    shape = editor.type(node.input[0]).shape
    none_left = (
        attribute(node, "keepdims", 1) == 0 and len(node.input) == 1 and attribute(node, "axes") is None
    )
    return none_left and bool(shape) and not attribute(node, "noop_with_empty_axes", 0)


def _exponent_two(editor: Editor, node: NodeProto) -> bool:
    value = editor.initializer(node.input[1])
    return value is not None and value.shape == () and float(value) == 2.0


def _empty_axes(editor: Editor, _: NodeProto) -> bool:
    """Whether all reductions have noop_with_empty_axes."""
    return editor.opset >= 18


def _matrices(editor: Editor, node: NodeProto) -> bool:
    return all(len(editor.type(name).shape or ()) == 2 for name in node.input)


def _no_softmax_axis(editor: Editor, node: NodeProto) -> bool:
    shape = editor.type(node.input[0]).shape
    return bool(shape) and attribute(node, "axis", -1) in (-1, len(shape or ()) - 1)


DECOMPOSITIONS = (
    Decomposition("add-commuted", "Add", "y = Add(b, a)", "IEEE addition commutes."),
    Decomposition("multiply-commuted", "Mul", "y = Mul(b, a)", "IEEE multiplication commutes."),
    Decomposition("and-commuted", "And", "y = And(b, a)", "Conjunction commutes.", types=("bool",)),
    Decomposition(
        "or-de-morgan",
        "Or",
        "c = Not(a) d = Not(b) e = And(c, d) y = Not(e)",
        "De Morgan's law.",
        types=("bool",),
    ),
    Decomposition(
        "xor-not-equal", "Xor", "c = Equal(a, b) y = Not(c)", "Xor is inequality.", types=("bool",)
    ),
    Decomposition("subtract-negated", "Sub", "c = Neg(b) y = Add(a, c)", "IEEE defines a-b as a+(-b)."),
    Decomposition(
        "subtract-swapped",
        "Sub",
        "c = Sub(b, a) d = Neg(c) e = Mul(d, one) y = Identity(e)",
        "a-b = -(b-a), but for the sign of 0.",
    ),
    Decomposition("divide-reciprocal", "Div", "c = Reciprocal(b) y = Mul(a, c)", "a/b = a·(1/b)."),
    Decomposition("greater-less", "Greater", "y = Less(b, a)", "a > b is b < a."),
    Decomposition("less-greater", "Less", "y = Greater(b, a)", "a < b is b > a."),
    Decomposition(
        "greater-equal-or",
        "GreaterOrEqual",
        "c = Greater(a, b) d = Equal(a, b) y = Or(c, d)",
        "a ≥ b is a > b or a = b; all are false for NaN.",
    ),
    Decomposition("relu-max", "Relu", "y = Max(a, zero)", "Relu is max(a, 0)."),
    Decomposition("relu-where", "Relu", "c = Less(a, zero) y = Where(c, zero, a)", "Relu is a unless a < 0."),
    Decomposition("relu-clip", "Relu", "y = Clip(a, zero)", "Relu clips at 0 from below."),
    Decomposition("absolute-max", "Abs", "c = Neg(a) y = Max(a, c)", "|a| = max(a, -a)."),
    Decomposition("absolute-sign", "Abs", "c = Sign(a) y = Mul(a, c)", "|a| = a·sign(a)."),
    Decomposition(
        "absolute-norm",
        "Abs",
        "y = ReduceL1<noop_with_empty_axes=1>(a)",
        "The norm of one number is its absolute value.",
        _empty_axes,
    ),
    Decomposition(
        "logarithm-sum",
        "Log",
        "y = ReduceLogSum<noop_with_empty_axes=1>(a)",
        "The sum of one number is the number.",
        _empty_axes,
    ),
    Decomposition("negate-multiply", "Neg", "y = Mul(a, minus_one)", "-a = -1·a."),
    Decomposition(
        "sigmoid-exp",
        "Sigmoid",
        "c = Neg(a) d = Exp(c) e = Add(d, one) y = Reciprocal(e)",
        "σ(a) = 1/(1+e^-a).",
    ),
    Decomposition(
        "sigmoid-tanh",
        "Sigmoid",
        "c = Mul(a, half) d = Tanh(c) e = Mul(d, half) y = Add(e, half)",
        "σ(a) = (1+tanh(a/2))/2.",
    ),
    Decomposition(
        "sigmoid-clipped",
        "Sigmoid",
        "c = Sigmoid(a) y = HardSigmoid<alpha=1.0, beta=0.0>(c)",
        "0 ≤ σ(a) ≤ 1, where max(0, min(1, x)) is x.",
    ),
    Decomposition(
        "tanh-sigmoid",
        "Tanh",
        "c = Mul(a, two) d = Sigmoid(c) e = Mul(d, two) y = Sub(e, one)",
        "tanh(a) = 2·σ(2a)-1.",
    ),
    Decomposition(
        "softsign-parts", "Softsign", "c = Abs(a) d = Add(c, one) y = Div(a, d)", "softsign(a) = a/(1+|a|)."
    ),
    Decomposition(
        "softplus-parts", "Softplus", "c = Exp(a) d = Add(c, one) y = Log(d)", "softplus(a) = log(1+e^a)."
    ),
    Decomposition("reciprocal-divide", "Reciprocal", "y = Div(one, a)", "Reciprocal is 1/a."),
    Decomposition("square-root-power", "Sqrt", "y = Pow(a, half)", "√a = a^½ for a ≥ 0."),
    Decomposition("power-two-product", "Pow", "y = Mul(a, a)", "a² = a·a.", _exponent_two),
    Decomposition(
        "hard-swish-parts",
        "HardSwish",
        "c = HardSigmoid<alpha=0.16666667, beta=0.5>(a) y = Mul(a, c)",
        "ONNX's definition.",
    ),
    Decomposition(
        "mean-sum",
        "ReduceMean",
        "c = ReduceSum<keepdims=0>(a) n = Size(a) m = CastLike(n, a) y = Div(c, m)",
        "A mean is a sum over the count.",
        _plain_reduction,
    ),
    Decomposition(
        "sum-matmul",
        "ReduceSum",
        "f = Reshape(a, minus) o = Expand(one, s) y = MatMul(f, o)",
        "A sum is the product with a vector of ones.",
        _plain_reduction,
    ),
    Decomposition(
        "l2-parts",
        "ReduceL2",
        "c = Mul(a, a) d = ReduceSum<keepdims=0>(c) y = Sqrt(d)",
        "The norm is the root of the sum of squares.",
        _plain_reduction,
    ),
    Decomposition(
        "max-min",
        "ReduceMax",
        "c = Neg(a) d = ReduceMin<keepdims=0>(c) y = Neg(d)",
        "max(a) = -min(-a).",
        _plain_reduction,
    ),
    Decomposition(
        "maximum-where",
        "Max",
        "c = Less(a, b) y = Where(c, b, a)",
        "The larger of two, without NaN.",
        _two_inputs,
    ),
    Decomposition(
        "minimum-negated",
        "Min",
        "c = Neg(a) d = Neg(b) e = Max(c, d) y = Neg(e)",
        "min(a, b) = -max(-a, -b).",
        _two_inputs,
    ),
    Decomposition(
        "matmul-transposed",
        "MatMul",
        "c = Transpose<perm=[1,0]>(a) d = Transpose<perm=[1,0]>(b) e = MatMul(d, c) "
        "y = Transpose<perm=[1,0]>(e)",
        "AB = (BᵀAᵀ)ᵀ.",
        _matrices,
    ),
    Decomposition(
        "matmul-gemm", "MatMul", "y = Gemm(a, b)", "Gemm without a third input is a product.", _matrices
    ),
    Decomposition(
        "matmul-einsum",
        "MatMul",
        'y = Einsum<equation="ij,jk->ik">(a, b)',
        "The product's definition.",
        _matrices,
    ),
    Decomposition(
        "matmul-reduction",
        "MatMul",
        "p = Unsqueeze(a, minus) q = Unsqueeze(b, front) r = Mul(p, q) "
        "y = ReduceSum<keepdims=0>(r, front_one)",
        "The product's definition.",
        _matrices,
    ),
    Decomposition(
        "softmax-parts",
        "Softmax",
        "m = ReduceMax<keepdims=1>(a, minus) c = Sub(a, m) d = Exp(c) "
        "n = ReduceSum<keepdims=1>(d, minus) y = Div(d, n)",
        "ONNX's definition.",
        lambda editor, node: editor.opset >= 18 and _no_softmax_axis(editor, node),
    ),
    Decomposition(
        "log-softmax-log",
        "LogSoftmax",
        "c = Softmax<axis=-1>(a) y = Log(c)",
        "Its definition.",
        _no_softmax_axis,
    ),
    Decomposition(
        "global-average-mean",
        "GlobalAveragePool",
        "y = ReduceMean<keepdims=1>(a, spatial)",
        "It is the mean over all but two dimensions.",
        lambda editor, _: editor.opset >= 18,
    ),
    Decomposition(
        "global-max-reduce",
        "GlobalMaxPool",
        "y = ReduceMax<keepdims=1>(a, spatial)",
        "It is the maximum over all but two dimensions.",
        lambda editor, _: editor.opset >= 18,
    ),
)


def _apply(found: Decomposition, editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    kind = editor.type(node.input[0]) if node.input else None
    if kind is None or kind.dtype not in found.types or not all(node.input):
        return None
    if len(node.output) != 1 or not found.when(editor, node):
        return None
    graph = onnx.parser.parse_graph(f"g (float a) => (float y) {{ {found.body} }}")
    names = dict(zip("ab", node.input, strict=False)) | {"y": node.output[0]}
    written = {name for one in graph.node for name in one.output}
    used = {name for one in graph.node for name in one.input}
    if not used - written - set(_SCALARS) - set(_LENGTHS) <= set("ab"[: len(node.input)]):
        return None
    # Every input must be used; of a square, the exponent is in the condition.
    if len(node.input) > 2 or (len(node.input) == 2 and "b" not in used and found.operator != "Pow"):
        return None
    for name in sorted(used | written):
        if name not in names:
            names[name] = _operand(editor, node, name)
    for one in graph.node:
        one.input[:] = [names[name] for name in one.input]
        one.output[:] = [names[name] for name in one.output]
    return list(graph.node)


#: Integer operands by name, from the shape of the first input.
_LENGTHS: dict[str, Callable[[tuple[int, ...]], list[int]]] = {
    "minus": lambda _: [-1],
    "front": lambda _: [0],
    "front_one": lambda _: [1],
    "s": lambda shape: [int(np.prod(shape, dtype=np.int64))],
    "spatial": lambda shape: list(range(2, len(shape))),
}


def _operand(editor: Editor, node: NodeProto, name: str) -> str:
    if name in _SCALARS:
        return editor.scalar(_SCALARS[name], node.input[0])
    if name in _LENGTHS:
        return editor.lengths(_LENGTHS[name](editor.type(node.input[0]).shape or ()))
    return editor.fresh(name)


def _register(found: Decomposition) -> None:
    register_rewrite(found.name, found.operator, proof=found.proof)(
        lambda editor, node: _apply(found, editor, node)
    )


for _found in DECOMPOSITIONS:
    _register(_found)
