"""Resize, in all its modes.

What it reads between the elements of nearest mode depends on whether a quotient of two lengths is rounded up
or down; so there only such factors are drawn that floating point holds exactly. Where linear and cubic
interpolation are continuous, any length will do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fuzzing.graph.domains import Choice, Made
from fuzzing.graph.intervals import Interval, hull
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.literals import PLANNED, literal, numbers, whole_numbers
from fuzzing.graph.operator import LEAD, Auxiliary, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.operators.joining import growth
from fuzzing.graph.operators.layout import shuffled_axes
from fuzzing.graph.rounding import rounded, share
from fuzzing.graph.site import Site, int64
from fuzzing.graph.types import ANY, FLOATS, Dim, TensorType

#: The factors of nearest mode.
_EXACT = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
#: Where a cut-out begins and ends, in parts of an axis: coordinates then do not fall on the image's border,
#: where rounding tells what is outside.
_STARTS, _ENDS = (0.0, 0.13, -0.21), (1.0, 0.79, 1.27)
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
_CUBIC_COEFFICIENTS = (-0.75, -0.5, -0.6)


@dataclass
class _Plan:
    """What the inputs say: of the axes that are written down, all if `axes` is None."""

    axes: list[int]
    roi: list[float] | None = None
    scales: list[float] | None = None
    sizes: list[int] | None = None


def _plan(site: Site) -> _Plan:
    draws, attributes = site.draws, site.attributes
    mode = _mode(site)
    if mode != "nearest" or draws.chance(0.3):
        attributes["mode"] = mode
    stretched = _stretched(site, mode)
    axes = list(range(site.rank))
    if site.operator.since >= 18 and draws.chance(0.5):
        others = [axis for axis in axes if axis not in stretched and draws.chance(0.2)]
        axes = shuffled_axes(site, sorted(stretched + others), site.rank)
        attributes["axes"] = tuple(axes)
    plan = _Plan([axis % site.rank for axis in axes])
    crops = draws.chance(0.15)
    _coordinates(site, mode, crops)
    if site.degree == 4:
        _draw_sizes(site, plan, stretched, mode, crops)
    else:
        _draw_scales(site, plan, stretched, mode)
    _refine(site, mode, crops)
    if crops or draws.chance(0.1):
        plan.roi = _roi(site, plan.axes, stretched)
    return plan


def _mode(site: Site) -> str:
    """What onnxruntime has for the rank; between whole numbers nobody says how to round."""
    if site.dtype not in FLOATS or site.rank == 1:
        return "nearest"
    modes = ("nearest", "linear", "cubic") if site.rank in (2, 4) else ("nearest", "linear")
    return site.draws.choice(modes)


def _stretched(site: Site, mode: str) -> list[int]:
    """The axes whose length may change: not the first two of images in linear and cubic mode."""
    if site.rank < 4 or (mode == "nearest" and site.draws.chance(0.2)):
        axes = list(range(site.rank))
    else:
        axes = list(range(2, site.rank))
    return axes


def _coordinates(site: Site, mode: str, crops: bool) -> None:
    """Which element of the input one of the output stands for."""
    names = (*_COORDINATES, "half_pixel_symmetric") if site.operator.since >= 19 else _COORDINATES
    name = "tf_crop_and_resize" if crops else site.draws.choice(names)
    if name != "half_pixel" or site.draws.chance(0.5):
        site.attributes["coordinate_transformation_mode"] = name
    if mode == "nearest" and site.draws.chance(0.7):
        site.attributes["nearest_mode"] = site.draws.choice(_NEAREST)


def _refine(site: Site, mode: str, crops: bool) -> None:
    """The attributes that have a meaning in some modes only."""
    draws, attributes = site.draws, site.attributes
    if crops and draws.chance(0.7):
        attributes["extrapolation_value"] = draws.choice((0.0, 1.0))
    if mode == "nearest":
        return
    if mode == "cubic":
        if draws.chance(0.4):
            attributes["cubic_coeff_a"] = draws.choice(_CUBIC_COEFFICIENTS)
        if draws.chance(0.3) and not crops:
            attributes["exclude_outside"] = draws.below(2)
    if site.operator.since >= 18 and not crops and draws.chance(0.3):
        attributes["antialias"] = draws.below(2)


def _draw_sizes(site: Site, plan: _Plan, stretched: list[int], mode: str, crops: bool) -> None:
    plan.sizes = []
    left = growth(site)
    for axis in plan.axes:
        length = site.dims(0)[axis]
        size = length
        if axis in stretched:
            most = min(length * left, max(length, 2 * site.limits.max_dim))
            size = _exact_size(site, length, most) if mode == "nearest" else site.draws.between(1, most)
        left = max(1, left * length // max(length, size))
        plan.sizes.append(size)
    if site.operator.since >= 18 and mode != "nearest" and not crops and site.draws.chance(0.3):
        _keep_aspect(site, plan.axes, plan.sizes, stretched)


def _exact_size(site: Site, length: int, most: int) -> int:
    sizes = [int(length * factor) for factor in _EXACT if (length * factor).is_integer()]
    return site.draws.choice([size for size in sizes if 1 <= size <= most] or [length])


def _keep_aspect(site: Site, axes: list[int], sizes: list[int], stretched: list[int]) -> None:
    """One factor for all axes, if it gives a length to each that rounding does not decide."""
    # onnxruntime 1.31 forgets the policy for axes that are counted from the end.
    if not set(axes) <= set(stretched) or min(site.get("axes") or (0,)) < 0:
        return
    policy = site.draws.choice(("not_larger", "not_smaller", "stretch"))
    lengths = [site.dims(0)[axis] for axis in axes]
    factor = _common_factor(policy, sizes, lengths)
    products = [factor * length for length in lengths]
    tied = any(abs(product % 1 - 0.5) < 0.01 for product in products)
    large = factor > 4 or math.prod(products) > math.prod(lengths) * growth(site)
    if not tied and not large and min(products) >= 0.6:
        site.attributes["keep_aspect_ratio_policy"] = policy


def _common_factor(policy: str, sizes: list[int], lengths: list[int]) -> float:
    factors = [size / length for size, length in zip(sizes, lengths, strict=True)]
    return max(factors) if policy == "not_smaller" else min(factors)


def _draw_scales(site: Site, plan: _Plan, stretched: list[int], mode: str) -> None:
    """Exact factors; between elements also such that give a length and a quarter, which is rounded down."""
    draws = site.draws
    plan.scales = []
    left = growth(site)
    unchanged = draws.chance(0.1)
    for axis in plan.axes:
        length = site.dims(0)[axis]
        factor = 1.0
        if axis in stretched and not unchanged:
            exact = [item for item in _EXACT if length * item >= 1 and item <= left]
            factor = draws.choice(exact or [1.0])
            if mode != "nearest" and draws.chance(0.5):
                factor = (draws.between(1, min(length * left, 2 * length + 1)) + 0.25) / length
        left = max(1, int(left // max(1.0, factor)))
        plan.scales.append(factor)


def _roi(site: Site, axes: list[int], stretched: list[int]) -> list[float]:
    """Starts, then ends; all of an axis that is not stretched."""
    draws = site.draws
    starts = [draws.choice(_STARTS) if axis in stretched else 0.0 for axis in axes]
    ends = [draws.choice(_ENDS) if axis in stretched else 1.0 for axis in axes]
    return starts + ends


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
        factor = _common_factor(policy, sizes, known)
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


_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def _choice(name: str, *values: Attribute, default: Attribute) -> Setting:
    return Setting(name, Choice(*values), omit=PLANNED, default=default)


def _some_axes(value: Attribute, site: Site) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(axis, int) and -site.rank <= axis < site.rank for axis in value
    )


def _number(name: str, default: float) -> Setting:
    return Setting(
        name, Made(lambda site: default, lambda value, site: isinstance(value, float)), PLANNED, default
    )


def _resize(since: int) -> Operator:
    coordinates = (*_COORDINATES, "tf_crop_and_resize") + (("half_pixel_symmetric",) if since >= 19 else ())
    settings = [
        _choice("mode", "nearest", "linear", "cubic", default="nearest"),
        _choice("coordinate_transformation_mode", *coordinates, default="half_pixel"),
        _choice("nearest_mode", *_NEAREST, default="round_prefer_floor"),
        _choice("exclude_outside", 0, 1, default=0),
        _number("cubic_coeff_a", -0.75),
        _number("extrapolation_value", 0.0),
    ]
    if since >= 18:
        settings += [
            _choice("antialias", 0, 1, default=0),
            _choice("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller", default="stretch"),
            Setting("axes", Made(lambda site: tuple(range(site.rank)), _some_axes), omit=PLANNED),
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
        plan=_plan,
        settings=tuple(settings),
        torch=_torch_resize,
    )


register(_resize(13), _resize(18), _resize(19))
