"""Operators that make one tensor of up to five, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.intervals import WHOLE, Interval, whole
from fuzzing.graph.operators.arithmetic import broadcasting, ranges, total
from fuzzing.graph.rounding import rounded, share
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, NUMBERS


def _fold(function: str, names: Sequence[str]) -> str:
    found = names[0]
    for name in names[1:]:
        found = f"torch.{function}({found}, {name})"
    return found


def _folded(function: str) -> Callable[[Site, Sequence[str]], str]:
    return lambda site, names: _fold(function, names)


def _anything(site: Site) -> Interval:
    return WHOLE[site.dtype]


def _largest(site: Site) -> Interval:
    found = ranges(site)
    return Interval(max(item.low for item in found), max(item.high for item in found))


def _smallest(site: Site) -> Interval:
    found = ranges(site)
    return Interval(min(item.low for item in found), min(item.high for item in found))


def _mean(site: Site) -> Interval:
    low, high = total(ranges(site), site.dtype)
    return rounded(Interval(low / site.degree, high / site.degree), site.dtype)


_FIFTH = share(5)
_VARIADIC = (1, 2, 3, 4, 5)

broadcasting(
    "Max", {13: NUMBERS}, _largest, _folded("maximum"), within=whole, second=_anything, degrees=_VARIADIC
)
broadcasting(
    "Min", {13: NUMBERS}, _smallest, _folded("minimum"), within=whole, second=_anything, degrees=_VARIADIC
)
broadcasting(
    "Sum",
    {13: FLOATS},
    lambda site: total(ranges(site), site.dtype),
    _folded("add"),
    within=_FIFTH,
    second=lambda site: _FIFTH(site.x),
    degrees=_VARIADIC,
)
broadcasting(
    "Mean",
    {13: FLOATS},
    _mean,
    lambda site, names: f"({_fold('add', names)}) / {site.degree}",
    within=_FIFTH,
    second=lambda site: _FIFTH(site.x),
    degrees=_VARIADIC,
)
