"""Choosing among elements: by a condition, by bounds, by their order."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.graph.domains import Axis, Choice
from fuzzing.graph.intervals import WHOLE, Interval, hull, whole
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import bounds, scalar
from fuzzing.graph.operator import ANY_RANK, LEAD, Auxiliary, Data, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import companion, together
from fuzzing.graph.operators.elementwise import PLAIN
from fuzzing.graph.site import Site, int64
from fuzzing.graph.types import ANY, FLOATS, INTEGERS, NUMBERS, UNSIGNED, Shape, TensorType


def _least(site: Site) -> Constant:
    if site.dtype in FLOATS:
        return scalar(site.dtype, site.draws.choice((0.0, -1.0, -0.5, 0.25)))  # the same in every type
    return scalar(site.dtype, site.draws.choice((0, 1, 2) if site.dtype in UNSIGNED else (0, 1, -2)))


def _floor(site: Site) -> float:
    """The least value that Clip leaves."""
    if not site.given(1):
        return WHOLE[site.dtype].low
    constant = site.constants[1]
    return site.range(1).low if constant is None else bounds(constant).low


def _clipped(site: Site) -> Interval:
    """Where the bounds contradict each other, the upper one holds."""
    low, high = (max(end, _floor(site)) for end in site.range(0))
    if not site.given(2):
        return Interval(low, high)
    top = site.range(2)
    return Interval(min(low, top.low), min(high, top.high))


def _count(site: Site) -> Constant:
    """One where they need not be sorted: ONNX leaves the order open then."""
    return int64(site.draws.between(1, site.dims(0)[site.axis()]) if site.get("sorted") else 1)


def _chosen(site: Site) -> tuple[TensorType, TensorType]:
    if site.x.shape is None:
        return TensorType(site.dtype, None), TensorType("int64", None)
    axis = site.axis()
    count = site.numbers(1)[0] if site.constants[1] is not None else None
    shape: Shape = (*site.shape[:axis], count, *site.shape[axis + 1 :])
    return TensorType(site.dtype, shape), TensorType("int64", shape)


def _chosen_values(site: Site) -> tuple[Interval, Interval]:
    return site.range(0), Interval(0, site.dims(0)[site.axis()] - 1)


def _chosen_text(site: Site, names: Sequence[str]) -> str:
    """With equal elements in their order, as ONNX has them and torch's own topk has not."""
    axis, descending = site.axis(), bool(site.get("largest"))
    ordered = f"torch.sort({names[0]}, dim={axis}, descending={descending}, stable=True)"
    return f"tuple([part.narrow({axis}, 0, {site.numbers(1)[0]}) for part in {ordered}])"


def _where(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "Where",
        since,
        slots=(
            Data(companion, dtype="bool"),
            LEAD,
            Data(companion, within=lambda site: WHOLE[site.dtype]),
        ),
        lead=1,
        infer=together,
        values=lambda site: hull((site.range(1), site.range(2))),
        within=whole,
        dtypes=dtypes,
        empty=True,
        dynamic=True,
        torch="torch.where({0}, {1}, {2})",
    )


def _top_k(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "TopK",
        since,
        slots=(LEAD, Auxiliary(_count)),
        ranks=ANY_RANK[1:],
        infer=_chosen,
        values=_chosen_values,
        within=whole,
        dtypes=dtypes,
        settings=(
            Setting("axis", Axis(), omit=0.3, default=-1),
            Setting("largest", Choice(0, 1), omit=0.4, default=1),
            Setting("sorted", Choice(0, 1), omit=0.8, default=1),
        ),
        torch=_chosen_text,
    )


def _clip(since: int, dtypes: tuple[str, ...]) -> Operator:
    """With one bound a constant and the other an input of the model: compilers know roads for both.

    ONNX lists bfloat16 from opset 13 on, but writes Clip out by Where, which takes it from 16 on.
    """
    return Operator(
        "Clip",
        since,
        slots=(
            LEAD,
            Auxiliary(_least, omit=0.4),
            Data(lambda site: (), within=lambda site: Interval(_floor(site), WHOLE[site.dtype].high)),
        ),
        degrees=(1, 2, 3),
        within=whole,
        values=_clipped,
        dtypes=dtypes,
        empty=True,
        dynamic=True,
        torch=lambda site, names: names[0] if site.degree == 1 else f"torch.clamp({', '.join(names)})",
    )


register(
    _where(9, (*PLAIN, *INTEGERS, "bool")),
    _where(16, ANY),
    _top_k(11, PLAIN + INTEGERS),
    _top_k(24, NUMBERS),
    _clip(13, PLAIN + INTEGERS),
    _clip(16, NUMBERS),
)
