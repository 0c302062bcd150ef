"""Models whose intermediate results moved by a rounding, to measure how sensitive a program is to rounding.

Moved inputs do not stand for all roundings inside: a mean of three equal numbers is that number for every
input, and float16 rounds each of many steps that contract. What Less, Floor or Hardmax makes of such results
is open. So what an operator rounds is multiplied by 1 ± two roundings of its type where other nodes read it.
What `exact_inputs` finds exact is not moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fuzzing.backends.onnx_reference.exact_inputs import computes_exactly
from fuzzing.oracles.element_types import ROUNDING

_SEED = 23
#: By one of `moved_windows.MOVES`: the sign of the move, and whether each element has its own share of it.
_HOW = {"up": (1, False), "down": (-1, False), "reversed": (1, True), "rounded": (-1, True)}
#: Larger results move as a whole.
_MAX_ELEMENTS = 1 << 16
#: Besides those of `exact_inputs`: operators whose numbers are those of an operand or attribute, and those
#: that `moved_windows` and `moved_transforms` move.
_NOT_MOVED = frozenset(
    {
        "BlackmanWindow",
        "Cast",
        "CastLike",
        "Constant",
        "ConstantOfShape",
        "DFT",
        "HammingWindow",
        "HannWindow",
        "Identity",
        "If",
        "Loop",
        "MaxPool",
        "MaxRoiPool",
        "MaxUnpool",
        "Optional",
        "OptionalGetElement",
        "STFT",
        "Scan",
        "SequenceAt",
    }
)


def move_results(model: bytes, how: str, computed_in: Mapping[str, str]) -> bytes | None:
    """The model with its intermediate results moved; None if it has none.

    how  one of `moved_windows.MOVES`
    """
    import onnx

    proto = onnx.load_from_string(model)
    try:
        proto = onnx.shape_inference.infer_shapes(proto)
    except onnx.shape_inference.InferenceError:
        return None
    counts = [_move_all(graph, how, computed_in, graph is proto.graph) for graph in _graphs(proto.graph)]
    return proto.SerializeToString() if any(counts) else None


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph and the bodies in it, inner ones first."""
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                if body.node:
                    yield from _graphs(body)
    yield graph


def _move_all(graph: Any, how: str, computed_in: Mapping[str, str], outermost: bool) -> int:
    """Moves the results of one graph in place, and what a body gives; how many."""
    types = {item.name: item.type.tensor_type for item in (*graph.value_info, *graph.output)}
    nodes, moved = list(graph.node), dict[str, str]()
    read = {name for node in nodes for name in _reads(node)}
    given = set() if outermost else {item.name for item in graph.output}
    del graph.node[:]
    for node in nodes:
        _rename(node, moved)
        graph.node.append(node)
        if node.domain or node.op_type in _NOT_MOVED or computes_exactly(node):
            continue
        for name in node.output:
            if name in read | given and (factor := _factor(types.get(name), how, computed_in)) is not None:
                moved[name] = f"{name}_moved"
                graph.node.extend(_multiply(name, moved[name], factor))
    for item in graph.output:
        if item.name in given:
            item.name = moved.get(item.name, item.name)
    return len(moved)


def _reads(node: Any) -> Iterator[str]:
    yield from node.input
    for body in _bodies(node):
        for inner in body.node:
            yield from _reads(inner)


def _rename(node: Any, names: Mapping[str, str]) -> None:
    """Renames what a node reads, and what its bodies capture; names are unique in a model."""
    node.input[:] = [names.get(name, name) for name in node.input]
    for body in _bodies(node):
        for inner in body.node:
            _rename(inner, names)


def _bodies(node: Any) -> list[Any]:
    found = [body for item in node.attribute for body in (item.g, *item.graphs)]
    return [body for body in found if body.node]


def _factor(type_: Any, how: str, computed_in: Mapping[str, str]) -> Any:
    """What a result is multiplied by, of its own type; None if it is no float or its type is not known."""
    from onnx import helper, numpy_helper

    if type_ is None or not type_.elem_type:
        return None
    dtype = helper.tensor_dtype_to_np_dtype(type_.elem_type)
    name = computed_in.get(str(dtype), str(dtype))
    if name not in ROUNDING or str(dtype).startswith("complex"):
        return None
    sign, each = _HOW[how]
    most = 2 * ROUNDING[name][0] * sign
    lengths = [one.dim_value if one.HasField("dim_value") else -1 for one in type_.shape.dim]
    known = type_.HasField("shape") and all(length >= 0 for length in lengths)
    if each and known and math.prod(lengths) <= _MAX_ELEMENTS:
        shares = np.random.default_rng(_SEED).integers(-1, 2, lengths)
        return numpy_helper.from_array(np.asarray(1 + most * shares).astype(dtype))
    return numpy_helper.from_array(np.asarray(1 + most).astype(dtype))


def _multiply(name: str, moved: str, factor: Any) -> list[Any]:
    from onnx import helper

    constant = helper.make_node("Constant", [], [f"{name}_factor"], value=factor)
    return [constant, helper.make_node("Mul", [name, f"{name}_factor"], [moved])]
