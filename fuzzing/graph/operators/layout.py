"""Operators that give the same elements in another shape or order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.draws import Draws
from fuzzing.graph.domains import Axis, Choice, Permutation
from fuzzing.graph.intervals import whole
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import whole_numbers
from fuzzing.graph.operator import LEAD, Auxiliary, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.site import Limits, Site, int64
from fuzzing.graph.types import ANY, Dim, TensorType

#: How often an axis is counted from the end: `domains.Axis` has the same, for the same reason.
_NEGATIVE = 0.1


def shuffled_axes(site: Site, axes: Sequence[int], rank: int) -> list[int]:
    """The axes as they are written down: in some order one time in ten, now and then counted from the end."""
    draws = site.draws
    order = draws.permutation(len(axes)) if draws.chance(0.1) else range(len(axes))
    return [axes[place] - rank if draws.chance(_NEGATIVE) else axes[place] for place in order]


def product(dims: Sequence[Dim]) -> Dim:
    """The number of elements; None if a length is unknown."""
    total = 1
    for dim in dims:
        if dim is None:
            return None
        total *= dim
    return total


# Transpose


def _transposed(site: Site) -> tuple[TensorType, ...]:
    perm = site.get("perm")
    shape = site.shape[::-1] if perm is None else tuple([site.shape[axis] for axis in perm])
    return (TensorType(site.dtype, shape),)


def _torch_permute(site: Site, names: Sequence[str]) -> str:
    perm = site.get("perm")
    return f"{names[0]}.permute({list(range(site.rank))[::-1] if perm is None else list(perm)})"


# Reshape


def _target(site: Site) -> tuple[int, ...]:
    """Another shape of as many elements, as Isra draws it: the last length is what the others leave."""
    draws, limits = site.draws, site.limits
    rest = site.x.elements
    least = 0 if rest == 1 and limits.min_rank == 0 else max(1, limits.min_rank)
    rank = draws.between(least, limits.max_rank)
    shape = []
    for _ in range(rank - 1):
        shape.append(math.gcd(rest, draws.between(1, max(rest, 1))))
        rest //= shape[-1]
    return (*shape, rest) if rank else ()


def _empty_target(site: Site) -> list[int]:
    """A shape without elements. Its 0 stands where the input's does, so that both readings of 0 give it."""
    draws, limits = site.draws, site.limits
    zero = draws.choice([axis for axis, dim in enumerate(site.shape) if dim == 0])
    rank = draws.between(zero + 1, max(zero + 1, limits.max_rank))
    return [0 if axis == zero else draws.between(1, max(1, limits.max_dim)) for axis in range(rank)]


def _shape_entries(site: Site) -> Constant:
    draws = site.draws
    if not site.x.static:
        return int64(-1)
    if site.x.elements == 0:
        return int64(*_empty_target(site))
    entries = list(_target(site))
    if entries and draws.chance(0.3):
        entries[draws.below(len(entries))] = -1
    if not site.get("allowzero") and draws.chance(0.2):
        for axis, (entry, dim) in enumerate(zip(entries, site.shape, strict=False)):
            if entry == dim:
                entries[axis] = 0
    return int64(*entries)


def _reshaped(site: Site) -> tuple[TensorType, ...]:
    entries = whole_numbers(site, 1)
    if entries is None:
        rank = (site.type(1).shape or (None,))[0]
        return (TensorType(site.dtype, None if rank is None else (None,) * rank),)
    keep = not site.get("allowzero")
    shape: list[Dim] = [
        site.shape[axis] if entry == 0 and keep else entry for axis, entry in enumerate(entries)
    ]
    if -1 in entries:
        hole = entries.index(-1)
        others = product(shape[:hole] + shape[hole + 1 :])
        total = product(site.shape)
        shape[hole] = None if others is None or total is None else total // others if others else 0
    return (TensorType(site.dtype, tuple(shape)),)


def _torch_reshape(site: Site, names: Sequence[str]) -> str | None:
    """Lengths that only the data tell are the input's, or torch's own -1."""
    shape, entries = _reshaped(site)[0].shape, whole_numbers(site, 1)
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


def _flatten_plan(site: Site) -> None:
    """Draws the axis, or leaves it out: a scalar has none, so ONNX's 1 does not fit it."""
    if not site.rank or site.draws.chance(0.8):
        site.attributes["axis"] = _FLATTEN_AXIS.draw(site)


def _flattened(site: Site) -> tuple[TensorType, ...]:
    axis = site.axis()
    return (TensorType(site.dtype, (product(site.shape[:axis]), product(site.shape[axis:]))),)


def _torch_flatten(site: Site, names: Sequence[str]) -> str:
    axis = site.axis()
    if axis == 0:
        return f"{names[0]}.reshape(1, -1)"
    if axis == site.rank:
        return f"{names[0]}.reshape(-1, 1)"
    return f"{names[0]}.flatten(0, {axis - 1}).flatten(1)"


# Squeeze


def _has_one(shape: tuple[int, ...]) -> bool:
    return 1 in shape


def _with_one(draws: Draws, limits: Limits) -> tuple[int, ...]:
    shape = [
        draws.between(max(1, limits.min_dim), max(1, limits.max_dim))
        for _ in range(draws.between(max(1, limits.min_rank), max(1, limits.max_rank)))
    ]
    shape[draws.below(len(shape))] = 1
    return tuple(shape)


def _ones(site: Site) -> Constant:
    """Some axes of length 1, mostly all."""
    axes = [axis for axis, dim in enumerate(site.shape) if dim == 1]
    if site.draws.chance(0.5):
        axes = sorted(axes[place] for place in site.draws.subset(len(axes)))
    if len(axes) == site.rank > 1 and site.limits.min_rank > 0:
        axes = axes[1:]
    return int64(*shuffled_axes(site, axes, site.rank))


def _squeezed(site: Site) -> tuple[TensorType, ...]:
    if site.given(1):
        axes = whole_numbers(site, 1)
        if axes is None:
            count = (site.type(1).shape or (None,))[0]
            return (TensorType(site.dtype, None if count is None else (None,) * (site.rank - count)),)
        gone = {axis % site.rank for axis in axes} if axes else set()
    else:
        if None in site.shape:
            return (TensorType(site.dtype, None),)  # any unknown length may be 1
        gone = {axis for axis, dim in enumerate(site.shape) if dim == 1}
    shape = tuple([dim for axis, dim in enumerate(site.shape) if axis not in gone])
    return (TensorType(site.dtype, shape),)


def _torch_squeeze(site: Site, names: Sequence[str]) -> str | None:
    if not site.given(1):
        return f"{names[0]}.squeeze()"
    axes = whole_numbers(site, 1)
    return None if axes is None else f"{names[0]}.squeeze({tuple(axes)})"


# Unsqueeze


def _new_axes(site: Site) -> Constant:
    """Axes of the output; none where the input's rank is already the largest."""
    room = site.limits.max_rank - site.rank
    rank = site.rank + (site.draws.between(1, room) if room > 0 else 0)
    axes = sorted(site.draws.permutation(rank)[: rank - site.rank])
    return int64(*shuffled_axes(site, axes, rank))


def _unsqueezed(site: Site) -> tuple[TensorType, ...]:
    axes = whole_numbers(site, 1)
    if axes is None:
        count = (site.type(1).shape or (None,))[0]
        return (TensorType(site.dtype, None if count is None else (None,) * (site.rank + count)),)
    rank = site.rank + len(axes)
    new = {axis % rank for axis in axes}
    old = iter(site.shape)
    return (TensorType(site.dtype, tuple([1 if axis in new else next(old) for axis in range(rank)])),)


def _torch_unsqueeze(site: Site, names: Sequence[str]) -> str | None:
    axes = whole_numbers(site, 1)
    if axes is None:
        return None
    rank = site.rank + len(axes)
    return names[0] + "".join(f".unsqueeze({axis})" for axis in sorted(axis % rank for axis in axes))


register(
    Operator("Transpose", 13, infer=_transposed, within=whole, dtypes=ANY, empty=True, dynamic=True,
             settings=(Setting("perm", Permutation(), omit=0.05),), torch=_torch_permute),
    Operator("Reshape", 13, slots=(LEAD, Auxiliary(_shape_entries)), infer=_reshaped, within=whole,
             dtypes=ANY, empty=True, dynamic=True, torch=_torch_reshape),
    Operator("Reshape", 14, slots=(LEAD, Auxiliary(_shape_entries)), infer=_reshaped, within=whole,
             dtypes=ANY, empty=True, dynamic=True,
             settings=(Setting("allowzero", Choice(0, 0, 1), omit=0.7, default=0),), torch=_torch_reshape),
    Operator("Flatten", 13, infer=_flattened, within=whole, dtypes=ANY, empty=True, dynamic=True,
             plan=_flatten_plan, settings=(planned("axis", 1, _FLATTEN_AXIS),),
             torch=_torch_flatten),
    Operator("Squeeze", 13, slots=(LEAD, Auxiliary(_ones)), degrees=(1, 2), ranks=tuple(range(1, 9)),
             takes=_has_one, fresh=_with_one, infer=_squeezed, within=whole, dtypes=ANY, empty=True,
             torch=_torch_squeeze),
    Operator("Unsqueeze", 13, slots=(LEAD, Auxiliary(_new_axes)), ranks=tuple(range(5)), infer=_unsqueezed,
             within=whole, dtypes=ANY, empty=True, dynamic=True, torch=_torch_unsqueeze),
)  # fmt: skip
