"""Operators that pick elements by constant indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fuzzing.graph.domains import Axis, Between
from fuzzing.graph.intervals import whole
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import literal, spelled
from fuzzing.graph.operator import LEAD, Auxiliary, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.operators.joining import growth
from fuzzing.graph.site import Site
from fuzzing.graph.types import ANY, TensorType

_RANKED = tuple(range(1, 9))

#: How often an index is counted from the end of its axis.
NEGATIVE = 0.15
#: So many indices are as good a test as more of them.
_MANY = 128


def index_dtype(site: Site) -> str:
    """Where both are allowed, mostly int64: that is what exporters write."""
    return "int32" if site.draws.chance(0.25) else "int64"


def index(site: Site, length: int) -> int:
    """An index of an axis of this length, which is not 0."""
    place = site.draws.below(length)
    return place - length if site.draws.chance(NEGATIVE) else place


def listed(values: Any) -> str:
    """In torch: a tensor of these whole numbers."""
    return f"torch.tensor({np.asarray(values).tolist()}, dtype=torch.int64)"


# Gather


def _gather_indices(site: Site) -> Constant:
    """Isra's: of rank 1 and more, half of the lengths 1; also of rank 0, which takes the axis away."""
    draws, limits = site.draws, site.limits
    length = site.dims(0)[site.axis()]
    most = max(1, limits.max_rank - site.rank + 1)
    least = 0 if site.rank > 1 or limits.min_rank == 0 else 1
    left = min(growth(site) * length, _MANY)
    shape = []
    for _ in range(draws.between(least, most)):
        shape.append(draws.between(1, max(1, min(limits.max_dim, left))) if draws.chance(0.5) else 1)
        left //= shape[-1]
    count = math.prod(shape)
    return literal(index_dtype(site), [index(site, length) for _ in range(count)], tuple(shape))


def _gathered(site: Site) -> tuple[TensorType, ...]:
    axis, indices = site.axis(), site.type(1).shape
    if indices is None:
        return (TensorType(site.dtype, None),)
    return (TensorType(site.dtype, (*site.shape[:axis], *indices, *site.shape[axis + 1 :])),)


def constant(site: Site, position: int) -> np.ndarray[Any, Any]:
    """The indices at a position; torch's text is only written where they are constants."""
    constant = site.constants[position]
    if constant is None:
        raise LookupError(f"{site.operator.name}'s input {position} is no constant")
    return constant.array


def from_front(site: Site, position: int, length: int) -> np.ndarray[Any, Any]:
    """Constant indices of an axis of this length, counted from the front."""
    array = constant(site, position).astype(np.int64)
    return np.where(array < 0, array + length, array)


def _torch_gather(site: Site, names: Sequence[str]) -> str:
    axis = site.axis()
    indices = listed(from_front(site, 1, site.dims(0)[axis]))
    return f"{names[0]}[{':, ' * axis}{indices}]"


# GatherElements


def element_indices(site: Site, distinct: bool = False) -> Constant:
    """Indices along the axis, for each line of the lead input.

    distinct  for lines of a corner, and those of one line differ, so that no element is written to twice;
              else for all lines, as ONNX's reference implementation of GatherElements demands, though the
              operator's text does not
    """
    if not distinct:
        return _indices_of_lines(site)
    draws = site.draws
    axis, length = site.axis(), site.dims(0)[site.axis()]
    shape, left = [], _MANY
    for place, dim in enumerate(site.dims(0)):
        longest = min(left, dim)
        shape.append(draws.between(1, longest) if place == axis or draws.chance(0.3) else longest)
        left //= shape[-1]
    dtype = index_dtype(site)
    lines = math.prod(shape) // shape[axis]
    picked = [_somewhere(site, draws.permutation(length)[: shape[axis]], length) for _ in range(lines)]
    lying = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    array = np.moveaxis(np.array(picked).reshape(lying), -1, axis)
    return literal(dtype, array.reshape(-1).tolist(), tuple(shape))


def _indices_of_lines(site: Site) -> Constant:
    axis, length = site.axis(), site.dims(0)[site.axis()]
    lines = math.prod(site.dims(0)) // length
    most = max(length, min(site.limits.max_dim, length * growth(site)))
    count = site.draws.between(1, max(1, min(most, _MANY // lines)))
    total = lines * count
    drawn = [index(site, length) for _ in range(min(total, _MANY))]
    repeated = (drawn * -(-total // len(drawn)))[:total]  # a large tensor's lines may be alike
    shape = (*site.dims(0)[:axis], count, *site.dims(0)[axis + 1 :])
    return literal(index_dtype(site), repeated, shape)


def _somewhere(site: Site, places: list[int], length: int) -> list[int]:
    """The same indices, now and then counted from the end."""
    return [place - length if site.draws.chance(NEGATIVE) else place for place in places]


def _like_indices(site: Site) -> tuple[TensorType, ...]:
    return (TensorType(site.dtype, site.type(1).shape),)


def _torch_gather_elements(site: Site, names: Sequence[str]) -> str:
    axis = site.axis()
    return f"torch.gather({names[0]}, {axis}, {listed(from_front(site, 1, site.dims(0)[axis]))})"


# GatherND


def tuples(site: Site, lengths: Sequence[int], count: int, distinct: bool = False) -> list[int]:
    """So many places in a tensor of these lengths, each a tuple of indices, flat; distinct on request."""
    if not distinct:
        return [index(site, length) for _ in range(count) for length in lengths]
    total = math.prod(lengths)
    places: dict[int, None] = {}
    for last in range(total - count, total):  # Floyd's way to draw without replacement: one draw for each
        place = site.draws.below(last + 1)
        places[last if place in places else place] = None
    found = []
    for place in places:
        rest, entry = place, []
        for length in reversed(lengths):
            rest, last = divmod(rest, length)
            entry.append(last - length if site.draws.chance(NEGATIVE) else last)
        found += entry[::-1]
    return found


def _gather_nd_indices(site: Site) -> Constant:
    draws, limits = site.draws, site.limits
    shape = site.dims(0)
    batch = site.get("batch_dims")
    depth = draws.between(1, site.rank - batch)
    rest = site.rank - depth  # axes of the output that are the lead's: batched ones and those not indexed
    least = 1 if rest == 0 and limits.min_rank > 0 else 0
    most = max(least, min(2, max(limits.max_rank, site.rank) - rest))
    left = min(growth(site) * math.prod(shape[batch : batch + depth]), _MANY)
    middle = []
    for _ in range(draws.between(least, most)):
        middle.append(draws.between(1, max(1, min(limits.max_dim, left))))
        left //= middle[-1]
    count = math.prod(shape[:batch]) * math.prod(middle)
    flat = tuples(site, shape[batch : batch + depth], count)
    return literal("int64", flat, (*shape[:batch], *middle, depth))


def _gathered_nd(site: Site) -> tuple[TensorType, ...]:
    indices = site.type(1).shape
    depth = None if indices is None else indices[-1]
    if indices is None or depth is None:
        return (TensorType(site.dtype, None),)
    return (TensorType(site.dtype, (*indices[:-1], *site.shape[site.get("batch_dims") + depth :])),)


def flat_places(array: np.ndarray[Any, Any], lengths: Sequence[int]) -> np.ndarray[Any, Any]:
    """The places in a flattened tensor of these lengths that tuples of indices (the last axis) name."""
    indices = np.where(array < 0, array + np.array(lengths, np.int64), array)
    strides = [math.prod(lengths[axis + 1 :]) for axis in range(len(lengths))]
    places: np.ndarray[Any, Any] = (indices * np.array(strides, np.int64)).sum(-1)
    return places


def _torch_gather_nd(site: Site, names: Sequence[str]) -> str:
    """Rows of the tensor flattened down to what is not indexed."""
    array, shape, batch = constant(site, 1), site.dims(0), site.get("batch_dims")
    depth = array.shape[-1]
    rows = math.prod(shape[: batch + depth])
    places = flat_places(array, shape[batch : batch + depth])
    if batch:
        each = math.prod(shape[batch : batch + depth])
        starts = np.arange(math.prod(shape[:batch])).reshape(shape[:batch]) * each
        places = places + starts.reshape(shape[:batch] + (1,) * (places.ndim - batch))
    width = math.prod(shape[batch + depth :])
    source = f"{names[0]}.reshape({rows}, {width}).index_select(0, {listed(places.reshape(-1))})"
    return f"{source}.reshape({list(_gathered_nd(site)[0].lengths)})"


register(
    Operator("Gather", 13, slots=(LEAD, Auxiliary(_gather_indices)), ranks=_RANKED, infer=_gathered,
             within=whole, dtypes=ANY, settings=(Setting("axis", Axis(), omit=0.1, default=0),),
             torch=spelled(_torch_gather)),
    Operator("GatherElements", 13, slots=(LEAD, Auxiliary(element_indices)), ranks=_RANKED,
             infer=_like_indices, within=whole, dtypes=ANY,
             settings=(Setting("axis", Axis(), omit=0.1, default=0),), torch=spelled(_torch_gather_elements)),
    Operator("GatherND", 13, slots=(LEAD, Auxiliary(_gather_nd_indices)), ranks=_RANKED, infer=_gathered_nd,
             within=whole, dtypes=ANY,
             settings=(Setting("batch_dims", Between(0, lambda site: min(2, site.rank - 1)), omit=0.5,
                               default=0),),
             torch=spelled(_torch_gather_nd)),
)  # fmt: skip
