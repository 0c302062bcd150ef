"""Convolutions."""

from __future__ import annotations

from fuzzing.graph.domains import Choice, Each, Made
from fuzzing.graph.intervals import Interval, add, scale, widen
from fuzzing.graph.operator import LEAD, Data, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.site import Site
from fuzzing.graph.types import Shape, TensorType


def _group(site: Site) -> int:
    """How many groups the channels form: one mostly, else all, else any divisor."""
    channels = site.dims(0)[1]
    divisors = [n for n in range(1, channels + 1) if channels % n == 0]
    return site.draws.choice((1, 1, channels, site.draws.choice(divisors)))


def _kernel(site: Site) -> list[tuple[int, int]]:
    return [(1, length) for length in site.dims(0)[2:]]


def _weight(site: Site) -> Shape:
    group = site.get("group")
    filters = group * site.draws.between(1, max(1, site.limits.max_dim // group))
    return (filters, site.dims(0)[1] // group, *site.get("kernel_shape"))


def _type(site: Site) -> tuple[TensorType, ...]:
    batch, _, *space = site.dims(0)
    filters, _, *kernel = site.dims(1)
    strides = site.get("strides") or (1,) * len(kernel)
    lengths = [(x - k) // s + 1 for x, k, s in zip(space, kernel, strides, strict=True)]
    return (TensorType(site.dtype, (batch, filters, *lengths)),)


def _values(site: Site) -> Interval:
    _, channels, *kernel = site.dims(1)
    terms = channels
    for length in kernel:
        terms *= length
    largest = terms * site.range(0).largest * site.range(1).largest
    total = widen(Interval(-largest, largest))
    return add(total, site.range(2)) if site.given(2) else scale(total, 1.0)


register(
    Operator(
        "Conv",
        11,
        slots=(LEAD, Data(_weight), Data(lambda site: (site.dims(1)[0],))),
        degrees=(2, 3),
        ranks=(3, 4, 5),
        infer=_type,
        values=_values,
        settings=(
            Setting("group", Made(_group), default=1),
            Setting("kernel_shape", Each(_kernel)),
            Setting("strides", Each(_kernel), omit=0.3),
            Setting("auto_pad", Choice("NOTSET"), omit=0.9, default="NOTSET"),
        ),
    )
)
