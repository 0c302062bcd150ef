"""Reductions over axes."""

from __future__ import annotations

from fuzzing.graph.domains import Choice, Made
from fuzzing.graph.intervals import Interval
from fuzzing.graph.operator import LEAD, Auxiliary, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.site import Site, int64
from fuzzing.graph.types import TensorType


def _axes(site: Site) -> tuple[int, ...]:
    return tuple(site.draws.subset(site.rank))


def _reduced(site: Site, axes: list[int]) -> tuple[TensorType, ...]:
    over = {axis % site.rank for axis in axes} if axes else set(range(site.rank))
    if site.get("keepdims"):
        shape = tuple([1 if axis in over else dim for axis, dim in enumerate(site.shape)])
    else:
        shape = tuple([dim for axis, dim in enumerate(site.shape) if axis not in over])
    return (TensorType(site.dtype, shape),)


_KEEP = Setting("keepdims", Choice(1), omit=0.5, default=1)


def _mean(site: Site) -> Interval:
    return site.range(0)


register(
    Operator("ReduceMean", 13, ranks=tuple(range(1, 9)), values=_mean,
             infer=lambda site: _reduced(site, list(site.get("axes") or ())),
             settings=(Setting("axes", Made(_axes)), _KEEP)),
    Operator("ReduceMean", 18, ranks=tuple(range(1, 9)), values=_mean,
             slots=(LEAD, Auxiliary(lambda site: int64(*_axes(site)))), degrees=(1, 2),
             infer=lambda site: _reduced(site, site.numbers(1) if site.given(1) else []),
             settings=(_KEEP,)),
)  # fmt: skip
