"""Operators that write updates into a tensor at constant indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fuzzing.graph.domains import Axis, Choice, Made
from fuzzing.graph.intervals import BOOLEAN, WHOLE, Interval, add, hull, multiply, whole
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.literals import literal, spelled
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.indexing import (
    constant,
    element_indices,
    flat_places,
    from_front,
    listed,
    tuples,
)
from fuzzing.graph.operators.joining import all_ranges, as_lead, repeated
from fuzzing.graph.rounding import loosened, share
from fuzzing.graph.site import Site, int64
from fuzzing.graph.types import ANY, Shape, TensorType

_RANKED = tuple(range(1, 9))


def _reduction(since: int) -> Setting:
    """How an update and what is there become one; truth values have no arithmetic."""
    names = ("none", "add", "mul") + (("max", "min") if since >= 18 else ())

    def draw(site: Site) -> Attribute:
        return "none" if site.dtype == "bool" else site.draws.choice(names)

    return Setting("reduction", Made(draw, lambda value, site: value in names), omit=0.3, default="none")


#: What leaves room for as much again: sums must stay within what the element type may carry.
_PART = {dtype: BOOLEAN if dtype == "bool" else share(2.5)(TensorType(dtype, ())) for dtype in ANY}


def _part(type_: TensorType) -> Interval:
    return _PART[type_.dtype]


def _hits(site: Site) -> int:
    """How many updates may meet in one element, at most."""
    shape = site.dims(1)
    return max(1, shape[site.axis()] if site.operator.name == "ScatterElements" else math.prod(shape[:-1]))


def _updates_within(site: Site) -> Interval:
    reduction = site.get("reduction")
    if reduction == "mul":  # powers of it do not grow
        return Interval(max(WHOLE[site.dtype].low, -1), 1)
    allowed = _part(site.x)
    if reduction == "add":
        hits = _hits(site)
        return Interval(math.ceil(allowed.low / hits), math.floor(allowed.high / hits))
    return whole(site.x) if reduction in (None, "none") else allowed


def _values(site: Site) -> Interval:
    there, updates = site.range(0), site.range(2)
    reduction = site.get("reduction")
    if reduction == "add":
        hits = _hits(site)
        total = Interval(min(0.0, updates.low * hits), max(0.0, updates.high * hits))
        return loosened(add(there, total), site.dtype, max(there.largest, total.largest))
    if reduction == "mul":
        factor = max(1.0, updates.largest) ** _hits(site)
        return hull((there, multiply(there, Interval(-factor if updates.low < 0 else 0.0, factor))))
    return hull((there, updates))


def _distinct(site: Site) -> bool:
    """Whether no element may be written to twice: then the order would tell."""
    return site.get("reduction") in (None, "none")


def _element_updates(site: Site) -> Shape:
    return site.dims(1)


def _nd_indices(site: Site) -> Constant:
    """Tuples of indices, fewer than the places they may name if these must be distinct."""
    draws, limits = site.draws, site.limits
    shape = site.dims(0)
    depth = draws.between(1, site.rank)
    left = math.prod(shape[:depth])
    lead = []
    for _ in range(draws.between(1, 2)):
        lead.append(draws.between(1, max(1, min(limits.max_dim, left))))
        left //= lead[-1]
    flat = tuples(site, shape[:depth], math.prod(lead), _distinct(site))
    return literal("int64", flat, (*lead, depth))


def _nd_updates(site: Site) -> Shape:
    indices = site.dims(1)
    return (*indices[:-1], *site.shape[indices[-1] :])


# In torch

_TORCH_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _torch_elements(site: Site, names: Sequence[str]) -> str:
    axis, reduction = site.axis(), site.get("reduction")
    indices = listed(from_front(site, 1, site.dims(0)[axis]))
    if _distinct(site):
        return f"torch.scatter({names[0]}, {axis}, {indices}, {names[2]})"
    how = _TORCH_REDUCTIONS[reduction]
    return f"torch.scatter_reduce({names[0]}, {axis}, {indices}, {names[2]}, {how!r})"


def _torch_nd(site: Site, names: Sequence[str]) -> str:
    """The same on the tensor flattened down to what is not indexed."""
    array, shape = constant(site, 1), site.dims(0)
    depth = array.shape[-1]
    rows, width = math.prod(shape[:depth]), math.prod(shape[depth:])
    places = flat_places(array, shape[:depth]).reshape(-1)
    source = f"{names[0]}.reshape({rows}, {width})"
    updates = f"{names[2]}.reshape({len(places)}, {width})"
    if _distinct(site):
        text = f"{source}.index_copy(0, {listed(places)}, {updates})"
    else:
        where = f"{listed(places)}.reshape(-1, 1).expand({len(places)}, {width})"
        how = _TORCH_REDUCTIONS[site.get("reduction")]
        text = f"torch.scatter_reduce({source}, 0, {where}, {updates}, {how!r})"
    return f"{text}.reshape({list(shape)})"


# TensorScatter


def _sequence_axis(site: Site) -> int:
    """Any but the first, which is the batch."""
    axis = site.draws.between(1, site.rank - 1)
    return axis - site.rank if site.draws.chance(0.3) else axis


def _cache_plan(site: Site) -> None:
    """ONNX's default axis is the last but one, which is the batch's where there are two."""
    if site.rank == 2 or site.draws.chance(0.5):
        site.attributes["axis"] = _sequence_axis(site)


def _new_entries(site: Site) -> Shape:
    shape, axis = list(site.dims(0)), site.axis()
    shape[axis] = site.draws.between(1, shape[axis])
    return tuple(shape)


def _write_indices(site: Site) -> Constant:
    """For each sample where it begins; round about it may begin anywhere."""
    axis = site.axis()
    length = site.dims(0)[axis]
    last = length - 1 if site.get("mode") == "circular" else length - site.dims(1)[axis]
    return int64(*repeated(site, 0, last, site.dims(0)[0]))


def _torch_cache(site: Site, names: Sequence[str]) -> str:
    """Each sample's updates go to places of its own along the axis."""
    axis = site.axis()
    shape = site.dims(1)
    starts = site.numbers(2) if site.given(2) else [0] * shape[0]
    places = [[(start + step) % site.dims(0)[axis] for step in range(shape[axis])] for start in starts]
    lying = [1] * site.rank
    lying[0], lying[axis] = shape[0], shape[axis]
    where = f"{listed(places)}.reshape({lying}).expand({list(shape)})"
    return f"torch.scatter({names[0]}, {axis}, {where}, {names[1]})"


def _scatter(name: str, since: int, indices: Callable[[Site], Constant], updates: Callable[[Site], Shape],
             torch: Callable[[Site, Sequence[str]], str]) -> Operator:  # fmt: skip
    axis = (Setting("axis", Axis(), omit=0.3, default=0),) if name == "ScatterElements" else ()
    reductions = (_reduction(since),) if since >= 16 else ()
    return Operator(
        name,
        since,
        slots=(LEAD, Auxiliary(indices), Data(updates, within=_updates_within)),
        ranks=_RANKED,
        within=_part if reductions else whole,
        values=_values,
        dtypes=ANY,
        settings=(*axis, *reductions),
        torch=spelled(torch),
    )


def _elements(since: int) -> Operator:
    return _scatter("ScatterElements", since, lambda site: element_indices(site, _distinct(site)),
                    _element_updates, _torch_elements)  # fmt: skip


register(
    _elements(13), _elements(16), _elements(18),
    *(_scatter("ScatterND", since, _nd_indices, _nd_updates, _torch_nd) for since in (13, 16, 18)),
    Operator("TensorScatter", 24, slots=(LEAD, Data(_new_entries, within=as_lead), Auxiliary(_write_indices)),
             degrees=(2, 3), ranks=tuple(range(2, 9)), values=all_ranges, within=whole, dtypes=ANY,
             plan=_cache_plan,
             settings=(planned("axis", -2, Made(_sequence_axis, lambda value, site: isinstance(value, int))),
                       Setting("mode", Choice("linear", "circular"), omit=0.3, default="linear")),
             torch=spelled(_torch_cache)),
)  # fmt: skip
