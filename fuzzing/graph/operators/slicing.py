"""Slice, including all omitted and negative forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fuzzing.graph.constants import known_integers, make_constant, optional_integers, requires_static_inputs
from fuzzing.graph.intervals import full_range
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import PRIMARY_INPUT, ConstantInput, NodeContext, OperatorSpec
from fuzzing.graph.operators import register
from fuzzing.graph.operators.indexing import NEGATIVE, index_dtype
from fuzzing.graph.operators.layout import shuffled_axes
from fuzzing.graph.types import ANY, TensorType

#: What stands for "to the end", in either type.
_FARTHEST = {"int32": (1 << 31) - 1, "int64": (1 << 63) - 1}


class _Cut(NamedTuple):
    """One axis of a Slice, as written."""

    start: int
    end: int
    step: int


class _SlicePlan(NamedTuple):
    """The inputs of a Slice, of one element type; no axes: all of them."""

    dtype: str
    axes: list[int] | None
    cuts: list[_Cut]

    def constant(self, values: list[int]) -> Constant:
        return make_constant(self.dtype, values)


def _slice_plan(context: NodeContext) -> _SlicePlan:
    """Which axes, in which order; they may be omitted only if it is all of them in order."""
    rng = context.rng
    dtype = index_dtype(context)
    axes = list(range(context.rank))
    named = context.degree > 3 and not (context.degree == 5 and rng.chance(0.1))
    if named:
        axes = sorted(rng.subset(context.rank)) if rng.chance(0.7) else axes
        axes = [axis % context.rank for axis in shuffled_axes(context, axes, context.rank)]
    cuts = [_cut(context, context.dims(0)[axis], dtype) for axis in axes]
    written = [axis - context.rank if rng.chance(0.1) else axis for axis in axes] if named else None
    return _SlicePlan(dtype, written, cuts)


def _cut(context: NodeContext, length: int, dtype: str) -> _Cut:
    rng = context.rng
    farthest = _FARTHEST[dtype]
    if length == 0:
        return _Cut(0, rng.choice((0, farthest)), 1)
    step = rng.choice((1, 1, 1, 2, 3, -1, -2)) if context.degree == 5 else 1
    start = rng.below(length)
    if step > 0:
        end = rng.between(start + 1, length)
        if end == length:
            end = rng.choice((length, length, farthest, length + rng.between(1, 9)))
        elif rng.chance(NEGATIVE):
            end -= length
        return _Cut(start - length if rng.chance(NEGATIVE) else start, end, step)
    end = rng.between(-1, start - 1)  # -1 stands for the place before the first element
    if end == -1:
        end = rng.choice((-length - 1, -farthest))
    elif rng.chance(NEGATIVE):
        end -= length
    if start == length - 1:
        start = rng.choice((start, -1, farthest))
    return _Cut(start, end, step)


def _clamped(length: int, cut: _Cut) -> tuple[int, int, int]:
    """Start, end and step as Python counts them (ONNX operator reference, Slice-13); end may be -1."""
    start = cut.start + length if cut.start < 0 else cut.start
    end = cut.end + length if cut.end < 0 else cut.end
    if cut.step > 0:
        return min(max(start, 0), length), min(max(end, 0), length), cut.step
    return min(max(start, 0), length - 1), min(max(end, -1), length - 1), cut.step


def _cuts(context: NodeContext) -> dict[int, _Cut] | None:
    """The cut of each sliced axis; None if an input is not constant."""
    starts, ends = known_integers(context, 1), known_integers(context, 2)
    if starts is None or ends is None:
        return None
    axes = optional_integers(context, 3, range(len(starts)))
    steps = optional_integers(context, 4, [1] * len(starts))
    if axes is None or steps is None:
        return None
    return {
        axis % context.rank: _Cut(start, end, step)
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    }


def _sliced(context: NodeContext) -> tuple[TensorType, ...]:
    cuts = _cuts(context)
    if cuts is None:
        return (TensorType(context.dtype, (None,) * context.rank),)
    shape = list(context.shape)
    for axis, cut in cuts.items():
        length = shape[axis]
        if length is not None:
            shape[axis] = len(range(*_clamped(length, cut)))
    return (TensorType(context.dtype, tuple(shape)),)


def _torch_slice(context: NodeContext, names: Sequence[str]) -> str:
    parts, flipped = [":"] * context.rank, []
    for axis, cut in (_cuts(context) or {}).items():
        length = context.dims(0)[axis]
        start, end, step = _clamped(length, cut)
        if step < 0:
            flipped.append(axis)
            start, end, step = length - 1 - start, length - 1 - end, -step
        parts[axis] = f"{start}:{max(start, end)}:{step}"
    source = f"{names[0]}.flip({flipped})" if flipped else names[0]
    return f"{source}[{', '.join(parts)}]"


register(
    OperatorSpec(
        "Slice",
        13,
        input_specs=(
            PRIMARY_INPUT,
            ConstantInput(lambda context: context.plan.constant([cut.start for cut in context.plan.cuts])),
            ConstantInput(lambda context: context.plan.constant([cut.end for cut in context.plan.cuts])),
            ConstantInput(lambda context: context.plan.axes and context.plan.constant(context.plan.axes)),
            ConstantInput(lambda context: context.plan.constant([cut.step for cut in context.plan.cuts])),
        ),
        degrees=(3, 4, 5),
        ranks=tuple(range(1, 9)),
        plan=_slice_plan,
        infer=_sliced,
        within=full_range,
        dtypes=ANY,
        empty=True,
        torch=requires_static_inputs(_torch_slice),
    ),
)
