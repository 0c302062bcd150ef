"""How nodes of Resize are drawn.

What nearest mode reads depends on whether a quotient of two lengths is rounded up or down; so there only such
factors are drawn that floating point holds exactly. Where linear and cubic interpolation are continuous, any
length will do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fuzzing.graph.operators.joining import growth
from fuzzing.graph.operators.layout import shuffled_axes
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS

#: The factors of nearest mode.
_EXACT = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
#: Where a cut-out begins and ends, in parts of an axis: coordinates then do not fall on the image's border,
#: where rounding tells what is outside.
_STARTS, _ENDS = (0.0, 0.13, -0.21), (1.0, 0.79, 1.27)

#: As ONNX names them (operator reference, Resize-13).
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
CUBIC_COEFFICIENTS = (-0.75, -0.5, -0.6)


@dataclass
class Plan:
    """What the inputs say: of the axes that are written down, all if `axes` is None."""

    axes: list[int]
    roi: list[float] | None = None
    scales: list[float] | None = None
    sizes: list[int] | None = None


def draw(site: Site) -> Plan:
    """Draws the attributes of a node; returns what its inputs say."""
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
    plan = Plan([axis % site.rank for axis in axes])
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
    names = (*COORDINATES, "half_pixel_symmetric") if site.operator.since >= 19 else COORDINATES
    name = "tf_crop_and_resize" if crops else site.draws.choice(names)
    if name != "half_pixel" or site.draws.chance(0.5):
        site.attributes["coordinate_transformation_mode"] = name
    if mode == "nearest" and site.draws.chance(0.7):
        site.attributes["nearest_mode"] = site.draws.choice(NEAREST)


def _refine(site: Site, mode: str, crops: bool) -> None:
    """The attributes that have a meaning in some modes only."""
    draws, attributes = site.draws, site.attributes
    if crops and draws.chance(0.7):
        attributes["extrapolation_value"] = draws.choice((0.0, 1.0))
    if mode == "nearest":
        return
    if mode == "cubic":
        if draws.chance(0.4):
            attributes["cubic_coeff_a"] = draws.choice(CUBIC_COEFFICIENTS)
        if draws.chance(0.3) and not crops:
            attributes["exclude_outside"] = draws.below(2)
    if site.operator.since >= 18 and not crops and draws.chance(0.3):
        attributes["antialias"] = draws.below(2)


def _draw_sizes(site: Site, plan: Plan, stretched: list[int], mode: str, crops: bool) -> None:
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
    factor = common_factor(policy, sizes, lengths)
    products = [factor * length for length in lengths]
    tied = any(abs(product % 1 - 0.5) < 0.01 for product in products)
    large = factor > 4 or math.prod(products) > math.prod(lengths) * growth(site)
    if not tied and not large and min(products) >= 0.6:
        site.attributes["keep_aspect_ratio_policy"] = policy


def common_factor(policy: str, sizes: list[int], lengths: list[int]) -> float:
    """The factor of all axes under `keep_aspect_ratio_policy` (ONNX operator reference, Resize-18)."""
    factors = [size / length for size, length in zip(sizes, lengths, strict=True)]
    return max(factors) if policy == "not_smaller" else min(factors)


def _draw_scales(site: Site, plan: Plan, stretched: list[int], mode: str) -> None:
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
