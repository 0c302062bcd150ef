"""Reshapes and transpositions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Axis, Choice, Permutation, planned_attribute
from fuzzing.graph.constants import known_integers
from fuzzing.graph.intervals import full_range
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    GraphLimits,
    NodeContext,
    OperatorSpec,
    int64,
)
from fuzzing.graph.operators import register
from fuzzing.graph.types import ANY, Dim, TensorType
from fuzzing.rng import Rng

#: How often an axis is counted from the end: `domains.Axis` has the same, for the same reason.
_NEGATIVE = 0.1


def shuffled_axes(context: NodeContext, axes: Sequence[int], rank: int) -> list[int]:
    """The axes as written: shuffled one time in ten, sometimes counted from the end."""
    rng = context.rng
    order = rng.permutation(len(axes)) if rng.chance(0.1) else range(len(axes))
    return [axes[place] - rank if rng.chance(_NEGATIVE) else axes[place] for place in order]


def product(dims: Sequence[Dim]) -> Dim:
    """The number of elements; None if a length is unknown."""
    total = 1
    for dim in dims:
        if dim is None:
            return None
        total *= dim
    return total


# Transpose
def _transposed(context: NodeContext) -> tuple[TensorType, ...]:
    perm = context.get("perm")
    shape = context.shape[::-1] if perm is None else tuple([context.shape[axis] for axis in perm])
    return (TensorType(context.dtype, shape),)


def _torch_permute(context: NodeContext, names: Sequence[str]) -> str:
    perm = context.get("perm")
    return f"{names[0]}.permute({list(range(context.rank))[::-1] if perm is None else list(perm)})"


# Reshape
def _target(context: NodeContext) -> tuple[int, ...]:
    """Another shape with as many elements, drawn as in Isra: the last length is what the others leave."""
    rng, limits = context.rng, context.limits
    rest = context.x.elements
    least = 0 if rest == 1 and limits.min_rank == 0 else max(1, limits.min_rank)
    rank = rng.between(least, limits.max_rank)
    shape = []
    for _ in range(rank - 1):
        shape.append(math.gcd(rest, rng.between(1, max(rest, 1))))
        rest //= shape[-1]
    return (*shape, rest) if rank else ()


def _empty_target(context: NodeContext) -> list[int]:
    """A shape without elements. Its 0 is at the input's 0, so both readings of 0 agree."""
    rng, limits = context.rng, context.limits
    zero = rng.choice([axis for axis, dim in enumerate(context.shape) if dim == 0])
    rank = rng.between(zero + 1, max(zero + 1, limits.max_rank))
    return [0 if axis == zero else rng.between(1, max(1, limits.max_dim)) for axis in range(rank)]


def _shape_entries(context: NodeContext) -> Constant:
    rng = context.rng
    if not context.x.static:
        return int64(-1)
    if context.x.elements == 0:
        return int64(*_empty_target(context))
    entries = list(_target(context))
    if entries and rng.chance(0.3):
        entries[rng.below(len(entries))] = -1
    if not context.get("allowzero") and rng.chance(0.2):
        for axis, (entry, dim) in enumerate(zip(entries, context.shape, strict=False)):
            if entry == dim:
                entries[axis] = 0
    return int64(*entries)


def _reshaped(context: NodeContext) -> tuple[TensorType, ...]:
    entries = known_integers(context, 1)
    if entries is None:
        rank = (context.type(1).shape or (None,))[0]
        return (TensorType(context.dtype, None if rank is None else (None,) * rank),)
    keep = not context.get("allowzero")
    shape: list[Dim] = [
        context.shape[axis] if entry == 0 and keep else entry for axis, entry in enumerate(entries)
    ]
    if -1 in entries:
        hole = entries.index(-1)
        others = product(shape[:hole] + shape[hole + 1 :])
        total = product(context.shape)
        shape[hole] = None if others is None or total is None else total // others if others else 0
    return (TensorType(context.dtype, tuple(shape)),)


def _torch_reshape(context: NodeContext, names: Sequence[str]) -> str | None:
    """Data-dependent lengths are the input's, or torch's own -1."""
    shape, entries = _reshaped(context)[0].shape, known_integers(context, 1)
    if shape is None or entries is None:
        return None
    x = names[0]
    lengths = [
        str(dim) if dim is not None else f"{x}.shape[{axis}]" if entries[axis] == 0 else "-1"
        for axis, dim in enumerate(shape)
    ]
    return f"{x}.reshape([{', '.join(lengths)}])"


# Flatten
_FLATTEN_AXIS = Axis(end=1)


def _flatten_plan(context: NodeContext) -> None:
    """Draws the axis, or omits it; a scalar always has one, as ONNX's default 1 does not fit it."""
    if not context.rank or context.rng.chance(0.8):
        context.attributes["axis"] = _FLATTEN_AXIS.draw(context)


def _flattened(context: NodeContext) -> tuple[TensorType, ...]:
    axis = context.axis()
    return (TensorType(context.dtype, (product(context.shape[:axis]), product(context.shape[axis:]))),)


def _torch_flatten(context: NodeContext, names: Sequence[str]) -> str:
    axis = context.axis()
    if axis == 0:
        return f"{names[0]}.reshape(1, -1)"
    if axis == context.rank:
        return f"{names[0]}.reshape(-1, 1)"
    return f"{names[0]}.flatten(0, {axis - 1}).flatten(1)"


# Squeeze
def _has_one(shape: tuple[int, ...]) -> bool:
    return 1 in shape


def _with_one(rng: Rng, limits: GraphLimits) -> tuple[int, ...]:
    shape = [
        rng.between(max(1, limits.min_dim), max(1, limits.max_dim))
        for _ in range(rng.between(max(1, limits.min_rank), max(1, limits.max_rank)))
    ]
    shape[rng.below(len(shape))] = 1
    return tuple(shape)


def _ones(context: NodeContext) -> Constant:
    axes = [axis for axis, dim in enumerate(context.shape) if dim == 1]
    if context.rng.chance(0.5):
        axes = sorted(axes[place] for place in context.rng.subset(len(axes)))
    if len(axes) == context.rank > 1 and context.limits.min_rank > 0:
        axes = axes[1:]
    return int64(*shuffled_axes(context, axes, context.rank))


def _squeezed(context: NodeContext) -> tuple[TensorType, ...]:
    if context.given(1):
        axes = known_integers(context, 1)
        if axes is None:
            count = (context.type(1).shape or (None,))[0]
            return (TensorType(context.dtype, None if count is None else (None,) * (context.rank - count)),)
        gone = {axis % context.rank for axis in axes} if axes else set()
    else:
        if None in context.shape:
            return (TensorType(context.dtype, None),)  # any unknown length may be 1
        gone = {axis for axis, dim in enumerate(context.shape) if dim == 1}
    shape = tuple([dim for axis, dim in enumerate(context.shape) if axis not in gone])
    return (TensorType(context.dtype, shape),)


def _torch_squeeze(context: NodeContext, names: Sequence[str]) -> str | None:
    if not context.given(1):
        return f"{names[0]}.squeeze()"
    axes = known_integers(context, 1)
    return None if axes is None else f"{names[0]}.squeeze({tuple(axes)})"


# Unsqueeze
def _new_axes(context: NodeContext) -> Constant:
    """Axes of the output; none if the input's rank is already the largest."""
    room = context.limits.max_rank - context.rank
    rank = context.rank + (context.rng.between(1, room) if room > 0 else 0)
    axes = sorted(context.rng.permutation(rank)[: rank - context.rank])
    return int64(*shuffled_axes(context, axes, rank))


def _unsqueezed(context: NodeContext) -> tuple[TensorType, ...]:
    axes = known_integers(context, 1)
    if axes is None:
        count = (context.type(1).shape or (None,))[0]
        return (TensorType(context.dtype, None if count is None else (None,) * (context.rank + count)),)
    rank = context.rank + len(axes)
    new = {axis % rank for axis in axes}
    old = iter(context.shape)
    return (TensorType(context.dtype, tuple([1 if axis in new else next(old) for axis in range(rank)])),)


def _torch_unsqueeze(context: NodeContext, names: Sequence[str]) -> str | None:
    axes = known_integers(context, 1)
    if axes is None:
        return None
    rank = context.rank + len(axes)
    return names[0] + "".join(f".unsqueeze({axis})" for axis in sorted(axis % rank for axis in axes))


register(
    OperatorSpec("Transpose", 13, infer=_transposed, within=full_range, dtypes=ANY, empty=True, dynamic=True,
             attribute_specs=(AttributeSpec("perm", Permutation(), omit=0.05),), torch=_torch_permute),
    OperatorSpec("Reshape", 13, input_specs=(PRIMARY_INPUT, ConstantInput(_shape_entries)), infer=_reshaped,
                 within=full_range, dtypes=ANY, empty=True, dynamic=True, torch=_torch_reshape),
    OperatorSpec("Reshape", 14, input_specs=(PRIMARY_INPUT, ConstantInput(_shape_entries)), infer=_reshaped,
                 within=full_range, dtypes=ANY, empty=True, dynamic=True,
                 attribute_specs=(AttributeSpec("allowzero", Choice(0, 0, 1), omit=0.7, default=0),),
                 torch=_torch_reshape),
    OperatorSpec("Flatten", 13, infer=_flattened, within=full_range, dtypes=ANY, empty=True, dynamic=True,
             plan=_flatten_plan, attribute_specs=(planned_attribute("axis", 1, _FLATTEN_AXIS),),
             torch=_torch_flatten),
    OperatorSpec("Squeeze", 13, input_specs=(PRIMARY_INPUT, ConstantInput(_ones)), degrees=(1, 2),
                 ranks=tuple(range(1, 9)), takes=_has_one, draw_shape=_with_one, infer=_squeezed,
                 within=full_range, dtypes=ANY, empty=True, torch=_torch_squeeze),
    OperatorSpec("Unsqueeze", 13, input_specs=(PRIMARY_INPUT, ConstantInput(_new_axes)),
                 ranks=tuple(range(5)), infer=_unsqueezed, within=full_range, dtypes=ANY, empty=True,
                 dynamic=True, torch=_torch_unsqueeze),
)  # fmt: skip
