"""Resize, in all its modes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fuzzing.graph.domains import Choice, Made
from fuzzing.graph.intervals import Interval, hull
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.literals import literal, numbers, whole_numbers
from fuzzing.graph.operator import LEAD, Auxiliary, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.resize_draws import COORDINATES, NEAREST, common_factor, draw
from fuzzing.graph.rounding import rounded, share
from fuzzing.graph.site import Site, int64
from fuzzing.graph.types import ANY, FLOATS, Dim, TensorType

# The inputs


def _roi_input(site: Site) -> Constant | None:
    return None if site.plan.roi is None else literal("float32", site.plan.roi)


def _scales_input(site: Site) -> Constant | None:
    return None if site.plan.scales is None else literal("float32", site.plan.scales)


def _sizes_input(site: Site) -> Constant:
    return int64(*site.plan.sizes)


# What comes out


def _axes(site: Site) -> list[int]:
    axes = site.get("axes")
    return list(range(site.rank)) if axes is None else [axis % site.rank for axis in axes]


def _resized(site: Site) -> tuple[TensorType, ...]:
    shape: list[Dim] = list(site.shape)
    axes = _axes(site)
    for axis, length in zip(axes, _new_lengths(site, axes), strict=True):
        shape[axis] = length
    return (TensorType(site.dtype, tuple(shape)),)


def _new_lengths(site: Site, axes: list[int]) -> list[Dim]:
    lengths = [site.shape[axis] for axis in axes]
    known = [length for length in lengths if length is not None]
    if site.given(3):
        sizes = whole_numbers(site, 3)
        policy = site.get("keep_aspect_ratio_policy") or "stretch"
        if sizes is None or (policy != "stretch" and len(known) < len(axes)):
            return [None] * len(axes)
        if policy == "stretch":
            return list(sizes)
        factor = common_factor(policy, sizes, known)
        return [math.floor(factor * length + 0.5) for length in known]
    scales = site.constants[2] if site.given(2) else None
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


def _bounds(site: Site) -> Interval:
    found = site.range(0)
    mode = site.get("mode")
    if mode == "linear":
        found = rounded(found, site.dtype)
    elif mode == "cubic":
        largest = found.largest * overshoot(site) ** 2
        found = Interval(-largest, largest)
    if site.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        value = float(site.get("extrapolation_value"))
        found = hull((found, Interval(value, value)))
    return found


def overshoot(site: Site) -> float:
    """How much larger than the elements a cubic curve through them may be, for each of its two axes.

    At the fraction t the two outer weights have the magnitude |a| t (1 - t) together and all four add up
    to 1: their magnitudes add up to 1 + 2 |a| t (1 - t), 1 + |a| / 2 at most. Where weights are left out and
    the rest made to add up to 1 (outside of the image, in the wider filter against aliasing), 2 bounds it for
    the coefficients in use; the tests try the positions of small images.
    """
    if site.get("exclude_outside") or site.get("antialias"):
        return 2.0
    return 1.005 + abs(float(site.get("cubic_coeff_a"))) / 2


# In torch

_TORCH_LINEAR = {3: "linear", 4: "bilinear", 5: "trilinear"}


def _torch_resize(site: Site, names: Sequence[str]) -> str | None:
    """What `interpolate` does: images, of which all but batch and channels become a given size."""
    shape, size = site.shape, _resized(site)[0].shape or ()
    if site.rank not in _TORCH_LINEAR or None in shape or None in size or shape[:2] != size[:2]:
        return None
    if not _whole(site) or any(site.get(name) for name in ("exclude_outside", "antialias")):
        return None
    mode = _torch_mode(site, min(length or 0 for length in size[2:]))
    return mode and f"torch.nn.functional.interpolate({names[0]}, size={size[2:]}, {mode})"


def _whole(site: Site) -> bool:
    """Whether each length times its scale is the new length: torch reckons with the quotient of the two."""
    scales = site.constants[2] if site.given(2) else None
    if scales is None:
        return True
    pairs = zip(_axes(site), numbers(scales).tolist(), strict=True)
    return all((site.dims(0)[axis] * factor).is_integer() for axis, factor in pairs)


def _torch_mode(site: Site, shortest: int) -> str | None:
    """How torch calls the mode, if it has it. The shortest new length decides where 1 is a special case."""
    mode, coordinates = site.get("mode"), site.get("coordinate_transformation_mode")
    if mode == "nearest":
        how = (coordinates, site.get("nearest_mode"))
        names = {("asymmetric", "floor"): "nearest", ("half_pixel", "round_prefer_ceil"): "nearest-exact"}
        return f"mode={names[how]!r}" if how in names else None
    if coordinates not in ("half_pixel", "align_corners") + (("pytorch_half_pixel",) if shortest > 1 else ()):
        return None
    if mode == "cubic" and (site.rank != 4 or site.get("cubic_coeff_a") != -0.75):
        return None
    name = "bicubic" if mode == "cubic" else _TORCH_LINEAR[site.rank]
    return f"mode={name!r}, align_corners={coordinates == 'align_corners'}"


def _choice(name: str, *values: Attribute, default: Attribute) -> Setting:
    return planned(name, default, Choice(*values))


def _some_axes(value: Attribute, site: Site) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(axis, int) and -site.rank <= axis < site.rank for axis in value
    )


def _number(name: str, default: float) -> Setting:
    return planned(name, default, Made(lambda site: default, lambda value, site: isinstance(value, float)))


def _resize(since: int) -> Operator:
    coordinates = (*COORDINATES, "tf_crop_and_resize") + (("half_pixel_symmetric",) if since >= 19 else ())
    settings = [
        _choice("mode", "nearest", "linear", "cubic", default="nearest"),
        _choice("coordinate_transformation_mode", *coordinates, default="half_pixel"),
        _choice("nearest_mode", *NEAREST, default="round_prefer_floor"),
        _choice("exclude_outside", 0, 1, default=0),
        _number("cubic_coeff_a", -0.75),
        _number("extrapolation_value", 0.0),
    ]
    if since >= 18:
        settings += [
            _choice("antialias", 0, 1, default=0),
            _choice("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller", default="stretch"),
            planned("axes", domain=Made(lambda site: tuple(range(site.rank)), _some_axes)),
        ]
    return Operator(
        "Resize",
        since,
        slots=(LEAD, Auxiliary(_roi_input), Auxiliary(_scales_input), Auxiliary(_sizes_input)),
        degrees=(3, 4),
        ranks=(1, 2, 3, 4, 5),
        infer=_resized,
        values=_bounds,
        within=_within,
        dtypes=ANY,
        plan=draw,
        settings=tuple(settings),
        torch=_torch_resize,
    )


register(_resize(13), _resize(18), _resize(19))
