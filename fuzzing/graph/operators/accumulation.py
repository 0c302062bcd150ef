"""Sums and products along an axis that keep every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.domains import Choice
from fuzzing.graph.intervals import Interval, hull
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import scalar
from fuzzing.graph.operator import ANY_RANK, LEAD, Auxiliary, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.rounding import factor_per_element, per_element, rounded, rounded_product
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, TensorType


def _axis(site: Site) -> Constant:
    """A scalar of either type that an axis may have, now and then counted from the end."""
    draws = site.draws
    axis = draws.below(site.rank) - (site.rank if draws.chance(0.1) else 0)
    return scalar("int64" if draws.chance(0.7) else "int32", axis)


def _length(site: Site) -> int:
    return site.dims(0)[site.numbers(1)[0]]


def _sums(site: Site) -> Interval:
    low, high = site.range(0)
    length = _length(site)
    bounds = Interval(min(low, low * length), max(high, high * length))
    return _with_start(site, rounded(bounds, site.dtype, 4), 0)


def _products(site: Site) -> Interval:
    low, length = site.range(0).low, _length(site)
    most = max(site.range(0).largest, site.range(0).largest ** length)
    bounds = Interval(min(low, low**length) if low >= 0 else -most, most)
    return _with_start(site, rounded_product(bounds, site.dtype, length), 1)


def _with_start(site: Site, bounds: Interval, start: int) -> Interval:
    """What is exclusive begins with what nothing sums up to, or multiplies to."""
    return hull((bounds, Interval(start, start))) if site.get("exclusive") else bounds


def _text(function: str, start: str) -> Callable[[Site, Sequence[str]], str]:
    def text(site: Site, names: Sequence[str]) -> str:
        x, axis = names[0], site.numbers(1)[0] % site.rank
        source = f"torch.flip({x}, ({axis},))" if site.get("reverse") else x
        found = f"torch.{function}({source}, dim={axis}, dtype={x}.dtype)"
        if site.get("exclusive"):
            first = f"torch.{start}_like({x}.narrow({axis}, 0, 1))"
            found = f"torch.cat(({first}, {found}.narrow({axis}, 0, {_length(site) - 1})), dim={axis})"
        return f"torch.flip({found}, ({axis},))" if site.get("reverse") else found

    return text


def _operator(
    name: str,
    since: int,
    dtypes: tuple[str, ...],
    values: Callable[[Site], Interval],
    within: Callable[[TensorType], Interval],
    torch: Callable[[Site, Sequence[str]], str],
) -> Operator:
    return Operator(
        name,
        since,
        slots=(LEAD, Auxiliary(_axis)),
        ranks=ANY_RANK[1:],
        values=values,
        within=within,
        dtypes=dtypes,
        settings=(
            Setting("exclusive", Choice(0, 1), omit=0.4, default=0),
            Setting("reverse", Choice(0, 1), omit=0.4, default=0),
        ),
        torch=torch,
    )


_WHOLE_NUMBERS = ("int32", "int64", "uint32", "uint64")
_SUM_TEXT = _text("cumsum", "zeros")

register(
    _operator("CumSum", 11, ("float32", "float64", *_WHOLE_NUMBERS), _sums, per_element, _SUM_TEXT),
    _operator("CumSum", 14, (*FLOATS, *_WHOLE_NUMBERS), _sums, per_element, _SUM_TEXT),
    _operator(
        "CumProd", 26, (*FLOATS, *_WHOLE_NUMBERS), _products, factor_per_element, _text("cumprod", "ones")
    ),
)
