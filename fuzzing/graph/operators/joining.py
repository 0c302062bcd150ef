"""Operators that put tensors together, take them apart, or repeat them."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.graph.domains import Axis, Between, Made
from fuzzing.graph.intervals import Interval, hull, whole
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import spelled, whole_numbers
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import broadcast
from fuzzing.graph.site import Site, int64
from fuzzing.graph.types import ANY, Dim, Shape, TensorType

_RANKED = tuple(range(1, 9))


def growth(site: Site) -> int:
    """By which factor the lead input may grow; at least 1."""
    return max(1, site.limits.max_elements // max(1, site.x.elements))


def repeated(site: Site, low: int, high: int, count: int) -> list[int]:
    """So many whole numbers between two bounds; of very many the first ones come again and again."""
    drawn = [site.draws.between(low, high) for _ in range(min(count, 32))]
    return [drawn[place % 32] for place in range(count)]


def as_lead(site: Site) -> Interval:
    """All that an input of the lead's element type may carry."""
    return whole(site.x)


def all_ranges(site: Site) -> Interval:
    """Bounds on elements that each come from one of the inputs that carry data."""
    return hull(range_ for range_ in site.ranges if range_ is not None)


# Concat


def _concat_axis(site: Site) -> int:
    """Any axis; the longest of a large tensor, along which a further slice adds least."""
    if site.degree <= growth(site):
        axis = site.draws.below(site.rank)
        return axis - site.rank if site.draws.chance(0.1) else axis
    return site.shape.index(max(dim or 0 for dim in site.shape))


def _slices(site: Site) -> Shape:
    """The lead's shape, with another length along the axis now and then."""
    axis = site.axis()
    if site.degree > growth(site):
        length = 1
    elif site.draws.chance(0.7):
        return site.shape
    else:
        length = site.draws.between(site.limits.min_dim, site.limits.max_dim)
    return (*site.shape[:axis], length, *site.shape[axis + 1 :])


def _joined(site: Site) -> tuple[TensorType, ...]:
    axis = site.axis()
    shapes = [type_.shape for type_ in site.types if type_ is not None and type_.shape is not None]
    dims = [_same(lengths) for lengths in zip(*shapes, strict=True)]
    along = [shape[axis] for shape in shapes]
    known = [dim for dim in along if dim is not None]
    dims[axis] = sum(known) if len(known) == site.degree else None
    return (TensorType(site.dtype, tuple(dims)),)


def _same(lengths: Sequence[Dim]) -> Dim:
    """The length that all share, as far as one of them tells it."""
    return next((dim for dim in lengths if dim is not None), None)


def _torch_concat(site: Site, names: Sequence[str]) -> str:
    return f"torch.cat([{', '.join(names)}], {site.get('axis')})"


# Split


def _split_plan(site: Site) -> list[int]:
    """Draws the axis and how many parts; returns their lengths. Only what the axis allows is a choice."""
    draws = site.draws
    if draws.chance(0.5):
        site.attributes["axis"] = Axis().draw(site)
    length = site.dims(0)[site.axis()]
    most = max(1, min(length, site.limits.max_outputs))
    if site.degree == 2:
        parts = _composition(site, length, draws.between(min(2, most), most))
    elif site.operator.since >= 18:
        counts = [n for n in range(1, most + 1) if -(-length // n) * (n - 1) < max(length, 1)]
        count = draws.choice(counts[1:] or counts)
        site.attributes["num_outputs"] = count
        parts = _even(length, count)
    else:
        counts = [n for n in range(1, most + 1) if length % n == 0]
        parts = _even(length, draws.choice(counts[1:] or counts))
    site.outputs = len(parts)
    return parts


def _composition(site: Site, length: int, count: int) -> list[int]:
    """Lengths that add up; of nothing only where that was asked for."""
    if site.limits.min_dim == 0:
        cuts = sorted(site.draws.below(length + 1) for _ in range(count - 1))
    else:
        cuts = sorted(place + 1 for place in site.draws.permutation(max(length - 1, 0))[: count - 1])
    return [end - start for start, end in zip([0, *cuts], [*cuts, length], strict=True)]


def _even(length: int, count: int) -> list[int]:
    """Equal lengths, the last one what is left (ONNX operator reference, Split-18)."""
    each = -(-length // count)
    return [each] * (count - 1) + [length - each * (count - 1)]


def _parts(site: Site) -> list[Dim]:
    length = site.shape[site.axis()]
    if site.given(1):
        lengths = whole_numbers(site, 1)
        return [None] * site.outputs if lengths is None else list(lengths)
    count = site.get("num_outputs") or site.outputs
    return [None] * count if length is None else list(_even(length, count))


def _split(site: Site) -> tuple[TensorType, ...]:
    axis = site.axis()
    before, after = site.shape[:axis], site.shape[axis + 1 :]
    return tuple([TensorType(site.dtype, (*before, part, *after)) for part in _parts(site)])


def _torch_split(site: Site, names: Sequence[str]) -> str:
    text = f"torch.split({names[0]}, {_parts(site)}, {site.axis()})"
    return f"{text}[0]" if site.outputs == 1 else text


# Expand


def _expanded_entries(site: Site) -> Constant:
    """Isra's: where the length is 1, half the time another one. Beyond: further axes, axes left out."""
    draws, limits = site.draws, site.limits
    left = growth(site)
    entries = []
    for dim in site.dims(0):
        entry = 1 if draws.chance(0.5) else dim
        if dim == 1 and draws.chance(0.5):
            entry = draws.between(1, max(1, min(limits.max_dim, left)))
            left //= entry
        entries.append(entry)
    if site.rank < limits.max_rank and draws.chance(0.2):
        for _ in range(draws.between(1, limits.max_rank - site.rank)):
            entries.insert(0, draws.between(1, max(1, min(limits.max_dim, left))))
            left //= entries[0]
    elif draws.chance(0.1):
        while entries and entries[0] in (1, site.shape[-len(entries)]):
            del entries[0]
    return int64(*entries)


def _expanded(site: Site) -> tuple[TensorType, ...]:
    entries = whole_numbers(site, 1)
    if entries is not None:
        return (TensorType(site.dtype, broadcast(site.shape, tuple(entries))),)
    count = (site.type(1).shape or (None,))[0]
    return (TensorType(site.dtype, None if count is None else (None,) * max(count, site.rank)),)


def _torch_expand(site: Site, names: Sequence[str]) -> str:
    return f"{names[0]}.expand({list(_expanded(site)[0].lengths)})"


# Tile


def _repeats(site: Site) -> Constant:
    """Isra's 1 to 3 for each axis, as far as there is room; the axes take their turns in any order."""
    left = growth(site)
    repeats = [1] * site.rank
    for axis in site.draws.permutation(site.rank):
        repeats[axis] = site.draws.between(1, max(1, min(3, left)))
        left //= repeats[axis]
    if repeats and site.limits.min_dim == 0 and site.draws.chance(0.1):
        repeats[site.draws.below(site.rank)] = 0
    return int64(*repeats)


def _tiled(site: Site) -> tuple[TensorType, ...]:
    repeats = whole_numbers(site, 1)
    if repeats is None:
        return (TensorType(site.dtype, (None,) * site.rank),)
    shape = [None if dim is None else dim * by for dim, by in zip(site.shape, repeats, strict=True)]
    return (TensorType(site.dtype, tuple(shape)),)


register(
    Operator("Concat", 13, slots=(LEAD, Data(_slices, within=as_lead, many=True)),
             degrees=(1, 2, 3, 4, 5), ranks=_RANKED, infer=_joined, values=all_ranges, within=whole,
             dtypes=ANY, empty=True, settings=(Setting("axis", Made(_concat_axis)),), torch=_torch_concat),
    Operator("Split", 13, slots=(LEAD, Auxiliary(lambda site: int64(*site.plan))), degrees=(1, 2),
             ranks=_RANKED, plan=_split_plan, infer=_split, within=whole, dtypes=ANY, empty=True,
             settings=(planned("axis", 0, Axis()),), torch=spelled(_torch_split)),
    # No empty tensors: onnxruntime refuses `num_outputs` along an axis of length 0, perhaps the only one.
    Operator("Split", 18, slots=(LEAD, Auxiliary(lambda site: int64(*site.plan))), degrees=(1, 2),
             ranks=_RANKED, plan=_split_plan, infer=_split, within=whole, dtypes=ANY,
             settings=(planned("axis", 0, Axis()),
                       planned("num_outputs",
                               domain=Between(1, lambda site: max(1, site.dims(0)[site.axis()])))),
             torch=spelled(_torch_split)),
    Operator("Expand", 13, slots=(LEAD, Auxiliary(_expanded_entries)), infer=_expanded, within=whole,
             dtypes=ANY, empty=True, torch=spelled(_torch_expand)),
    Operator("Tile", 13, slots=(LEAD, Auxiliary(_repeats)), infer=_tiled, within=whole, dtypes=ANY,
             empty=True, torch=spelled(lambda site, names: f"{names[0]}.tile({site.numbers(1)})")),
)  # fmt: skip
