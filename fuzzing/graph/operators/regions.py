"""Operators on windows of images: blocks put together again, regions pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fuzzing.graph.domains import Between, Choice, Each, Made
from fuzzing.graph.intervals import WHOLE, Interval, hull
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.literals import literal, spelled, whole_numbers
from fuzzing.graph.operator import LEAD, Auxiliary, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.indexing import listed
from fuzzing.graph.operators.joining import growth
from fuzzing.graph.rounding import rounded, share
from fuzzing.graph.site import Site, int64
from fuzzing.graph.types import FLOATS, NUMBERS, TensorType

# Col2Im


class _Fold(NamedTuple):
    """Along one axis: the image's length, the block's, and how blocks are laid."""

    image: int
    block: int
    stride: int
    dilation: int
    before: int
    behind: int


def _divisor(site: Site, number: int) -> int:
    """One of a number's divisors up to 5."""
    return site.draws.choice([size for size in range(1, 6) if number % size == 0])


def _fold_plan(site: Site) -> list[_Fold]:
    """Any lead will do: its second length is cut into channels and a block, its third into a grid."""
    draws = site.draws
    _, rows, blocks = site.dims(0)
    rank = 2 if draws.chance(0.9) else 3
    folds = []
    left = growth(site)
    for last in range(rank - 1, -1, -1):
        block = _divisor(site, rows)
        count = _divisor(site, blocks) if last else blocks
        rows, blocks = rows // block, blocks // count
        stride, dilation = draws.choice((1, 1, 2)), draws.choice((1, 1, 2))
        covered = (count - 1) * stride + dilation * (block - 1) + 1
        if covered > count * block * left:
            stride = dilation = 1
            covered = count + block - 1
        left = max(1, left * count * block // covered)
        before, behind = draws.choice((0, 0, 1)), draws.choice((0, 0, 1))
        if covered - before - behind < 1:
            before = behind = 0
        folds.append(_Fold(covered - before - behind, block, stride, dilation, before, behind))
    if any(fold.stride > 1 for fold in folds) or draws.chance(0.3):
        site.attributes["strides"] = tuple([fold.stride for fold in folds])
    if any(fold.dilation > 1 for fold in folds) or draws.chance(0.3):
        site.attributes["dilations"] = tuple([fold.dilation for fold in folds])
    if any(fold.before or fold.behind for fold in folds) or draws.chance(0.3):
        site.attributes["pads"] = (*(fold.before for fold in folds), *(fold.behind for fold in folds))
    return folds


def _folded(site: Site) -> tuple[TensorType, ...]:
    image, block = whole_numbers(site, 1), whole_numbers(site, 2)
    batch, rows, _ = site.shape
    if image is None:
        rank = (site.type(1).shape or (None,))[0]
        return (TensorType(site.dtype, None if rank is None else (None,) * (rank + 2)),)
    channels = None if block is None or rows is None else rows // math.prod(block)
    return (TensorType(site.dtype, (batch, channels, *image)),)


def _terms(type_: TensorType) -> Interval:
    """So small that as many as a block has elements can be added."""
    low, high = WHOLE[type_.dtype]
    terms = max(1, type_.lengths[1])
    if type_.dtype.startswith(("int", "uint")):
        return Interval(-(int(-low) // terms), int(high) // terms)
    return Interval(low * 0.9 / terms, high * 0.9 / terms)


def _fold_bounds(site: Site) -> Interval:
    terms = site.dims(0)[1]
    low, high = site.range(0)
    total = Interval(min(0.0, low * terms), max(0.0, high * terms))
    return rounded(total, site.dtype, terms)


def _torch_fold(site: Site, names: Sequence[str]) -> str:
    """Torch folds two axes, with margins alike on both sides: so with none, cut off afterwards."""
    image, block = site.numbers(1), site.numbers(2)
    rank = len(image)
    ones = (1,) * rank
    pads = site.get("pads") or (0,) * (2 * rank)
    strides, dilations = site.get("strides") or ones, site.get("dilations") or ones
    covered = [length + pads[axis] + pads[axis + rank] for axis, length in enumerate(image)]
    cuts = "".join(f", {pads[axis]}:{pads[axis] + length}" for axis, length in enumerate(image))
    if rank == 2:
        laid = f"torch.nn.functional.fold({names[0]}, {covered}, {block}, {dilations}, 0, {strides})"
    else:
        laid = _added(site, names[0], covered, _places(covered, block, dilations, strides))
    return f"{laid}[:, :{cuts}]"


def _places(covered: list[int], block: list[int], dilations: Sequence[int], strides: Sequence[int]) -> Any:
    """The place in a flattened image of each element of each block: [elements of a block, blocks]."""
    places = np.zeros((1, 1), np.int64)
    for axis, length in enumerate(covered):
        last = dilations[axis] * (block[axis] - 1)
        starts = np.arange(0, length - last, strides[axis])
        within = np.arange(block[axis]) * dilations[axis]
        along = starts[None, :] + within[:, None]
        places = places[:, None, :, None] * length + along[None, :, None, :]
        places = places.reshape(places.shape[0] * places.shape[1], -1)
    return places


def _added(site: Site, name: str, covered: list[int], places: Any) -> str:
    batch, rows, _ = site.dims(0)
    channels = rows // places.shape[0]
    flat = f"{name}.reshape({[batch, channels, places.size]})"
    empty = f"torch.zeros({[batch, channels, math.prod(covered)]}, dtype={name}.dtype)"
    return (
        f"{empty}.index_add(2, {listed(places.reshape(-1))}, {flat}).reshape({[batch, channels, *covered]})"
    )


def _positive(value: Attribute, _site: Site) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, int) and item >= 0 for item in value)


_POSITIVE = Made(lambda site: (1,) * 2, _positive)


# RoiAlign, MaxRoiPool


_MOST_REGIONS = 4


class _Regions(NamedTuple):
    images: list[int]
    corners: list[tuple[float, float, float, float]]


def _regions_plan(site: Site) -> _Regions:
    """Some regions with a positive area, in the images' own coordinates."""
    draws = site.draws
    images, _, height, width = site.dims(0)
    count = draws.between(1, min(_MOST_REGIONS, growth(site) * images))
    return _Regions(
        [draws.below(images) for _ in range(count)], [_corners(site, height, width) for _ in range(count)]
    )


def _corners(site: Site, height: int, width: int) -> tuple[float, float, float, float]:
    """x1, y1, x2, y2: quarters, which even bfloat16 holds, off the borders between elements."""
    x1, x2 = _interval(site, width)
    y1, y2 = _interval(site, height)
    return x1, y1, x2, y2


def _interval(site: Site, length: int) -> tuple[float, float]:
    start = site.draws.below(length)
    end = site.draws.between(start + 1, length)
    return start + 0.25, end - 0.125


def _rois(site: Site) -> Constant:
    flat = [coordinate for corners in site.plan.corners for coordinate in corners]
    return literal(site.dtype, flat, (len(site.plan.corners), 4))


def _numbered_rois(site: Site) -> Constant:
    regions = zip(site.plan.images, site.plan.corners, strict=True)
    flat = [float(number) for image, corners in regions for number in (image, *corners)]
    return literal(site.dtype, flat, (len(site.plan.images), 5))


def _aligned(site: Site) -> tuple[TensorType, ...]:
    regions = site.type(1).shape
    count = None if regions is None else regions[0]
    shape = (count, site.shape[1], site.get("output_height"), site.get("output_width"))
    return (TensorType(site.dtype, shape),)


def _pooled(site: Site) -> tuple[TensorType, ...]:
    regions = site.type(1).shape
    count = None if regions is None else regions[0]
    return (TensorType(site.dtype, (count, site.shape[1], *site.get("pooled_shape"))),)


def _pooled_bounds(site: Site) -> Interval:
    """Means and maxima; 0 where a region has nothing of the image."""
    return hull((rounded(site.range(0), site.dtype), Interval(0, 0)))


_SCALE = Setting("spatial_scale", Choice(1.0, 0.5, 0.25), omit=0.4, default=1.0)


def _pooling(site: Site) -> str:
    """Of several samples onnxruntime takes a wrong largest one, as it says itself: a known bug is no find."""
    return site.draws.choice(("avg", "max")) if site.get("sampling_ratio") == 1 else "avg"


def _is_pooling(value: Attribute, _site: Site) -> bool:
    return value in ("avg", "max")


def _roi_align(since: int, dtypes: tuple[str, ...]) -> Operator:
    length = Between(1, lambda site: max(1, min(3, *site.dims(0)[2:])))
    mode = Setting("coordinate_transformation_mode", Choice("half_pixel", "output_half_pixel"), omit=0.3,
                   default="half_pixel")  # fmt: skip
    return Operator(
        "RoiAlign",
        since,
        slots=(LEAD, Auxiliary(_rois), Auxiliary(lambda site: int64(*site.plan.images))),
        ranks=(4,),
        infer=_aligned,
        values=_pooled_bounds,
        within=share(1),
        dtypes=dtypes,
        plan=_regions_plan,
        settings=(
            Setting("output_height", length, omit=0.2, default=1),
            Setting("output_width", length, omit=0.2, default=1),
            Setting("sampling_ratio", Choice(0, 1, 2, 3), omit=0.3, default=0),
            Setting("mode", Made(_pooling, _is_pooling), omit=0.3, default="avg"),
            _SCALE,
            *((mode,) if since >= 16 else ()),
        ),
    )


def _max_roi_pool(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "MaxRoiPool",
        since,
        slots=(LEAD, Auxiliary(_numbered_rois)),
        ranks=(4,),
        infer=_pooled,
        values=_pooled_bounds,
        within=share(1),
        dtypes=dtypes,
        plan=_regions_plan,
        settings=(
            Setting("pooled_shape", Each(lambda site: [(1, min(3, length)) for length in site.dims(0)[2:]])),
            _SCALE,
        ),
    )


_BUT_BFLOAT16 = tuple(dtype for dtype in FLOATS if dtype != "bfloat16")

register(
    Operator("Col2Im", 18, ranks=(3,), infer=_folded, values=_fold_bounds, within=_terms, dtypes=NUMBERS,
             slots=(LEAD, Auxiliary(lambda site: int64(*[fold.image for fold in site.plan])),
                    Auxiliary(lambda site: int64(*[fold.block for fold in site.plan]))),
             plan=_fold_plan,
             settings=tuple([planned(name, domain=_POSITIVE) for name in ("strides", "dilations", "pads")]),
             torch=spelled(_torch_fold)),
    _roi_align(10, _BUT_BFLOAT16),
    _roi_align(16, _BUT_BFLOAT16),
    _roi_align(22, FLOATS),
    _max_roi_pool(1, _BUT_BFLOAT16),
    _max_roi_pool(22, FLOATS),
)  # fmt: skip
