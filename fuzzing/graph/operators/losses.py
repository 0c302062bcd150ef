"""Classification losses with constant labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fuzzing.graph.attribute_domains import planned_attribute
from fuzzing.graph.constants import make_constant
from fuzzing.graph.intervals import FULL_RANGES, Interval, hull, multiply, scale, widen
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import PRIMARY_INPUT, ConstantInput, DataInput, NodeContext, OperatorSpec
from fuzzing.graph.operators import register
from fuzzing.graph.operators.sliding_windows import NARROW
from fuzzing.graph.types import FLOATS, Shape, TensorType

_REDUCTIONS = ("none", "sum", "mean")
#: What torch ignores by default, so that its form need not show whether anything is.
_NOTHING = -100
_WEIGHT = Interval(0.1, 1.0)  # positive, so that a mean never divides by zero


def _scores(type_: TensorType) -> Interval:
    most = min(30.0, 0.05 * FULL_RANGES[type_.dtype].high / max(1, type_.elements))
    return Interval(-most, most)


def _samples(context: NodeContext) -> int:
    return context.x.elements // max(1, context.dims(0)[1])


def _largest(context: NodeContext) -> float:
    low, high = context.range(0)
    return high - low + math.log(max(1, context.dims(0)[1])) + 1e-3


def _draw(outputs: int) -> Callable[[NodeContext], None]:
    def plan(context: NodeContext) -> None:
        rng, given = context.rng, context.attributes
        if rng.chance(0.7):
            given["reduction"] = rng.choice(_REDUCTIONS)
            if (
                given["reduction"] == "sum"
                and _samples(context) * _largest(context) > FULL_RANGES[context.dtype].high / 2
            ):
                given["reduction"] = "none"
        if rng.chance(0.3):
            given["ignore_index"] = rng.choice((-1, rng.below(context.dims(0)[1])))
        context.outputs = rng.between(1, outputs)

    return plan


def _labels(context: NodeContext) -> Constant:
    """Classes, some of them ignored, but not the first: the mean of nothing is NaN."""
    _, classes, *_ = shape = context.dims(0)
    rng, ignored = context.rng, context.get("ignore_index")
    labels = [rng.below(classes) for _ in range(_samples(context))]
    if ignored is not None:
        labels = [ignored if rng.chance(0.2) else label for label in labels]
        kept = [label for label in range(classes) if label != ignored]
        if not kept:  # the one class is ignored: nothing is, then
            del context.attributes["ignore_index"]
            kept = [0]
        labels[0] = rng.choice(kept)
    return make_constant("int64", labels, (shape[0], *shape[2:]))


def _loss(context: NodeContext) -> tuple[TensorType, ...]:
    shape = context.shape[:1] + context.shape[2:] if context.get("reduction") == "none" else ()
    return (TensorType(context.dtype, shape), context.x)[: context.outputs]


def _reduced(context: NodeContext, one: Interval) -> Interval:
    weight = hull((context.range(2), Interval(0, 0))) if context.given(2) else Interval(0, 1)
    if context.get("reduction") == "mean":
        return widen(hull((one, Interval(0, 0))), 1e-2)  # of what is not ignored
    found = multiply(one, weight)
    if context.get("reduction") == "sum":
        found = scale(found, _samples(context))
    return widen(hull((found, Interval(0, 0))), 1e-2)


def _entropy(context: NodeContext) -> tuple[Interval, ...]:
    most = _largest(context)
    return (_reduced(context, Interval(0, most)), widen(Interval(-most, 0), 1e-2))[: context.outputs]


def _arguments(context: NodeContext, names: Sequence[str]) -> str:
    ignored = context.get("ignore_index")
    weight = names[2] if context.given(2) else None
    return (
        f"{names[0]}, {names[1]}, weight={weight}, reduction={context.get('reduction')!r}, "
        f"ignore_index={_NOTHING if ignored is None else ignored}"
    )


def _torch_entropy(context: NodeContext, names: Sequence[str]) -> str:
    loss = f"torch.nn.functional.cross_entropy({_arguments(context, names)})"
    return loss if context.outputs == 1 else f"({loss}, torch.log_softmax({names[0]}, 1))"


def _classes(context: NodeContext) -> Shape:
    return (context.dims(0)[1],)


_SLOTS = (PRIMARY_INPUT, ConstantInput(_labels), DataInput(_classes, within=lambda context: _WEIGHT))
_SETTINGS = (planned_attribute("reduction", "mean"), planned_attribute("ignore_index"))
_RANKS = (2, 3, 4, 5)


def _likelihood(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec(
        "NegativeLogLikelihoodLoss", since, dtypes=dtypes, ranks=_RANKS, within=_scores, plan=_draw(1),
        input_specs=_SLOTS, degrees=(2, 3), attribute_specs=_SETTINGS, infer=_loss,
        values=lambda context: _reduced(context, scale(context.range(0), -1.0)),
        torch=lambda context, names: f"torch.nn.functional.nll_loss({_arguments(context, names)})",
    )  # fmt: skip


def _cross_entropy(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    """Lists bfloat16 from opset 13 on, but its definition uses the other loss, which lacks it."""
    return OperatorSpec(
        "SoftmaxCrossEntropyLoss", since, dtypes=dtypes, ranks=_RANKS, within=_scores, plan=_draw(2),
        input_specs=_SLOTS, degrees=(2, 3), attribute_specs=_SETTINGS, infer=_loss, values=_entropy,
        torch=_torch_entropy,
    )  # fmt: skip


register(
    _cross_entropy(13, NARROW),
    _cross_entropy(22, FLOATS),
    _likelihood(13, NARROW),
    _likelihood(22, FLOATS),
)  # fmt: skip
