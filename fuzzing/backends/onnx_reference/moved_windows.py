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


#: What becomes of the number at k of n, in parts of the largest move m: it grows by (k + 1)/n, shrinks by
#: that, grows by (n - k)/n, or becomes the nearest multiple of 2 m, so that near numbers become equal.
MOVES = ("up", "down", "reversed", "rounded")


def move_windows(model: bytes, how: str) -> bytes | None:
    """The model with each number of its windows moved by an amount of its own; None if it has no windows.

    how  one of MOVES
    """
    import onnx

    if not any(name.encode() in model for name in _WINDOWS):
        return None
    proto = onnx.load_from_string(model)
    moved = [_move_all(graph, how) for graph in _graphs(proto.graph)]
    return proto.SerializeToString() if any(moved) else None


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph and the bodies in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                if body.node:
                    yield from _graphs(body)


def _move_all(graph: Any, how: str) -> bool:
    """Moves the windows of one graph in place; whether it has any."""
    nodes = list(graph.node)
    if not any(_is_window(node) for node in nodes):
        return False
    del graph.node[:]
    for node in nodes:
        graph.node.append(node)
        if _is_window(node):
            graph.node.extend(_move(graph.node[-1], how))
    return True


def _is_window(node: Any) -> bool:
    return node.op_type in _WINDOWS and node.domain in ("", "ai.onnx")


def _move(node: Any, how: str) -> list[Any]:
    """Nodes that move the numbers of a window, which itself gets another name."""
    from onnx import TensorProto, helper

    dtype = next((one.i for one in node.attribute if one.name == "output_datatype"), TensorProto.FLOAT)
    type_name = str(helper.tensor_dtype_to_np_dtype(dtype))
    if type_name not in ROUNDING:
        return []
    most = _ROUNDINGS * ROUNDING[type_name][0]
    moved, own = node.output[0], f"{node.output[0]}_not_moved"
    node.output[0] = own

    def constant(name: str, kind: int, value: float) -> Any:
        tensor = helper.make_tensor(name, kind, [], [value])
        return helper.make_node("Constant", [], [f"{own}_{name}"], value=tensor)

    def apply(op: str, inputs: tuple[str, ...], output: str, **attributes: Any) -> Any:
        return helper.make_node(op, [f"{own}{name}" for name in inputs], [output], **attributes)

    def step(op: str, inputs: tuple[str, ...], output: str, **attributes: int) -> Any:
        return apply(op, inputs, f"{own}{output}", **attributes)

    if how == "rounded":
        return [
            constant("grid", TensorProto.DOUBLE, 2 * most),
            step("Cast", ("",), "_wide", to=TensorProto.DOUBLE),
            step("Div", ("_wide", "_grid"), "_many"),
            step("Round", ("_many",), "_whole"),
            step("Mul", ("_whole", "_grid"), "_near"),
            apply("CastLike", ("_near", ""), moved),
        ]
    places = ("_one", "_end", "_one") if how != "reversed" else ("_size", "_zero", "_minus")
    return [
        constant("zero", TensorProto.INT64, 0),
        constant("one", TensorProto.INT64, 1),
        constant("minus", TensorProto.INT64, -1),
        constant("most", TensorProto.DOUBLE, -most if how == "down" else most),
        step("Size", ("",), "_size"),
        step("Add", ("_size", "_one"), "_end"),
        step("Range", places, "_place"),
        step("Cast", ("_place",), "_wide", to=TensorProto.DOUBLE),
        step("Cast", ("_size",), "_count", to=TensorProto.DOUBLE),
        step("Div", ("_wide", "_count"), "_share"),
        step("Mul", ("_share", "_most"), "_move"),
        step("CastLike", ("_move", ""), "_own_type"),
        apply("Add", ("", "_own_type"), moved),
    ]
