"""Functions of one element that networks use as activations."""

from __future__ import annotations

import math
from collections.abc import Callable

from fuzzing.graph.domains import Choice
from fuzzing.graph.intervals import UNIT, Interval, whole
from fuzzing.graph.operator import Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.site import Site
from fuzzing.graph.types import NUMBERS


def _rising(function: Callable[[float], float]) -> Callable[[Site], Interval]:
    def values(site: Site) -> Interval:
        low, high = site.range(0)
        return Interval(function(low), function(high))

    return values


def _leaky(site: Site) -> Interval:
    low, high = site.range(0)
    alpha = site.get("alpha")
    return Interval(low if low > 0 else low * alpha, high if high > 0 else high * alpha)


register(
    Operator("Relu", 14, values=_rising(lambda x: max(x, 0.0)), within=whole, empty=True, dynamic=True,
             dtypes=NUMBERS, torch="torch.relu({0})"),
    Operator("Sigmoid", 13, values=lambda site: UNIT, within=whole, empty=True, dynamic=True,
             torch="torch.sigmoid({0})"),
    Operator("Tanh", 13, values=_rising(math.tanh), within=whole, empty=True, dynamic=True,
             torch="torch.tanh({0})"),
    Operator("LeakyRelu", 16, values=_leaky, within=whole, empty=True, dynamic=True,
             settings=(Setting("alpha", Choice(0.01, 0.02), omit=0.5, default=0.01),),
             torch=lambda site, names: f"torch.nn.functional.leaky_relu({names[0]}, {site.get('alpha')!r})"),
)  # fmt: skip
