"""Models whose window functions moved by some roundings, to measure how sensitive a program is to them.

HannWindow, HammingWindow and BlackmanWindow compute cosines of a length, an integer that does not move as
float inputs do. Which of two equal numbers of a window is the smaller one, and how many numbers are distinct,
depends on the rounding of the cosine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fuzzing.oracles.element_types import ROUNDING

_WINDOWS = frozenset({"HannWindow", "HammingWindow", "BlackmanWindow"})
#: Roundings by which each number moves at most: those of the angle, of two cosines and of their sum.
_ROUNDINGS = 8


def move_windows(model: bytes, sign: int) -> bytes | None:
    """The model with each number of its windows moved by an amount of its own; None if it has no windows.

    sign  1 or -1; the number at k of n moves by `sign`·(k + 1)/n of the largest move
    """
    import onnx

    if not any(name.encode() in model for name in _WINDOWS):
        return None
    proto = onnx.load_from_string(model)
    moved = [_move_all(graph, sign) for graph in _graphs(proto.graph)]
    return proto.SerializeToString() if any(moved) else None


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph and the bodies in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                if body.node:
                    yield from _graphs(body)


def _move_all(graph: Any, sign: int) -> bool:
    """Moves the windows of one graph in place; whether it has any."""
    nodes = list(graph.node)
    if not any(_is_window(node) for node in nodes):
        return False
    del graph.node[:]
    for node in nodes:
        graph.node.append(node)
        if _is_window(node):
            graph.node.extend(_shift(graph.node[-1], sign))
    return True


def _is_window(node: Any) -> bool:
    return node.op_type in _WINDOWS and node.domain in ("", "ai.onnx")


def _shift(node: Any, sign: int) -> list[Any]:
    """Nodes that add the moves; the window itself gets another name."""
    from onnx import TensorProto, helper

    dtype = next((one.i for one in node.attribute if one.name == "output_datatype"), TensorProto.FLOAT)
    type_name = str(helper.tensor_dtype_to_np_dtype(dtype))
    if type_name not in ROUNDING:
        return []
    most = sign * _ROUNDINGS * ROUNDING[type_name][0]
    moved, own = node.output[0], f"{node.output[0]}_not_moved"
    node.output[0] = own

    def constant(name: str, kind: int, value: float) -> Any:
        tensor = helper.make_tensor(name, kind, [], [value])
        return helper.make_node("Constant", [], [f"{own}_{name}"], value=tensor)

    def apply(op: str, inputs: tuple[str, ...], output: str, **attributes: int) -> Any:
        return helper.make_node(op, inputs, [output], **attributes)

    name = {part: f"{own}_{part}" for part in ("size", "place", "wide", "count", "share", "step", "move")}
    return [
        constant("zero", TensorProto.INT64, 0),
        constant("one", TensorProto.INT64, 1),
        constant("most", TensorProto.DOUBLE, most),
        apply("Size", (own,), name["size"]),
        apply("Range", (f"{own}_zero", name["size"], f"{own}_one"), name["place"]),
        apply("Add", (name["place"], f"{own}_one"), name["step"]),
        apply("Cast", (name["step"],), name["wide"], to=TensorProto.DOUBLE),
        apply("Cast", (name["size"],), name["count"], to=TensorProto.DOUBLE),
        apply("Div", (name["wide"], name["count"]), name["share"]),
        apply("Mul", (name["share"], f"{own}_most"), name["move"]),
        apply("CastLike", (name["move"], own), f"{own}_move_like"),
        apply("Add", (own, f"{own}_move_like"), moved),
    ]
