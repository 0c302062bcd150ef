"""Losses of classification, whose class indices are constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fuzzing.graph.intervals import WHOLE, Interval, hull, multiply, scale, widen
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import literal
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.windows import NARROW
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, Shape, TensorType

_REDUCTIONS = ("none", "sum", "mean")
#: What torch ignores unless told otherwise, so that its form need not say whether anything is.
_NOTHING = -100
_WEIGHT = Interval(0.1, 1.0)  # positive, so that a mean never divides by zero


def _scores(type_: TensorType) -> Interval:
    """Moderate, and so small that all of them sum up."""
    most = min(30.0, 0.05 * WHOLE[type_.dtype].high / max(1, type_.elements))
    return Interval(-most, most)


def _samples(site: Site) -> int:
    return site.x.elements // max(1, site.dims(0)[1])


def _largest(site: Site) -> float:
    """The largest loss of one sample: the scores' spread, and the logarithm of the number of classes."""
    low, high = site.range(0)
    return high - low + math.log(max(1, site.dims(0)[1])) + 1e-3


def _draw(outputs: int) -> Callable[[Site], None]:
    def plan(site: Site) -> None:
        draws, given = site.draws, site.attributes
        if draws.chance(0.7):
            given["reduction"] = draws.choice(_REDUCTIONS)
            if given["reduction"] == "sum" and _samples(site) * _largest(site) > WHOLE[site.dtype].high / 2:
                given["reduction"] = "none"
        if draws.chance(0.3):
            given["ignore_index"] = draws.choice((-1, draws.below(site.dims(0)[1])))
        site.outputs = draws.between(1, outputs)

    return plan


def _labels(site: Site) -> Constant:
    """Classes, some of them ignored, but not the first: the mean of nothing is no number."""
    _, classes, *_ = shape = site.dims(0)
    draws, ignored = site.draws, site.get("ignore_index")
    labels = [draws.below(classes) for _ in range(_samples(site))]
    if ignored is not None:
        labels = [ignored if draws.chance(0.2) else label for label in labels]
        kept = [label for label in range(classes) if label != ignored]
        if not kept:  # the one class is ignored: nothing is, then
            del site.attributes["ignore_index"]
            kept = [0]
        labels[0] = draws.choice(kept)
    return literal("int64", labels, (shape[0], *shape[2:]))


def _loss(site: Site) -> tuple[TensorType, ...]:
    shape = site.shape[:1] + site.shape[2:] if site.get("reduction") == "none" else ()
    return (TensorType(site.dtype, shape), site.x)[: site.outputs]


def _reduced(site: Site, one: Interval) -> Interval:
    """From the bounds on the loss of a sample, without weight."""
    weight = hull((site.range(2), Interval(0, 0))) if site.given(2) else Interval(0, 1)
    if site.get("reduction") == "mean":
        return widen(hull((one, Interval(0, 0))), 1e-2)  # of what is not ignored
    found = multiply(one, weight)
    if site.get("reduction") == "sum":
        found = scale(found, _samples(site))
    return widen(hull((found, Interval(0, 0))), 1e-2)


def _entropy(site: Site) -> tuple[Interval, ...]:
    most = _largest(site)
    return (_reduced(site, Interval(0, most)), widen(Interval(-most, 0), 1e-2))[: site.outputs]


def _arguments(site: Site, names: Sequence[str]) -> str:
    ignored = site.get("ignore_index")
    weight = names[2] if site.given(2) else None
    return (
        f"{names[0]}, {names[1]}, weight={weight}, reduction={site.get('reduction')!r}, "
        f"ignore_index={_NOTHING if ignored is None else ignored}"
    )


def _torch_entropy(site: Site, names: Sequence[str]) -> str:
    loss = f"torch.nn.functional.cross_entropy({_arguments(site, names)})"
    return loss if site.outputs == 1 else f"({loss}, torch.log_softmax({names[0]}, 1))"


def _classes(site: Site) -> Shape:
    return (site.dims(0)[1],)


_SLOTS = (LEAD, Auxiliary(_labels), Data(_classes, within=lambda site: _WEIGHT))
_SETTINGS = (planned("reduction", "mean"), planned("ignore_index"))
_RANKS = (2, 3, 4, 5)


def _likelihood(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "NegativeLogLikelihoodLoss", since, dtypes=dtypes, ranks=_RANKS, within=_scores, plan=_draw(1),
        slots=_SLOTS, degrees=(2, 3), settings=_SETTINGS, infer=_loss,
        values=lambda site: _reduced(site, scale(site.range(0), -1.0)),
        torch=lambda site, names: f"torch.nn.functional.nll_loss({_arguments(site, names)})",
    )  # fmt: skip


def _cross_entropy(since: int, dtypes: tuple[str, ...]) -> Operator:
    """bfloat16 it has from opset 13 on, but its own definition uses the other loss, which has not."""
    return Operator(
        "SoftmaxCrossEntropyLoss", since, dtypes=dtypes, ranks=_RANKS, within=_scores, plan=_draw(2),
        slots=_SLOTS, degrees=(2, 3), settings=_SETTINGS, infer=_loss, values=_entropy,
        torch=_torch_entropy,
    )  # fmt: skip


register(
    _cross_entropy(13, NARROW),
    _cross_entropy(22, FLOATS),
    _likelihood(13, NARROW),
    _likelihood(22, FLOATS),
)  # fmt: skip
