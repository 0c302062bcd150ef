"""Resize, in all its modes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fuzzing.graph.attribute_domains import Choice, Computed, planned_attribute
from fuzzing.graph.constants import known_integers, make_constant, numbers
from fuzzing.graph.intervals import Interval, hull
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    NodeContext,
    OperatorSpec,
    int64,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.resize_generator import COORDINATES, NEAREST, draw, find_common_factor
from fuzzing.graph.rounding import after_rounding, share
from fuzzing.graph.types import ANY, FLOATS, Dim, TensorType


def _roi_input(context: NodeContext) -> Constant | None:
    return None if context.plan.roi is None else make_constant("float32", context.plan.roi)


def _scales_input(context: NodeContext) -> Constant | None:
    return None if context.plan.scales is None else make_constant("float32", context.plan.scales)


def _axes(context: NodeContext) -> list[int]:
    axes = context.get("axes")
    return list(range(context.rank)) if axes is None else [axis % context.rank for axis in axes]


def _resized(context: NodeContext) -> tuple[TensorType, ...]:
    shape: list[Dim] = list(context.shape)
    axes = _axes(context)
    for axis, length in zip(axes, _new_lengths(context, axes), strict=True):
        shape[axis] = length
    return (TensorType(context.dtype, tuple(shape)),)


def _new_lengths(context: NodeContext, axes: list[int]) -> list[Dim]:
    lengths = [context.shape[axis] for axis in axes]
    known = [length for length in lengths if length is not None]
    if context.given(3):
        sizes = known_integers(context, 3)
        policy = context.get("keep_aspect_ratio_policy") or "stretch"
        if sizes is None or (policy != "stretch" and len(known) < len(axes)):
            return [None] * len(axes)
        if policy == "stretch":
            return list(sizes)
        factor = find_common_factor(policy, sizes, known)
        return [math.floor(factor * length + 0.5) for length in known]
    scales = context.constants[2] if context.given(2) else None
    if scales is None:
        return [None] * len(axes)
    return [
        None if length is None else math.floor(np.float32(length) * factor)
        for length, factor in zip(lengths, numbers(scales), strict=True)
    ]


#: Room for what cubic curves overshoot: twice along each of two axes.
_WITHIN = {dtype: share(4 if dtype in FLOATS else 1)(TensorType(dtype, ())) for dtype in ANY}


def _within(type_: TensorType) -> Interval:
    return _WITHIN[type_.dtype]


def _bounds(context: NodeContext) -> Interval:
    found = context.range(0)
    mode = context.get("mode")
    if mode == "linear":
        found = after_rounding(found, context.dtype)
    elif mode == "cubic":
        largest = found.largest * overshoot(context) ** 2
        found = Interval(-largest, largest)
    if context.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        value = float(context.get("extrapolation_value"))
        found = hull((found, Interval(value, value)))
    return found


def overshoot(context: NodeContext) -> float:
    """The bound of a cubic curve relative to its elements' magnitude, for each of its two axes.

    At the fraction t the two outer weights have the magnitude |a| t (1 - t) together and all four add up
    to 1: their magnitudes add up to 1 + 2 |a| t (1 - t), 1 + |a| / 2 at most. Where weights are left out and
    the rest normalized (outside of the image, in the wider filter against aliasing), 2 bounds it for the
    coefficients in use; the tests try the positions of small images.
    """
    if context.get("exclude_outside") or context.get("antialias"):
        return 2.0
    return 1.005 + abs(float(context.get("cubic_coeff_a"))) / 2


_TORCH_LINEAR = {3: "linear", 4: "bilinear", 5: "trilinear"}


def _torch_resize(context: NodeContext, names: Sequence[str]) -> str | None:
    """Only what `interpolate` does: images, resized in all axes but batch and channels."""
    shape, size = context.shape, _resized(context)[0].shape or ()
    if context.rank not in _TORCH_LINEAR or None in shape or None in size or shape[:2] != size[:2]:
        return None
    if not _whole(context) or any(context.get(name) for name in ("exclude_outside", "antialias")):
        return None
    mode = _torch_mode(context, min(length or 0 for length in size[2:]))
    return mode and f"torch.nn.functional.interpolate({names[0]}, size={size[2:]}, {mode})"


def _whole(context: NodeContext) -> bool:
    """Whether each length times its scale is the new length: torch computes with their quotient."""
    scales = context.constants[2] if context.given(2) else None
    if scales is None:
        return True
    pairs = zip(_axes(context), numbers(scales).tolist(), strict=True)
    return all((context.dims(0)[axis] * factor).is_integer() for axis, factor in pairs)


def _torch_mode(context: NodeContext, shortest: int) -> str | None:
    """Torch's name of the mode, if it has it. Length 1 is a special case."""
    mode, coordinates = context.get("mode"), context.get("coordinate_transformation_mode")
    if mode == "nearest":
        how = (coordinates, context.get("nearest_mode"))
        names = {("asymmetric", "floor"): "nearest", ("half_pixel", "round_prefer_ceil"): "nearest-exact"}
        return f"mode={names[how]!r}" if how in names else None
    if coordinates not in ("half_pixel", "align_corners") + (("pytorch_half_pixel",) if shortest > 1 else ()):
        return None
    if mode == "cubic" and (context.rank != 4 or context.get("cubic_coeff_a") != -0.75):
        return None
    name = "bicubic" if mode == "cubic" else _TORCH_LINEAR[context.rank]
    return f"mode={name!r}, align_corners={coordinates == 'align_corners'}"


def _choice(name: str, *values: Attribute, default: Attribute) -> AttributeSpec:
    return planned_attribute(name, default, Choice(*values))


def _some_axes(value: Attribute, context: NodeContext) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(axis, int) and -context.rank <= axis < context.rank for axis in value
    )


def _number(name: str, default: float) -> AttributeSpec:
    return planned_attribute(
        name, default, Computed(lambda context: default, lambda value, context: isinstance(value, float))
    )


def _resize(since: int) -> OperatorSpec:
    coordinates = (*COORDINATES, "tf_crop_and_resize") + (("half_pixel_symmetric",) if since >= 19 else ())
    attribute_specs = [
        _choice("mode", "nearest", "linear", "cubic", default="nearest"),
        _choice("coordinate_transformation_mode", *coordinates, default="half_pixel"),
        _choice("nearest_mode", *NEAREST, default="round_prefer_floor"),
        _choice("exclude_outside", 0, 1, default=0),
        _number("cubic_coeff_a", -0.75),
        _number("extrapolation_value", 0.0),
    ]
    if since >= 18:
        attribute_specs += [
            _choice("antialias", 0, 1, default=0),
            _choice("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller", default="stretch"),
            planned_attribute(
                "axes", domain=Computed(lambda context: tuple(range(context.rank)), _some_axes)
            ),
        ]
    return OperatorSpec(
        "Resize",
        since,
        input_specs=(
            PRIMARY_INPUT,
            ConstantInput(_roi_input),
            ConstantInput(_scales_input),
            ConstantInput(lambda context: int64(*context.plan.sizes)),
        ),
        degrees=(3, 4),
        ranks=(1, 2, 3, 4, 5),
        infer=_resized,
        values=_bounds,
        within=_within,
        dtypes=ANY,
        plan=draw,
        attribute_specs=tuple(attribute_specs),
        torch=_torch_resize,
    )


register(_resize(13), _resize(18), _resize(19))
