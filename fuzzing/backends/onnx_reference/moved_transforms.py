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
#: By one of `moved_windows.MOVES`: the roundings of the largest number by which that at k of n moves, in
#: parts of n: (k + 1), -(k + 1), (n - k), -(n - k). Ties break in both directions.
_SIGNS = {"up": 1.0, "down": -1.0, "reversed": 1.0, "rounded": -1.0}
_FROM_THE_END = frozenset({"reversed", "rounded"})


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
            proto.graph.node.extend(_move(own, moved[own], dtypes.get(own, 0), how))
    return proto.SerializeToString() if moved else None


def _move(own: str, moved: str, dtype: int, how: str) -> Iterator[Any]:
    """Nodes that move each number by an amount of its own, at most a rounding of the largest."""
    from onnx import TensorProto, helper

    name = "float32" if not dtype else str(helper.tensor_dtype_to_np_dtype(dtype))
    unit = ROUNDING.get(name, ROUNDING["float32"])[0]

    def constant(name: str, kind: int, value: float) -> Any:
        tensor = helper.make_tensor(name, kind, [], [value])
        return helper.make_node("Constant", [], [f"{own}_{name}"], value=tensor)

    def step(op: str, inputs: tuple[str, ...], output: str, **attributes: Any) -> Any:
        return helper.make_node(op, [f"{own}{name}" for name in inputs], [f"{own}{output}"], **attributes)

    places = ("_size", "_zero", "_minus") if how in _FROM_THE_END else ("_one", "_end", "_one")
    yield constant("zero", TensorProto.INT64, 0)
    yield constant("one", TensorProto.INT64, 1)
    yield constant("minus", TensorProto.INT64, -1)
    yield constant("unit", TensorProto.DOUBLE, _SIGNS[how] * unit)
    yield step("Size", ("",), "_size")
    yield step("Add", ("_size", "_one"), "_end")
    yield step("Range", places, "_place")
    yield step("Cast", ("_place",), "_wide", to=TensorProto.DOUBLE)
    yield step("Cast", ("_size",), "_count", to=TensorProto.DOUBLE)
    yield step("Div", ("_wide", "_count"), "_share")
    yield step("Mul", ("_share", "_unit"), "_part")
    yield step("Shape", ("",), "_shape")
    yield step("Reshape", ("_part", "_shape"), "_parts")
    yield step("CastLike", ("_parts", ""), "_own_type")
    yield step("Abs", ("",), "_sizes")
    yield step("ReduceMax", ("_sizes",), "_largest")
    yield step("Mul", ("_largest", "_own_type"), "_move")
    yield helper.make_node("Add", [own, f"{own}_move"], [moved])
