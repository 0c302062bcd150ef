"""Gather operators with constant indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fuzzing.graph.attribute_domains import Axis, IntRange
from fuzzing.graph.constants import make_constant, requires_static_inputs
from fuzzing.graph.intervals import full_range
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import PRIMARY_INPUT, AttributeSpec, ConstantInput, NodeContext, OperatorSpec
from fuzzing.graph.operators import register
from fuzzing.graph.operators.concat_split import max_growth
from fuzzing.graph.types import ANY, TensorType

_RANKED = tuple(range(1, 9))

#: How often an index is counted from the end of its axis.
NEGATIVE = 0.15
#: So many indices are as good a test as more of them.
_MANY = 128


def index_dtype(context: NodeContext) -> str:
    """Where both are allowed, mostly int64: that is what exporters write."""
    return "int32" if context.rng.chance(0.25) else "int64"


def index(context: NodeContext, length: int) -> int:
    """An index of an axis of this length, which is not 0."""
    place = context.rng.below(length)
    return place - length if context.rng.chance(NEGATIVE) else place


def listed(values: Any) -> str:
    """A torch expression: a tensor of these integers."""
    return f"torch.tensor({np.asarray(values).tolist()}, dtype=torch.int64)"


# Gather
def _gather_indices(context: NodeContext) -> Constant:
    """Isra's: rank 1 and more, half of the lengths 1; also rank 0, which removes the axis."""
    rng, limits = context.rng, context.limits
    length = context.dims(0)[context.axis()]
    most = max(1, limits.max_rank - context.rank + 1)
    least = 0 if context.rank > 1 or limits.min_rank == 0 else 1
    left = min(max_growth(context) * length, _MANY)
    shape = []
    for _ in range(rng.between(least, most)):
        shape.append(rng.between(1, max(1, min(limits.max_dim, left))) if rng.chance(0.5) else 1)
        left //= shape[-1]
    count = math.prod(shape)
    return make_constant(index_dtype(context), [index(context, length) for _ in range(count)], tuple(shape))


def _gathered(context: NodeContext) -> tuple[TensorType, ...]:
    axis, indices = context.axis(), context.type(1).shape
    if indices is None:
        return (TensorType(context.dtype, None),)
    return (TensorType(context.dtype, (*context.shape[:axis], *indices, *context.shape[axis + 1 :])),)


def constant(context: NodeContext, position: int) -> np.ndarray[Any, Any]:
    """The indices at a position; torch text is only written where they are constants."""
    constant = context.constants[position]
    if constant is None:
        raise LookupError(f"{context.operator.name}'s input {position} is no constant")
    return constant.array


def nonnegative_indices(context: NodeContext, position: int, length: int) -> np.ndarray[Any, Any]:
    """Constant indices of an axis of this length, counted from the front."""
    array = constant(context, position).astype(np.int64)
    return np.where(array < 0, array + length, array)


def _torch_gather(context: NodeContext, names: Sequence[str]) -> str:
    axis = context.axis()
    indices = listed(nonnegative_indices(context, 1, context.dims(0)[axis]))
    return f"{names[0]}[{':, ' * axis}{indices}]"


# GatherElements
def element_indices(context: NodeContext, distinct: bool = False) -> Constant:
    """Indices along the axis, for each line of the primary input.

    distinct  for lines of a corner, those of one line distinct, so that no element is written twice; else
              for all lines: ONNX's reference implementation of GatherElements demands it, its text does not
    """
    if not distinct:
        return _indices_of_lines(context)
    rng = context.rng
    axis, length = context.axis(), context.dims(0)[context.axis()]
    shape, left = [], _MANY
    for place, dim in enumerate(context.dims(0)):
        longest = min(left, dim)
        shape.append(rng.between(1, longest) if place == axis or rng.chance(0.3) else longest)
        left //= shape[-1]
    dtype = index_dtype(context)
    lines = math.prod(shape) // shape[axis]
    picked = [_vary_index_sign(context, rng.permutation(length)[: shape[axis]], length) for _ in range(lines)]
    lying = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    array = np.moveaxis(np.array(picked).reshape(lying), -1, axis)
    return make_constant(dtype, array.reshape(-1).tolist(), tuple(shape))


def _indices_of_lines(context: NodeContext) -> Constant:
    axis, length = context.axis(), context.dims(0)[context.axis()]
    lines = math.prod(context.dims(0)) // length
    most = max(length, min(context.limits.max_dim, length * max_growth(context)))
    count = context.rng.between(1, max(1, min(most, _MANY // lines)))
    total = lines * count
    drawn = [index(context, length) for _ in range(min(total, _MANY))]
    repeated = (drawn * -(-total // len(drawn)))[:total]  # a large tensor's lines may be alike
    shape = (*context.dims(0)[:axis], count, *context.dims(0)[axis + 1 :])
    return make_constant(index_dtype(context), repeated, shape)


def _vary_index_sign(context: NodeContext, places: list[int], length: int) -> list[int]:
    return [place - length if context.rng.chance(NEGATIVE) else place for place in places]


def _like_indices(context: NodeContext) -> tuple[TensorType, ...]:
    return (TensorType(context.dtype, context.type(1).shape),)


def _torch_gather_elements(context: NodeContext, names: Sequence[str]) -> str:
    axis = context.axis()
    return (
        f"torch.gather({names[0]}, {axis}, {listed(nonnegative_indices(context, 1, context.dims(0)[axis]))})"
    )


# GatherND
def tuples(context: NodeContext, lengths: Sequence[int], count: int, distinct: bool = False) -> list[int]:
    """`count` index tuples into a tensor of these lengths, flat; distinct on request."""
    if not distinct:
        return [index(context, length) for _ in range(count) for length in lengths]
    total = math.prod(lengths)
    places: dict[int, None] = {}
    for last in range(total - count, total):  # Floyd's way to draw without replacement: one draw for each
        place = context.rng.below(last + 1)
        places[last if place in places else place] = None
    found = []
    for place in places:
        rest, entry = place, []
        for length in reversed(lengths):
            rest, last = divmod(rest, length)
            entry.append(last - length if context.rng.chance(NEGATIVE) else last)
        found += entry[::-1]
    return found


def _gather_nd_indices(context: NodeContext) -> Constant:
    rng, limits = context.rng, context.limits
    shape = context.dims(0)
    batch = context.get("batch_dims")
    depth = rng.between(1, context.rank - batch)
    rest = context.rank - depth  # axes of the output that are the lead's: batched ones and those not indexed
    least = 1 if rest == 0 and limits.min_rank > 0 else 0
    most = max(least, min(2, max(limits.max_rank, context.rank) - rest))
    left = min(max_growth(context) * math.prod(shape[batch : batch + depth]), _MANY)
    middle = []
    for _ in range(rng.between(least, most)):
        middle.append(rng.between(1, max(1, min(limits.max_dim, left))))
        left //= middle[-1]
    count = math.prod(shape[:batch]) * math.prod(middle)
    flat = tuples(context, shape[batch : batch + depth], count)
    return make_constant("int64", flat, (*shape[:batch], *middle, depth))


def _gathered_nd(context: NodeContext) -> tuple[TensorType, ...]:
    indices = context.type(1).shape
    depth = None if indices is None else indices[-1]
    if indices is None or depth is None:
        return (TensorType(context.dtype, None),)
    return (TensorType(context.dtype, (*indices[:-1], *context.shape[context.get("batch_dims") + depth :])),)


def flat_places(array: np.ndarray[Any, Any], lengths: Sequence[int]) -> np.ndarray[Any, Any]:
    """The flat positions that index tuples (the last axis) name in a tensor of these lengths."""
    indices = np.where(array < 0, array + np.array(lengths, np.int64), array)
    strides = [math.prod(lengths[axis + 1 :]) for axis in range(len(lengths))]
    places: np.ndarray[Any, Any] = (indices * np.array(strides, np.int64)).sum(-1)
    return places


def _torch_gather_nd(context: NodeContext, names: Sequence[str]) -> str:
    array, shape, batch = constant(context, 1), context.dims(0), context.get("batch_dims")
    depth = array.shape[-1]
    rows = math.prod(shape[: batch + depth])
    places = flat_places(array, shape[batch : batch + depth])
    if batch:
        each = math.prod(shape[batch : batch + depth])
        starts = np.arange(math.prod(shape[:batch])).reshape(shape[:batch]) * each
        places = places + starts.reshape(shape[:batch] + (1,) * (places.ndim - batch))
    width = math.prod(shape[batch + depth :])
    source = f"{names[0]}.reshape({rows}, {width}).index_select(0, {listed(places.reshape(-1))})"
    return f"{source}.reshape({list(_gathered_nd(context)[0].lengths)})"


register(
    OperatorSpec("Gather", 13, input_specs=(PRIMARY_INPUT, ConstantInput(_gather_indices)), ranks=_RANKED,
                 infer=_gathered, within=full_range, dtypes=ANY,
                 attribute_specs=(AttributeSpec("axis", Axis(), omit=0.1, default=0),),
                 torch=requires_static_inputs(_torch_gather)),
    OperatorSpec("GatherElements", 13, input_specs=(PRIMARY_INPUT, ConstantInput(element_indices)),
                 ranks=_RANKED, infer=_like_indices, within=full_range, dtypes=ANY,
                 attribute_specs=(AttributeSpec("axis", Axis(), omit=0.1, default=0),),
                 torch=requires_static_inputs(_torch_gather_elements)),
    OperatorSpec("GatherND", 13, input_specs=(PRIMARY_INPUT, ConstantInput(_gather_nd_indices)),
                 ranks=_RANKED, infer=_gathered_nd, within=full_range, dtypes=ANY,
                 attribute_specs=(AttributeSpec("batch_dims",
                                                IntRange(0, lambda context: min(2, context.rank - 1)),
                                                omit=0.5, default=0),),
                 torch=requires_static_inputs(_torch_gather_nd)),
)  # fmt: skip
