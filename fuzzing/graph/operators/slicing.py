"""Slice, in all that it lets go unsaid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fuzzing.graph.intervals import whole
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import literal, optional_numbers, spelled, whole_numbers
from fuzzing.graph.operator import LEAD, Auxiliary, Operator
from fuzzing.graph.operators import register
from fuzzing.graph.operators.indexing import NEGATIVE, index_dtype
from fuzzing.graph.operators.layout import shuffled_axes
from fuzzing.graph.site import Site
from fuzzing.graph.types import ANY, TensorType

#: What stands for "to the end", in either type.
_FARTHEST = {"int32": (1 << 31) - 1, "int64": (1 << 63) - 1}


class _Cut(NamedTuple):
    """One axis' part of a Slice, as it is written down."""

    start: int
    end: int
    step: int


class _SlicePlan(NamedTuple):
    """What a Slice's inputs say, all of one element type; no axes: all of them."""

    dtype: str
    axes: list[int] | None
    cuts: list[_Cut]

    def constant(self, values: list[int]) -> Constant:
        """An input."""
        return literal(self.dtype, values)


def _slice_plan(site: Site) -> _SlicePlan:
    """Which axes, in which order; they may only go unnamed if it is all of them in ONNX's order."""
    draws = site.draws
    dtype = index_dtype(site)
    axes = list(range(site.rank))
    named = site.degree > 3 and not (site.degree == 5 and draws.chance(0.1))
    if named:
        axes = sorted(draws.subset(site.rank)) if draws.chance(0.7) else axes
        axes = [axis % site.rank for axis in shuffled_axes(site, axes, site.rank)]
    cuts = [_cut(site, site.dims(0)[axis], dtype) for axis in axes]
    written = [axis - site.rank if draws.chance(0.1) else axis for axis in axes] if named else None
    return _SlicePlan(dtype, written, cuts)


def _cut(site: Site, length: int, dtype: str) -> _Cut:
    """A start, an end and a step that leave at least one element of an axis that has one."""
    draws = site.draws
    farthest = _FARTHEST[dtype]
    if length == 0:
        return _Cut(0, draws.choice((0, farthest)), 1)
    step = draws.choice((1, 1, 1, 2, 3, -1, -2)) if site.degree == 5 else 1
    start = draws.below(length)
    if step > 0:
        end = draws.between(start + 1, length)
        if end == length:
            end = draws.choice((length, length, farthest, length + draws.between(1, 9)))
        elif draws.chance(NEGATIVE):
            end -= length
        return _Cut(start - length if draws.chance(NEGATIVE) else start, end, step)
    end = draws.between(-1, start - 1)  # -1 stands for the place before the first element
    if end == -1:
        end = draws.choice((-length - 1, -farthest))
    elif draws.chance(NEGATIVE):
        end -= length
    if start == length - 1:
        start = draws.choice((start, -1, farthest))
    return _Cut(start, end, step)


def _clamped(length: int, cut: _Cut) -> tuple[int, int, int]:
    """Start, end and step as Python counts them (ONNX operator reference, Slice-13); end may be -1."""
    start = cut.start + length if cut.start < 0 else cut.start
    end = cut.end + length if cut.end < 0 else cut.end
    if cut.step > 0:
        return min(max(start, 0), length), min(max(end, 0), length), cut.step
    return min(max(start, 0), length - 1), min(max(end, -1), length - 1), cut.step


def _cuts(site: Site) -> dict[int, _Cut] | None:
    """The cut of each axis that has one; None if an input that says so is no constant."""
    starts, ends = whole_numbers(site, 1), whole_numbers(site, 2)
    if starts is None or ends is None:
        return None
    axes = optional_numbers(site, 3, range(len(starts)))
    steps = optional_numbers(site, 4, [1] * len(starts))
    if axes is None or steps is None:
        return None
    return {
        axis % site.rank: _Cut(start, end, step)
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    }


def _sliced(site: Site) -> tuple[TensorType, ...]:
    cuts = _cuts(site)
    if cuts is None:
        return (TensorType(site.dtype, (None,) * site.rank),)
    shape = list(site.shape)
    for axis, cut in cuts.items():
        length = shape[axis]
        if length is not None:
            shape[axis] = len(range(*_clamped(length, cut)))
    return (TensorType(site.dtype, tuple(shape)),)


def _torch_slice(site: Site, names: Sequence[str]) -> str:
    """Steps backwards are steps forwards along a flipped axis."""
    parts, flipped = [":"] * site.rank, []
    for axis, cut in (_cuts(site) or {}).items():
        length = site.dims(0)[axis]
        start, end, step = _clamped(length, cut)
        if step < 0:
            flipped.append(axis)
            start, end, step = length - 1 - start, length - 1 - end, -step
        parts[axis] = f"{start}:{max(start, end)}:{step}"
    source = f"{names[0]}.flip({flipped})" if flipped else names[0]
    return f"{source}[{', '.join(parts)}]"


register(
    Operator("Slice", 13,
             slots=(LEAD, Auxiliary(lambda site: site.plan.constant([cut.start for cut in site.plan.cuts])),
                    Auxiliary(lambda site: site.plan.constant([cut.end for cut in site.plan.cuts])),
                    Auxiliary(lambda site: site.plan.axes and site.plan.constant(site.plan.axes)),
                    Auxiliary(lambda site: site.plan.constant([cut.step for cut in site.plan.cuts]))),
             degrees=(3, 4, 5), ranks=tuple(range(1, 9)), plan=_slice_plan, infer=_sliced, within=whole,
             dtypes=ANY, empty=True, torch=spelled(_torch_slice)),
)  # fmt: skip
