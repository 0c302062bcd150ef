"""Col2Im, RoiAlign and MaxRoiPool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fuzzing.graph.attribute_domains import Choice, Computed, IntRange, IntTuple, planned_attribute
from fuzzing.graph.constants import known_integers, make_constant, requires_static_inputs
from fuzzing.graph.intervals import FULL_RANGES, Interval, hull
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
from fuzzing.graph.operators.concat_split import max_growth
from fuzzing.graph.operators.indexing import listed
from fuzzing.graph.rounding import after_rounding, share
from fuzzing.graph.types import FLOATS, NUMBERS, TensorType


# Col2Im
class _Fold(NamedTuple):
    """One axis: the lengths of image and block, and the placement of blocks."""

    image: int
    block: int
    stride: int
    dilation: int
    before: int
    behind: int


def _divisor(context: NodeContext, number: int) -> int:
    return context.rng.choice([size for size in range(1, 6) if number % size == 0])


def _fold_plan(context: NodeContext) -> list[_Fold]:
    """Works for any primary input: length 1 is split into channels and a block, length 2 into a grid."""
    rng = context.rng
    _, rows, blocks = context.dims(0)
    rank = 2 if rng.chance(0.9) else 3
    folds = []
    left = max_growth(context)
    for last in range(rank - 1, -1, -1):
        block = _divisor(context, rows)
        count = _divisor(context, blocks) if last else blocks
        rows, blocks = rows // block, blocks // count
        stride, dilation = rng.choice((1, 1, 2)), rng.choice((1, 1, 2))
        covered = (count - 1) * stride + dilation * (block - 1) + 1
        if covered > count * block * left:
            stride = dilation = 1
            covered = count + block - 1
        left = max(1, left * count * block // covered)
        before, behind = rng.choice((0, 0, 1)), rng.choice((0, 0, 1))
        if covered - before - behind < 1:
            before = behind = 0
        folds.append(_Fold(covered - before - behind, block, stride, dilation, before, behind))
    if any(fold.stride > 1 for fold in folds) or rng.chance(0.3):
        context.attributes["strides"] = tuple([fold.stride for fold in folds])
    if any(fold.dilation > 1 for fold in folds) or rng.chance(0.3):
        context.attributes["dilations"] = tuple([fold.dilation for fold in folds])
    if any(fold.before or fold.behind for fold in folds) or rng.chance(0.3):
        context.attributes["pads"] = (*(fold.before for fold in folds), *(fold.behind for fold in folds))
    return folds


def _folded(context: NodeContext) -> tuple[TensorType, ...]:
    image, block = known_integers(context, 1), known_integers(context, 2)
    batch, rows, _ = context.shape
    if image is None:
        rank = (context.type(1).shape or (None,))[0]
        return (TensorType(context.dtype, None if rank is None else (None,) * (rank + 2)),)
    channels = None if block is None or rows is None else rows // math.prod(block)
    return (TensorType(context.dtype, (batch, channels, *image)),)


def _terms(type_: TensorType) -> Interval:
    """So small that one block's elements can be added."""
    low, high = FULL_RANGES[type_.dtype]
    terms = max(1, type_.lengths[1])
    if type_.dtype.startswith(("int", "uint")):
        return Interval(-(int(-low) // terms), int(high) // terms)
    return Interval(low * 0.9 / terms, high * 0.9 / terms)


def _fold_bounds(context: NodeContext) -> Interval:
    terms = context.dims(0)[1]
    low, high = context.range(0)
    total = Interval(min(0.0, low * terms), max(0.0, high * terms))
    return after_rounding(total, context.dtype, terms)


def _torch_fold(context: NodeContext, names: Sequence[str]) -> str:
    """Torch folds two axes with equal pads only: so folded without pads, then cropped."""
    image, block = context.numbers(1), context.numbers(2)
    rank = len(image)
    ones = (1,) * rank
    pads = context.get("pads") or (0,) * (2 * rank)
    strides, dilations = context.get("strides") or ones, context.get("dilations") or ones
    covered = [length + pads[axis] + pads[axis + rank] for axis, length in enumerate(image)]
    cuts = "".join(f", {pads[axis]}:{pads[axis] + length}" for axis, length in enumerate(image))
    if rank == 2:
        laid = f"torch.nn.functional.fold({names[0]}, {covered}, {block}, {dilations}, 0, {strides})"
    else:
        laid = _added(context, names[0], covered, _places(covered, block, dilations, strides))
    return f"{laid}[:, :{cuts}]"


def _places(covered: list[int], block: list[int], dilations: Sequence[int], strides: Sequence[int]) -> Any:
    """The flat image index of each element of each block: [elements of a block, blocks]."""
    places = np.zeros((1, 1), np.int64)
    for axis, length in enumerate(covered):
        last = dilations[axis] * (block[axis] - 1)
        starts = np.arange(0, length - last, strides[axis])
        within = np.arange(block[axis]) * dilations[axis]
        along = starts[None, :] + within[:, None]
        places = places[:, None, :, None] * length + along[None, :, None, :]
        places = places.reshape(places.shape[0] * places.shape[1], -1)
    return places


def _added(context: NodeContext, name: str, covered: list[int], places: Any) -> str:
    batch, rows, _ = context.dims(0)
    channels = rows // places.shape[0]
    flat = f"{name}.reshape({[batch, channels, places.size]})"
    empty = f"torch.zeros({[batch, channels, math.prod(covered)]}, dtype={name}.dtype)"
    return (
        f"{empty}.index_add(2, {listed(places.reshape(-1))}, {flat}).reshape({[batch, channels, *covered]})"
    )


def _positive(value: Attribute, _context: NodeContext) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, int) and item >= 0 for item in value)


_POSITIVE = Computed(lambda context: (1,) * 2, _positive)


# RoiAlign, MaxRoiPool
_MOST_REGIONS = 4


class _Regions(NamedTuple):
    images: list[int]
    corners: list[tuple[float, float, float, float]]


def _regions_plan(context: NodeContext) -> _Regions:
    rng = context.rng
    images, _, height, width = context.dims(0)
    count = rng.between(1, min(_MOST_REGIONS, max_growth(context) * images))
    return _Regions(
        [rng.below(images) for _ in range(count)], [_corners(context, height, width) for _ in range(count)]
    )


def _corners(context: NodeContext, height: int, width: int) -> tuple[float, float, float, float]:
    """x1, y1, x2, y2: quarters, which even bfloat16 holds, away from the borders between elements."""
    x1, x2 = _interval(context, width)
    y1, y2 = _interval(context, height)
    return x1, y1, x2, y2


def _interval(context: NodeContext, length: int) -> tuple[float, float]:
    start = context.rng.below(length)
    end = context.rng.between(start + 1, length)
    return start + 0.25, end - 0.125


def _rois(context: NodeContext) -> Constant:
    flat = [coordinate for corners in context.plan.corners for coordinate in corners]
    return make_constant(context.dtype, flat, (len(context.plan.corners), 4))


def _numbered_rois(context: NodeContext) -> Constant:
    regions = zip(context.plan.images, context.plan.corners, strict=True)
    flat = [float(number) for image, corners in regions for number in (image, *corners)]
    return make_constant(context.dtype, flat, (len(context.plan.images), 5))


def _aligned(context: NodeContext) -> tuple[TensorType, ...]:
    regions = context.type(1).shape
    count = None if regions is None else regions[0]
    shape = (count, context.shape[1], context.get("output_height"), context.get("output_width"))
    return (TensorType(context.dtype, shape),)


def _pooled(context: NodeContext) -> tuple[TensorType, ...]:
    regions = context.type(1).shape
    count = None if regions is None else regions[0]
    return (TensorType(context.dtype, (count, context.shape[1], *context.get("pooled_shape"))),)


def _pooled_bounds(context: NodeContext) -> Interval:
    """Means and maxima; 0 where a region is outside of the image."""
    return hull((after_rounding(context.range(0), context.dtype), Interval(0, 0)))


_SCALE = AttributeSpec("spatial_scale", Choice(1.0, 0.5, 0.25), omit=0.4, default=1.0)


def _pooling(context: NodeContext) -> str:
    """With several samples onnxruntime's max is wrong, by its own documentation: a known bug is not a
    finding.
    """
    return context.rng.choice(("avg", "max")) if context.get("sampling_ratio") == 1 else "avg"


def _roi_align(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    length = IntRange(1, lambda context: max(1, min(3, *context.dims(0)[2:])))
    mode = AttributeSpec("coordinate_transformation_mode", Choice("half_pixel", "output_half_pixel"),
                         omit=0.3, default="half_pixel")  # fmt: skip
    return OperatorSpec(
        "RoiAlign",
        since,
        input_specs=(
            PRIMARY_INPUT,
            ConstantInput(_rois),
            ConstantInput(lambda context: int64(*context.plan.images)),
        ),
        ranks=(4,),
        infer=_aligned,
        values=_pooled_bounds,
        within=share(1),
        dtypes=dtypes,
        plan=_regions_plan,
        attribute_specs=(
            AttributeSpec("output_height", length, omit=0.2, default=1),
            AttributeSpec("output_width", length, omit=0.2, default=1),
            AttributeSpec("sampling_ratio", Choice(0, 1, 2, 3), omit=0.3, default=0),
            AttributeSpec(
                "mode",
                Computed(_pooling, lambda value, _context: value in ("avg", "max")),
                omit=0.3,
                default="avg",
            ),
            _SCALE,
            *((mode,) if since >= 16 else ()),
        ),
    )


def _max_roi_pool(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec(
        "MaxRoiPool",
        since,
        input_specs=(PRIMARY_INPUT, ConstantInput(_numbered_rois)),
        ranks=(4,),
        infer=_pooled,
        values=_pooled_bounds,
        within=share(1),
        dtypes=dtypes,
        plan=_regions_plan,
        attribute_specs=(
            AttributeSpec(
                "pooled_shape",
                IntTuple(lambda context: [(1, min(3, length)) for length in context.dims(0)[2:]]),
            ),
            _SCALE,
        ),
    )


_BUT_BFLOAT16 = tuple(dtype for dtype in FLOATS if dtype != "bfloat16")

register(
    OperatorSpec("Col2Im", 18, ranks=(3,), infer=_folded, values=_fold_bounds, within=_terms, dtypes=NUMBERS,
                 input_specs=(PRIMARY_INPUT,
                              ConstantInput(lambda context: int64(*[fold.image for fold in context.plan])),
                              ConstantInput(lambda context: int64(*[fold.block for fold in context.plan]))),
                 plan=_fold_plan,
                 attribute_specs=tuple([planned_attribute(name, domain=_POSITIVE)
                                        for name in ("strides", "dilations", "pads")]),
                 torch=requires_static_inputs(_torch_fold)),
    _roi_align(10, _BUT_BFLOAT16),
    _roi_align(16, _BUT_BFLOAT16),
    _roi_align(22, FLOATS),
    _max_roi_pool(1, _BUT_BFLOAT16),
    _max_roi_pool(22, FLOATS),
)  # fmt: skip
