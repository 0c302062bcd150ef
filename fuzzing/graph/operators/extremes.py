"""Where along an axis the largest and the least elements are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.domains import Axis, Choice, Made
from fuzzing.graph.intervals import Interval, whole
from fuzzing.graph.operator import ANY_RANK, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.operators.reduction import is_flag, reduced
from fuzzing.graph.site import Site
from fuzzing.graph.types import NUMBERS, TensorType


def _keepdims_of_axis(site: Site) -> int:
    """Whether to keep the one axis that is reduced: always where nothing else would be left."""
    return 1 if site.rank == 1 and site.limits.min_rank > 0 else site.draws.below(2)


def _index_type(site: Site) -> tuple[TensorType, ...]:
    if site.x.shape is None:
        return (TensorType("int64", None),)
    return (TensorType("int64", reduced(site.shape, {site.axis()}, site.get("keepdims"))),)


def _index_text(function: str) -> Callable[[Site, Sequence[str]], str]:
    def text(site: Site, names: Sequence[str]) -> str:
        x, axis, keep = names[0], site.axis(), bool(site.get("keepdims"))
        if not site.get("select_last_index"):
            return f"torch.{function}({x}, dim={axis}, keepdim={keep})"
        last = site.dims(0)[axis] - 1
        return f"{last} - torch.{function}(torch.flip({x}, ({axis},)), dim={axis}, keepdim={keep})"

    return text


register(
    *(
        Operator(
            name,
            13,
            ranks=ANY_RANK[1:],
            dtypes=NUMBERS,
            within=whole,
            infer=_index_type,
            values=lambda site: Interval(0, site.dims(0)[site.axis()] - 1),
            settings=(
                Setting("axis", Axis(), omit=0.2, default=0),
                Setting("keepdims", Made(_keepdims_of_axis, is_flag), omit=0.4, default=1),
                Setting("select_last_index", Choice(0, 1), omit=0.6, default=0),
            ),
            torch=_index_text(name.lower()),
        )
        for name in ("ArgMax", "ArgMin")
    )
)
