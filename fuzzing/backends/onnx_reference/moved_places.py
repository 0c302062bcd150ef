"""Models whose Resize and GridSample find their places moved by some roundings.

A place is computed from lengths, scales and a region, which do not move: constants, and integers. Whether it
is beyond the image, and which element is nearest, depends on the rounding where the formula divides by what
is no power of two. The note in `doc_string` is read by `sampling`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_OPERATORS = frozenset({"GridSample", "Resize"})
#: By one of `moved_windows.MOVES`: the signs of a node's axes, in turn; every other node has them exchanged.
_SIGNS = {"up": (1, 1), "reversed": (1, -1), "down": (-1, -1), "rounded": (-1, 1)}
_NOTE = "places moved by "
#: In parts of a place: four roundings of float32.
_STEP = 2.0**-22


def move_places(model: bytes, how: str) -> bytes | None:
    """The model with a note on each of these nodes; None if there are none.

    how  one of `moved_windows.MOVES`
    """
    import onnx

    if not any(name.encode() in model for name in _OPERATORS):
        return None
    proto = onnx.load_from_string(model)
    found = [node for node in _nodes(proto.graph) if node.op_type in _OPERATORS and not node.domain]
    for number, node in enumerate(found):
        signs = _SIGNS[how][:: -1 if number % 2 else 1]
        node.doc_string = f"{_NOTE}{signs[0]} {signs[1]}"
    return proto.SerializeToString() if found else None


def noted_move(note: str, axis: int) -> float:
    """By how much a node with this `doc_string` moves its places along an axis, in parts of them."""
    return int(note[len(_NOTE) :].split()[axis % 2]) * _STEP if note.startswith(_NOTE) else 0.0


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body)
