"""Windows over the spatial axes, shared by convolutions and pools.

Attributes and lengths are those of Conv and the pools in the ONNX operator reference. Windows are drawn so
that no output is longer than its input, pads are smaller than the kernel (as pools require), and each
window holds at least one element that is not padding.
"""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.graph.attribute_domains import planned_attribute
from fuzzing.graph.operator_spec import AttributeSpec, NodeContext
from fuzzing.graph.types import FLOATS

#: bfloat16 came with opset 22.
NARROW = tuple(dtype for dtype in FLOATS if dtype != "bfloat16")

_AUTO = ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
_MOST_PAD = 2
_MOST_DILATION = 3

#: The attributes that `draw` gives; `ceil_mode` is another.
ATTRIBUTE_SPECS: tuple[AttributeSpec, ...] = (
    planned_attribute("auto_pad", "NOTSET"),
    planned_attribute("pads"),
    planned_attribute("kernel_shape"),
    planned_attribute("strides"),
)


def draw(context: NodeContext, *, dilated: bool = True, ceiled: bool = False) -> list[int]:
    """Draws the windows' attributes for the primary input; returns the kernel.

    dilated  whether the operator has `dilations`
    ceiled   whether it has `ceil_mode`
    """
    rng, space = context.rng, context.dims(0)[2:]
    auto = rng.choice(_AUTO) if rng.chance(0.4) else ""
    padded = auto in ("", "NOTSET") and rng.chance(0.5)
    dilated = dilated and not auto.startswith("SAME") and rng.chance(0.3)
    begins, ends, kernel, dilations = [0] * len(space), [0] * len(space), [], []
    for axis, length in enumerate(space):
        if padded:
            begins[axis], ends[axis] = rng.between(0, _MOST_PAD), rng.between(0, _MOST_PAD)
        pad = begins[axis] + ends[axis]
        size = rng.between(pad + 1, max(pad + 1, min(length + pad, context.limits.max_dim)))
        most = (length + pad - 1) // (size - 1) if dilated and size > 1 else 1
        kernel.append(size)
        dilations.append(rng.between(1, min(most, length, _MOST_DILATION)))
    given = context.attributes
    if auto:
        given["auto_pad"] = auto
    if padded or (not auto and rng.chance(0.2)):
        given["pads"] = (*begins, *ends)
    if dilated:
        given["dilations"] = tuple(dilations)
    if rng.chance(0.7):
        # Isra's: up to the length. With SAME the kernel covers the stride: the pads that the reference's
        # formula gives would be negative else, which runtimes cut, ignore or refuse.
        longest = (
            kernel if auto.startswith("SAME") else [min(length, context.limits.max_dim) for length in space]
        )
        given["strides"] = tuple([rng.between(1, most) for most in longest])
    if ceiled and rng.chance(0.3):
        given["ceil_mode"] = 0
        if rng.chance(0.7) and not overhangs(context, space, kernel):
            given["ceil_mode"] = 1
    return kernel


def overhangs(context: NodeContext, space: Sequence[int], kernel: Sequence[int]) -> bool:
    """Whether with `ceil_mode` a window would begin behind the input.

    The reference ignores it, but onnx's own shape inference counts it.
    """
    count = len(space)
    strides = context.get("strides") or (1,) * count
    dilations = context.get("dilations") or (1,) * count
    pads = context.get("pads") or (0,) * (2 * count)
    for axis, length in enumerate(space):
        free = length + pads[axis] + pads[axis + count] - (kernel[axis] - 1) * dilations[axis] - 1
        if -(-free // strides[axis]) * strides[axis] >= length + pads[axis]:
            return True
    return False


def lengths(context: NodeContext, space: Sequence[int], kernel: Sequence[int]) -> list[int]:
    """The shape function: how many windows fit along each spatial axis."""
    count = len(space)
    strides = context.get("strides") or (1,) * count
    dilations = context.get("dilations") or (1,) * count
    auto = context.get("auto_pad") or "NOTSET"
    if auto.startswith("SAME"):
        return [-(-length // stride) for length, stride in zip(space, strides, strict=True)]
    pads = (context.get("pads") if auto == "NOTSET" else None) or (0,) * (2 * count)
    ceil, found = context.get("ceil_mode"), []
    for axis, length in enumerate(space):
        begin, stride = pads[axis], strides[axis]
        free = length + begin + pads[axis + count] - (kernel[axis] - 1) * dilations[axis] - 1
        steps = -(-free // stride) if ceil else free // stride
        if ceil and steps * stride >= length + begin:
            steps -= 1  # a window that would begin behind the input is none
        found.append(steps + 1)
    return found


def paddings(context: NodeContext, space: Sequence[int], kernel: Sequence[int]) -> list[tuple[int, int]]:
    """The padding before and behind each axis with which windows fit exactly; negative where cut."""
    count = len(space)
    strides = context.get("strides") or (1,) * count
    dilations = context.get("dilations") or (1,) * count
    auto = context.get("auto_pad") or "NOTSET"
    pads = context.get("pads") or (0,) * (2 * count)
    found = []
    for axis, out in enumerate(lengths(context, space, kernel)):
        reach = (out - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        begin = pads[axis] if auto == "NOTSET" else 0
        if auto.startswith("SAME"):
            both = max(0, reach - space[axis])
            begin = both // 2 if auto == "SAME_UPPER" else both - both // 2
        found.append((begin, reach - space[axis] - begin))
    return found


def torch_pad(name: str, pads: Sequence[tuple[int, int]], value: str = "") -> str:
    """The torch expression of a tensor with these paddings, in torch's order from the last axis on."""
    if not any(begin or end for begin, end in pads):
        return name
    flat = tuple(number for pair in reversed(pads) for number in pair)
    return f"torch.nn.functional.pad({name}, {flat}{f', value={value}' if value else ''})"
