"""A compiler with planted faults, some of which share a converter or a message.

A fault is selected by the option `fault`, and is one cause; those that crash in one place with one message
are one cause together, as whoever reads the stack would say. The place is the converter, or the C++ file that
the message names. Its effect on a matching node:

    crash  a converter of several operators raises, with a shared message that names the node, its shapes and
           an address
    late   makes onnxruntime fail at run time
    wrong  negates the node's output
    nan    replaces the node's output by NaN
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import onnx

from fuzzing.backends.base import register

sys.path.append(str(Path(__file__).parents[3]))
from tests.support.faults import (
    Match,
    ModelContext,
    Node,
    Rewriter,
    after,
    broadcast,
    corrupt,
    having,
    insert_behind,
    is_a,
    matching,
    negate,
    of_rank,
    twice,
    wide,
    with_shapes,
)


class Fault(NamedTuple):
    """Effect, matching nodes, and for `crash` the converter and the index of its message."""

    effect: str
    match: Match
    operators: tuple[str, ...]
    converter: str = ""
    message: int = 0


def _crash(match: Match, *operators: str, by: str, message: int) -> Fault:
    return Fault("crash", match, operators, by, message)


_ACTIVATION, _POOL, _SHAPE, _BINARY, _MATRIX, _SCAN = "activation", "pool", "layout", "binary", "gemm", "scan"

#: By name; some share a converter, a message or an operator on purpose.
FAULTS: dict[str, Fault] = {
    "crash-elu": _crash(is_a("Elu"), "Elu", by=_ACTIVATION, message=0),
    "crash-selu-gamma": _crash(having("Selu", "gamma"), "Selu", by=_ACTIVATION, message=0),
    "crash-leaky-alpha": _crash(having("LeakyRelu", "alpha"), "LeakyRelu", by=_ACTIVATION, message=1),
    "crash-softmax-4d": _crash(of_rank("Softmax", 4), "Softmax", by=_ACTIVATION, message=1),
    "crash-hardsigmoid-beta": _crash(having("HardSigmoid", "beta"), "HardSigmoid", by=_ACTIVATION, message=2),
    "crash-tile": _crash(is_a("Tile"), "Tile", by=_SHAPE, message=1),
    "crash-lppool": _crash(is_a("LpPool"), "LpPool", by=_POOL, message=0),
    "crash-maxpool-dilations": _crash(having("MaxPool", "dilations"), "MaxPool", by=_POOL, message=0),
    "crash-maxpool-ceil": _crash(having("MaxPool", "ceil_mode", bool), "MaxPool", by=_POOL, message=2),
    "crash-gather-axis": _crash(having("Gather", "axis", bool), "Gather", by=_SHAPE, message=1),
    "crash-transpose-reshape": _crash(
        after("Reshape", "Transpose"), "Transpose", "Reshape", by=_SHAPE, message=0
    ),
    "crash-concat-of-split": _crash(after("Concat", "Split"), "Split", "Concat", by=_SHAPE, message=0),
    "crash-add-itself": _crash(twice("Add"), "Add", by=_BINARY, message=2),
    "crash-add-of-mul": _crash(after("Add", "Mul"), "Add", "Mul", by=_BINARY, message=2),
    "crash-pad-4d": _crash(of_rank("Pad", 4), "Pad", by=_SHAPE, message=2),
    "crash-conv-group": _crash(having("Conv", "group", lambda n: n > 1), "Conv", by=_MATRIX, message=1),
    "crash-topk-smallest": _crash(having("TopK", "largest", lambda n: n == 0), "TopK", by=_SCAN, message=0),
    "crash-gemm-transa": _crash(having("Gemm", "transA", bool), "Gemm", by=_MATRIX, message=1),
    "crash-gemm-beta": _crash(having("Gemm", "beta"), "Gemm", by=_MATRIX, message=1),
    "crash-cumsum-reverse": _crash(having("CumSum", "reverse", bool), "CumSum", by=_SCAN, message=1),
    "crash-cumsum-exclusive": _crash(having("CumSum", "exclusive", bool), "CumSum", by=_SCAN, message=1),
    "wrong-sigmoid": Fault("wrong", is_a("Sigmoid"), ("Sigmoid",)),
    "wrong-prelu": Fault("wrong", is_a("PRelu"), ("PRelu",)),
    "wrong-globalmaxpool": Fault("wrong", is_a("GlobalMaxPool"), ("GlobalMaxPool",)),
    "wrong-slice": Fault("wrong", is_a("Slice"), ("Slice",)),
    "wrong-reducemean-3d": Fault("wrong", of_rank("ReduceMean", 3), ("ReduceMean",)),
    "wrong-relu-of-conv": Fault("wrong", after("Relu", "Conv"), ("Relu", "Conv")),
    "wrong-conv-pads": Fault("wrong", having("Conv", "pads", any), ("Conv",)),
    "wrong-mul-of-tanh": Fault("wrong", after("Mul", "Tanh", "Sigmoid"), ("Mul", "Tanh", "Sigmoid")),
    "wrong-matmul-of-transpose": Fault("wrong", after("MatMul", "Transpose"), ("MatMul", "Transpose")),
    "wrong-wide-sin": Fault("wrong", wide("Sin", 0, 3), ("Sin",)),
    "wrong-max-itself": Fault("wrong", twice("Max"), ("Max",)),
    "wrong-sub-broadcast": Fault("wrong", broadcast("Sub"), ("Sub",)),
    "wrong-sub-of-abs": Fault("wrong", after("Sub", "Abs"), ("Sub", "Abs")),
    "wrong-reducesum-flat": Fault("wrong", having("ReduceSum", "keepdims", lambda n: n == 0), ("ReduceSum",)),
    "wrong-neg-of-neg": Fault("wrong", after("Neg", "Neg"), ("Neg",)),
    "nan-exp-of-neg": Fault("nan", after("Exp", "Neg"), ("Exp", "Neg")),
    "nan-sqrt": Fault("nan", is_a("Sqrt"), ("Sqrt",)),
    "nan-erf-2d": Fault("nan", of_rank("Erf", 2), ("Erf",)),
    "nan-layernorm": Fault("nan", is_a("LayerNormalization"), ("LayerNormalization",)),
    "late-hardswish": Fault("late", is_a("HardSwish"), ("HardSwish",)),
    "late-celu-alpha": Fault("late", having("Celu", "alpha"), ("Celu",)),
    "late-transpose-twice": Fault("late", after("Transpose", "Transpose"), ("Transpose",)),
    "late-floor-1d": Fault("late", of_rank("Floor", 1), ("Floor",)),
}  # fmt: skip

MESSAGES: tuple[str, ...] = (
    "cannot lower node {name}: unsupported layout {shape} at {address:#x}",
    "check failed: attribute out of range for input {shape} of node '{name}'",
    "lowering.cc:{line}: internal error: dominator not found",
)


@register
class Planted(Rewriter):
    """The planted compiler."""

    name: ClassVar[str] = "planted"
    options: ClassVar[dict[str, tuple[str, ...]]] = {"fault": tuple(FAULTS)}

    def rewrite(self, fault: str, model: Any, context: ModelContext) -> None:
        found = FAULTS[fault]
        for node in matching(found.match, model, context):
            if found.effect == "crash":
                CONVERTERS[found.converter](node, context, MESSAGES[found.message])
            _EFFECTS[found.effect](model.graph, node)


def concerns(model: bytes, fault: Fault) -> bool:
    """Whether a fault affects a model."""
    return bool(matching(fault.match, *with_shapes(model)))


def cause(name: str) -> str:
    """The cause of a fault's failures."""
    fault = FAULTS[name]
    if fault.effect != "crash":
        return name
    file, named, _ = MESSAGES[fault.message].partition(":{line}:")
    return f"crash in {file if named else fault.converter}, message {fault.message}"


def _text(node: Node, context: ModelContext, message: str) -> str:
    facts = {"name": node.output[0], "shape": list(context.shape(node)), "address": id(node)}
    return message.format(line=100 + len(context.shapes), **facts)


def convert_activation(node: Node, context: ModelContext, message: str) -> None:
    raise ValueError(_text(node, context, message))


def convert_pool(node: Node, context: ModelContext, message: str) -> None:
    raise ValueError(_text(node, context, message))


def convert_layout(node: Node, context: ModelContext, message: str) -> None:
    raise ValueError(_text(node, context, message))


def convert_binary(node: Node, context: ModelContext, message: str) -> None:
    raise ValueError(_text(node, context, message))


def convert_gemm(node: Node, context: ModelContext, message: str) -> None:
    raise ValueError(_text(node, context, message))


def convert_scan(node: Node, context: ModelContext, message: str) -> None:
    raise ValueError(_text(node, context, message))


#: Each raises by itself, so that the innermost frame names it; several operators share one, as in compilers.
CONVERTERS: dict[str, Callable[[Node, ModelContext, str], None]] = {
    _ACTIVATION: convert_activation,
    _POOL: convert_pool,
    _SHAPE: convert_layout,
    _BINARY: convert_binary,
    _MATRIX: convert_gemm,
    _SCAN: convert_scan,
}


def _break(graph: Any, node: Node) -> None:
    """Reads past the last element, which fails only at run time."""
    name = node.output[0]
    node.output[0] = right = f"{name}_right"
    links: tuple[tuple[str, list[str], str, dict[str, Any]], ...] = (
        ("Constant", [], "all", {"value_ints": [-1]}),
        ("Reshape", [right, f"{name}_all"], "flat", {}),
        ("Size", [right], "size", {}),
        ("Gather", [f"{name}_flat", f"{name}_size"], "beyond", {}),
    )
    made = [
        onnx.helper.make_node(op, given, [f"{name}_{to}"], name=f"{name}_{to}", **attributes)
        for op, given, to, attributes in links
    ]
    made.append(onnx.helper.make_node("Add", [right, f"{name}_beyond"], [name]))
    insert_behind(graph, node, made)


_EFFECTS: dict[str, Callable[[Any, Node], None]] = {"wrong": negate, "nan": corrupt, "late": _break}
