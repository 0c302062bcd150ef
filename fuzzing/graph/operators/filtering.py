"""Operators that keep some elements; which ones, and so the lengths, only the data tell (Compress aside)."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.draws import Draws
from fuzzing.graph.domains import Axis, Choice
from fuzzing.graph.intervals import Interval, whole
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import literal, spelled, whole_numbers
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.operators.indexing import listed
from fuzzing.graph.operators.layout import product
from fuzzing.graph.operators.shape import MOST
from fuzzing.graph.site import Limits, Site
from fuzzing.graph.types import ANY, Dim, Shape, TensorType

_RANKED = tuple(range(1, 9))
_BUT_BFLOAT16 = tuple(dtype for dtype in ANY if dtype != "bfloat16")


def _below(dims: Sequence[Dim]) -> Interval:
    """Where whole numbers below one of these lengths lie."""
    known = [dim for dim in dims if dim is not None]
    return Interval(0, max(known, default=0) if len(known) == len(dims) else MOST)


# Compress

#: A longer condition on a flattened tensor is no other test.
_LONGEST = 32


def _condition(site: Site) -> Constant:
    """Which are kept, at least one; now and then it ends before the axis does."""
    draws = site.draws
    length = site.x.elements if site.get("axis") is None else site.dims(0)[site.axis()]
    length = min(length, _LONGEST)
    if draws.chance(0.2):
        length = draws.between(1, length)
    kept = set(draws.subset(length))
    return literal("bool", [place in kept for place in range(length)])


def _compressed(site: Site) -> tuple[TensorType, ...]:
    kept = whole_numbers(site, 1)
    count = None if kept is None else sum(kept)
    if site.get("axis") is None:
        return (TensorType(site.dtype, (count,)),)
    axis = site.axis()
    return (TensorType(site.dtype, (*site.shape[:axis], count, *site.shape[axis + 1 :])),)


def _torch_compress(site: Site, names: Sequence[str]) -> str:
    places = listed([place for place, kept in enumerate(site.numbers(1)) if kept])
    if site.get("axis") is None:
        return f"{names[0]}.reshape(-1).index_select(0, {places})"
    return f"{names[0]}.index_select({site.axis()}, {places})"


def _compress(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "Compress",
        since,
        slots=(LEAD, Auxiliary(_condition)),
        ranks=_RANKED,
        infer=_compressed,
        within=whole,
        dtypes=dtypes,
        settings=(Setting("axis", Axis(), omit=0.2),),
        torch=spelled(_torch_compress),
    )


# Unique


def _unique_plan(site: Site) -> None:
    site.outputs = site.draws.between(1, min(4, site.limits.max_outputs))


def _uniques(site: Site) -> tuple[TensorType, ...]:
    """What is left, where each was first, which one each was, how often (Unique-11)."""
    if site.get("axis") is None:
        left: Shape = (None,)
        total = product(site.shape)
    else:
        axis = site.axis()
        left = (*site.shape[:axis], None, *site.shape[axis + 1 :])
        total = site.shape[axis]
    unknown = TensorType("int64", (None,))
    found = (TensorType(site.dtype, left), unknown, TensorType("int64", (total,)), unknown)
    return found[: site.outputs]


def _unique_values(site: Site) -> tuple[Interval, ...]:
    total = [product(site.shape)]
    places = _below(total)
    return (site.range(0), places, places, Interval(1, max(1, places.high)))[: site.outputs]


def _unique(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "Unique",
        since,
        ranks=_RANKED,
        infer=_uniques,
        values=_unique_values,
        within=whole,
        dtypes=dtypes,
        plan=_unique_plan,
        data_dependent=True,
        settings=(
            Setting("axis", Axis(), omit=0.5),
            Setting("sorted", Choice(0, 1), omit=0.4, default=1),
        ),
    )


# NonMaxSuppression


def _boxes(shape: tuple[int, ...]) -> bool:
    return shape[2] == 4


def _fresh_boxes(draws: Draws, limits: Limits) -> tuple[int, ...]:
    batch, count = [draws.between(max(1, limits.min_dim), max(1, limits.max_dim)) for _ in range(2)]
    return (batch, count, 4)


def _scores(site: Site) -> Shape:
    batch, count, _ = site.dims(0)
    return (batch, site.draws.between(1, max(1, min(3, site.limits.max_dim))), count)


def _eighths(site: Site, low: int, high: int) -> float:
    return site.draws.between(low, high) / 8


def _scalar_or_one(site: Site, dtype: str, value: float) -> Constant:
    return literal(dtype, (value,), () if site.draws.chance(0.5) else (1,))


register(
    _compress(11, _BUT_BFLOAT16),
    _compress(28, ANY),
    Operator("NonZero", 13, ranks=_RANKED, values=lambda site: _below(site.shape), within=whole,
             infer=lambda site: (TensorType("int64", (site.rank, None)),), dtypes=ANY, empty=True,
             dynamic=True, data_dependent=True,
             torch=lambda site, names: f"torch.nonzero({names[0]}).t()"),
    _unique(11, _BUT_BFLOAT16),
    _unique(28, ANY),
    # Three inputs at least: the third is how many boxes to keep, by default none.
    Operator("NonMaxSuppression", 11, degrees=(3, 4, 5), ranks=(3,), dtypes=("float32",), takes=_boxes,
             fresh=_fresh_boxes, infer=lambda site: (TensorType("int64", (None, 3)),), data_dependent=True,
             values=lambda site: _below((*site.shape, *(site.type(1).shape or (None,)))),
             slots=(LEAD, Data(_scores),
                    Auxiliary(lambda site: _scalar_or_one(site, "int64", site.draws.between(1, 4))),
                    Auxiliary(lambda site: _scalar_or_one(site, "float32", _eighths(site, 0, 8)), omit=0.2),
                    Auxiliary(lambda site: _scalar_or_one(site, "float32", _eighths(site, -4, 4)))),
             settings=(Setting("center_point_box", Choice(0, 1), omit=0.4, default=0),)),
)  # fmt: skip
