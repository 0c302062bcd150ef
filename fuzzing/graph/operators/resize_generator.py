"""Draws nodes of Resize.

What nearest mode reads depends on the rounding of a quotient of two lengths, so only factors exact in
floating point are drawn there. Linear and cubic interpolation are continuous and take any length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fuzzing.graph.operator_spec import NodeContext
from fuzzing.graph.operators.concat_split import max_growth
from fuzzing.graph.operators.layout import shuffled_axes
from fuzzing.graph.types import FLOATS

#: The factors of nearest mode.
_EXACT = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
#: Where a cut-out begins and ends, in parts of an axis: coordinates then do not fall on the image's border,
#: where rounding decides what is outside.
_STARTS, _ENDS = (0.0, 0.13, -0.21), (1.0, 0.79, 1.27)

#: As ONNX names them (operator reference, Resize-13).
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
CUBIC_COEFFICIENTS = (-0.75, -0.5, -0.6)


@dataclass
class Plan:
    """The inputs' contents: for the axes as written, all if `axes` is None."""

    axes: list[int]
    roi: list[float] | None = None
    scales: list[float] | None = None
    sizes: list[int] | None = None


def draw(context: NodeContext) -> Plan:
    """Draws the attributes of a node; returns its inputs' contents."""
    rng, attributes = context.rng, context.attributes
    mode = _mode(context)
    if mode != "nearest" or rng.chance(0.3):
        attributes["mode"] = mode
    stretched = _stretched(context, mode)
    axes = list(range(context.rank))
    if context.operator.since >= 18 and rng.chance(0.5):
        others = [axis for axis in axes if axis not in stretched and rng.chance(0.2)]
        axes = shuffled_axes(context, sorted(stretched + others), context.rank)
        attributes["axes"] = tuple(axes)
    plan = Plan([axis % context.rank for axis in axes])
    crops = rng.chance(0.15)
    _coordinates(context, mode, crops)
    if context.degree == 4:
        _draw_sizes(context, plan, stretched, mode, crops)
    else:
        _draw_scales(context, plan, stretched, mode)
    _refine(context, mode, crops)
    if crops or rng.chance(0.1):
        plan.roi = _roi(context, plan.axes, stretched)
    return plan


def _mode(context: NodeContext) -> str:
    """The modes that onnxruntime has for the rank; rounding between integers is unspecified."""
    if context.dtype not in FLOATS or context.rank == 1:
        return "nearest"
    modes = ("nearest", "linear", "cubic") if context.rank in (2, 4) else ("nearest", "linear")
    return context.rng.choice(modes)


def _stretched(context: NodeContext, mode: str) -> list[int]:
    """The axes whose length may change: not the first two of images in linear and cubic mode."""
    if context.rank < 4 or (mode == "nearest" and context.rng.chance(0.2)):
        axes = list(range(context.rank))
    else:
        axes = list(range(2, context.rank))
    return axes


def _coordinates(context: NodeContext, mode: str, crops: bool) -> None:
    names = (*COORDINATES, "half_pixel_symmetric") if context.operator.since >= 19 else COORDINATES
    name = "tf_crop_and_resize" if crops else context.rng.choice(names)
    if name != "half_pixel" or context.rng.chance(0.5):
        context.attributes["coordinate_transformation_mode"] = name
    if mode == "nearest" and context.rng.chance(0.7):
        context.attributes["nearest_mode"] = context.rng.choice(NEAREST)


def _refine(context: NodeContext, mode: str, crops: bool) -> None:
    rng, attributes = context.rng, context.attributes
    if crops and rng.chance(0.7):
        attributes["extrapolation_value"] = rng.choice((0.0, 1.0))
    if mode == "nearest":
        return
    if mode == "cubic":
        if rng.chance(0.4):
            attributes["cubic_coeff_a"] = rng.choice(CUBIC_COEFFICIENTS)
        if rng.chance(0.3) and not crops:
            attributes["exclude_outside"] = rng.below(2)
    if context.operator.since >= 18 and not crops and rng.chance(0.3):
        attributes["antialias"] = rng.below(2)


def _draw_sizes(context: NodeContext, plan: Plan, stretched: list[int], mode: str, crops: bool) -> None:
    plan.sizes = []
    left = max_growth(context)
    for axis in plan.axes:
        length = context.dims(0)[axis]
        size = length
        if axis in stretched:
            most = min(length * left, max(length, 2 * context.limits.max_dim))
            size = _exact_size(context, length, most) if mode == "nearest" else context.rng.between(1, most)
        left = max(1, left * length // max(length, size))
        plan.sizes.append(size)
    if context.operator.since >= 18 and mode != "nearest" and not crops and context.rng.chance(0.3):
        _keep_aspect(context, plan.axes, plan.sizes, stretched)


def _exact_size(context: NodeContext, length: int, most: int) -> int:
    sizes = [int(length * factor) for factor in _EXACT if (length * factor).is_integer()]
    return context.rng.choice([size for size in sizes if 1 <= size <= most] or [length])


def _keep_aspect(context: NodeContext, axes: list[int], sizes: list[int], stretched: list[int]) -> None:
    """One factor for all axes, if it gives each a length that does not depend on rounding."""
    # onnxruntime 1.31 forgets the policy for axes that are counted from the end.
    if not set(axes) <= set(stretched) or min(context.get("axes") or (0,)) < 0:
        return
    policy = context.rng.choice(("not_larger", "not_smaller", "stretch"))
    lengths = [context.dims(0)[axis] for axis in axes]
    factor = find_common_factor(policy, sizes, lengths)
    products = [factor * length for length in lengths]
    tied = any(abs(product % 1 - 0.5) < 0.01 for product in products)
    large = factor > 4 or math.prod(products) > math.prod(lengths) * max_growth(context)
    if not tied and not large and min(products) >= 0.6:
        context.attributes["keep_aspect_ratio_policy"] = policy


def find_common_factor(policy: str, sizes: list[int], lengths: list[int]) -> float:
    """The factor of all axes under `keep_aspect_ratio_policy` (ONNX operator reference, Resize-18)."""
    factors = [size / length for size, length in zip(sizes, lengths, strict=True)]
    return max(factors) if policy == "not_smaller" else min(factors)


def _draw_scales(context: NodeContext, plan: Plan, stretched: list[int], mode: str) -> None:
    """Exact factors; between elements also some that give a length and a quarter, which is rounded down."""
    rng = context.rng
    plan.scales = []
    left = max_growth(context)
    unchanged = rng.chance(0.1)
    for axis in plan.axes:
        length = context.dims(0)[axis]
        factor = 1.0
        if axis in stretched and not unchanged:
            exact = [item for item in _EXACT if length * item >= 1 and item <= left]
            factor = rng.choice(exact or [1.0])
            if mode != "nearest" and rng.chance(0.5):
                factor = (rng.between(1, min(length * left, 2 * length + 1)) + 0.25) / length
        left = max(1, int(left // max(1.0, factor)))
        plan.scales.append(factor)


def _roi(context: NodeContext, axes: list[int], stretched: list[int]) -> list[float]:
    rng = context.rng
    starts = [rng.choice(_STARTS) if axis in stretched else 0.0 for axis in axes]
    ends = [rng.choice(_ENDS) if axis in stretched else 1.0 for axis in axes]
    return starts + ends
