"""Models whose Fourier transforms moved by a rounding, to measure how sensitive a program is to them.

A fast transform errs by roundings of its largest number (Higham, *Accuracy and Stability of Numerical
Algorithms*, 24), where another one gives 0. Moving the inputs does not show that: zeros among them stay, and
so does what cancels. What Sign or Ceil makes of such a number is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fuzzing.oracles.element_types import ROUNDING

_TRANSFORMS = frozenset({"DFT", "STFT"})
#: Roundings of the largest number by which each number moves, for each of `moved_windows.MOVES`.
_ROUNDINGS = {"up": 1.0, "down": -1.0, "reversed": 0.5, "rounded": -0.5}


def move_transforms(model: bytes, how: str) -> bytes | None:
    """The model with the results of its transforms moved where other nodes read them; None if there are none.

    how  one of `moved_windows.MOVES`
    """
    import onnx

    if not any(name.encode() in model for name in _TRANSFORMS):
        return None
    proto = onnx.load_from_string(model)
    inferred = onnx.shape_inference.infer_shapes(proto)
    dtypes = {item.name: item.type.tensor_type.elem_type for item in inferred.graph.value_info}
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    moved: dict[str, str] = {}
    for node in nodes:
        node.input[:] = [moved.get(name, name) for name in node.input]
        proto.graph.node.append(node)
        if node.op_type in _TRANSFORMS and node.domain in ("", "ai.onnx"):
            own = node.output[0]
            moved[own] = f"{own}_moved"
            proto.graph.node.extend(_move(own, moved[own], dtypes.get(own, 0), _ROUNDINGS[how]))
    return proto.SerializeToString() if moved else None


def _move(own: str, moved: str, dtype: int, roundings: float) -> Iterator[Any]:
    """Nodes that add so many roundings of the largest number to each number."""
    from onnx import TensorProto, helper

    name = "float32" if not dtype else str(helper.tensor_dtype_to_np_dtype(dtype))
    unit = ROUNDING.get(name, ROUNDING["float32"])[0]
    most = helper.make_tensor(f"{own}_unit", TensorProto.DOUBLE, [], [roundings * unit])
    yield helper.make_node("Constant", [], [f"{own}_unit"], value=most)
    yield helper.make_node("Abs", [own], [f"{own}_sizes"])
    yield helper.make_node("ReduceMax", [f"{own}_sizes"], [f"{own}_largest"])
    yield helper.make_node("CastLike", [f"{own}_unit", own], [f"{own}_unit_like"])
    yield helper.make_node("Mul", [f"{own}_largest", f"{own}_unit_like"], [f"{own}_move"])
    yield helper.make_node("Add", [own, f"{own}_move"], [moved])
