"""Activation functions, elementwise or along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fuzzing.graph.attribute_domains import Axis, Choice, Computed
from fuzzing.graph.intervals import UNIT, Interval, full_range, hull, intersect, scale
from fuzzing.graph.ir import Attribute
from fuzzing.graph.operator_spec import ANY_RANK, AttributeSpec, NodeContext, OperatorSpec
from fuzzing.graph.operators import register
from fuzzing.graph.operators.elementwise import (
    LATE,
    PLAIN,
    exact,
    increasing_bounds,
    register_pointwise,
    single_minimum_bounds,
    single_minimum_range,
)
from fuzzing.graph.rounding import (
    after_rounding,
    bounded_domain,
    exponents,
    per_element,
    root_per_element,
    share,
    widened,
)
from fuzzing.graph.types import FLOATS, SIGNED, UNSIGNED, TensorType

_POSITIVE = Interval(0.0, math.inf)
_NEGATIVE = Interval(-math.inf, 0.0)


def _alpha(*values: float, default: float = 1.0) -> tuple[AttributeSpec, ...]:
    return (AttributeSpec("alpha", Choice(*values), omit=0.5, default=default),)


def _call(function: str, *attributes: str) -> Callable[[NodeContext, Sequence[str]], str]:

    def text(context: NodeContext, names: Sequence[str]) -> str:
        values = "".join(f", {context.get(name)!r}" for name in attributes)
        return f"torch.nn.functional.{function}({names[0]}{values})"

    return text


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _not_negative(found: Interval, dtype: str) -> Interval:
    """Widened, but positive or zero by construction."""
    return widened(found, dtype, floor=0.0)


def _split(context: NodeContext, negative: Callable[[Interval], Interval], positive: float = 1.0) -> Interval:
    """Bounds of a function that is `negative` below zero, and a multiple of the element above."""
    found = context.range(0)
    parts = []
    if found.low < 0:
        parts.append(widened(negative(intersect(found, _NEGATIVE)), context.dtype))
    if found.high >= 0:
        above = scale(intersect(found, _POSITIVE), positive)
        parts.append(above if positive == 1.0 else after_rounding(above, context.dtype))
    return hull(parts)


def _leaky(context: NodeContext) -> Interval:
    alpha = context.get("alpha")
    return _split(context, lambda below: scale(below, alpha))


def _elu(context: NodeContext) -> Interval:
    alpha = context.get("alpha")
    return _split(context, lambda below: scale(_exponential(below), alpha))


def _selu(context: NodeContext) -> Interval:
    alpha, gamma = context.get("alpha"), context.get("gamma")
    return _split(context, lambda below: scale(_exponential(below), alpha * gamma), gamma)


def _celu(context: NodeContext) -> Interval:
    alpha = context.get("alpha")
    return _split(context, lambda below: scale(_exponential(scale(below, 1 / alpha)), alpha))


def _exponential(below: Interval) -> Interval:
    return Interval(math.expm1(below.low), math.expm1(below.high))


def _thresholded(context: NodeContext) -> Interval:
    found, alpha = context.range(0), context.get("alpha")
    if found.low > alpha:
        return found
    zero = Interval(0.0, 0.0)
    return zero if found.high <= alpha else hull((zero, Interval(alpha, found.high)))


def _hard_sigmoid(context: NodeContext) -> Interval:
    line = scale(context.range(0), context.get("alpha"))
    beta = context.get("beta")
    clamped = [min(1.0, max(0.0, end + beta)) for end in line]
    return intersect(widened(Interval(*clamped), context.dtype), UNIT)


def _hard_sigmoid_text(context: NodeContext, names: Sequence[str]) -> str:
    return f"torch.clamp({names[0]} * {context.get('alpha')!r} + {context.get('beta')!r}, 0.0, 1.0)"


def _hard_swish(x: float) -> float:
    return x * min(1.0, max(0.0, x / 6 + 0.5))


def _mish(x: float) -> float:
    return x * math.tanh(_softplus(x))


def _gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def _gelu_values(context: NodeContext) -> Interval:
    # Its least value, -0.16997 at -0.7518; the approximation by tanh is off by at most 5e-4.
    bounds = single_minimum_range(_gelu, -0.7517916, context.range(0))
    return widened(bounds, context.dtype, scale=100.0 if context.get("approximate") == "tanh" else 1.0)


def _gelu_text(context: NodeContext, names: Sequence[str]) -> str:
    return f"torch.nn.functional.gelu({names[0]}, approximate={context.get('approximate')!r})"


def _swish(context: NodeContext) -> Interval:
    # x·sigmoid(x) is least at -1.2785; with alpha the curve is the same, alpha times as narrow and as low.
    alpha = context.get("alpha")
    curve = single_minimum_range(lambda x: x * _sigmoid(x), -1.2784645, scale(context.range(0), alpha))
    return widened(scale(curve, 1 / alpha), context.dtype)


def _swish_text(context: NodeContext, names: Sequence[str]) -> str:
    return f"{names[0]} * torch.sigmoid({names[0]} * {context.get('alpha')!r})"


def _threshold(context: NodeContext) -> float:
    """Integers get integer thresholds: ONNX does not specify how fractions are rounded."""
    return context.rng.choice((0.0, 0.5, 1.0, 1.5) if context.dtype in FLOATS else (1.0, 2.0, 3.0))


def _bias(context: NodeContext) -> float:
    """At most the threshold, so that unsigned results stay unsigned."""
    return context.rng.choice((0.0, 0.5, 1.0) if context.dtype in FLOATS else (0.0, 1.0))


def _is_threshold(value: Attribute, context: NodeContext) -> bool:  # noqa: ARG001 - whatever the site
    return isinstance(value, float) and value >= 0


def _is_bias(value: Attribute, context: NodeContext) -> bool:
    return isinstance(value, float) and 0 <= value <= context.get("lambd")


def _shrink(context: NodeContext) -> Interval:
    found, lambd, bias = context.range(0), context.get("lambd"), context.get("bias")
    parts = []
    if found.low < -lambd:
        parts.append(Interval(found.low + bias, min(found.high, -lambd) + bias))
    if found.high > lambd:
        parts.append(Interval(max(found.low, lambd) - bias, found.high - bias))
    if found.high >= -lambd and found.low <= lambd:
        parts.append(Interval(0.0, 0.0))
    return widened(hull(parts), context.dtype)


def _shrink_text(context: NodeContext, names: Sequence[str]) -> str:
    (x,), lambd, bias = names, context.get("lambd"), context.get("bias")
    inner = f"torch.where({x} > {lambd!r}, {x} - {bias!r}, 0)"
    return f"torch.where({x} < {-lambd!r}, {x} + {bias!r}, {inner}).to({x}.dtype)"


register_pointwise("Sigmoid", increasing_bounds(_sigmoid, _not_negative), "torch.sigmoid({0})")
register_pointwise(
    "Softsign", increasing_bounds(lambda x: x / (1 + abs(x))), "torch.nn.functional.softsign({0})", forms=LATE
)
register_pointwise("Softplus", increasing_bounds(_softplus, _not_negative),
                   "torch.nn.functional.softplus({0})", forms=LATE, within=exponents)  # fmt: skip
register_pointwise("Relu", increasing_bounds(lambda x: max(x, 0.0), exact), "torch.relu({0})",
          forms=((13, FLOATS), (14, FLOATS + SIGNED)))  # fmt: skip
register_pointwise("LeakyRelu", _leaky, _call("leaky_relu", "alpha"), forms=((6, PLAIN), (16, FLOATS)),
          attribute_specs=_alpha(0.01, 0.02, 0.2, -0.1, default=0.01))  # fmt: skip
register_pointwise("ThresholdedRelu", _thresholded,
          lambda context, names: f"torch.nn.functional.threshold({names[0]}, {context.get('alpha')!r}, 0.0)",
          forms=((10, PLAIN), (22, FLOATS)), attribute_specs=_alpha(0.5, 1.0, 2.0))  # fmt: skip
register_pointwise("Elu", _elu, _call("elu", "alpha"), forms=LATE, attribute_specs=_alpha(0.5, 1.0, 2.0))
register_pointwise("Selu", _selu,
                   lambda context, names: (
                       f"{context.get('gamma')!r} * {_call('elu', 'alpha')(context, names)}"),
                   forms=LATE, within=share(2), attribute_specs=(
    AttributeSpec("alpha", Choice(1.0, 1.5, 1.6732632), omit=0.7, default=1.6732632),
    AttributeSpec("gamma", Choice(0.5, 1.0, 1.0507010), omit=0.7, default=1.0507010)))  # fmt: skip
register_pointwise("Celu", _celu, _call("celu", "alpha"), forms=((12, ("float32",)), (28, FLOATS)),
          within=share(2), attribute_specs=_alpha(0.5, 1.0, 2.0))  # fmt: skip
register_pointwise("HardSigmoid", _hard_sigmoid, _hard_sigmoid_text, forms=LATE, attribute_specs=(
    AttributeSpec("alpha", Choice(0.1, 0.25, 0.5), omit=0.5, default=0.2),
    AttributeSpec("beta", Choice(0.25, 0.5, 0.75), omit=0.5, default=0.5)))  # fmt: skip
register_pointwise("HardSwish", single_minimum_bounds(_hard_swish, -1.5, widened),
                   "torch.nn.functional.hardswish({0})", forms=((14, PLAIN), (22, FLOATS)),
                   within=share(2))  # fmt: skip
register_pointwise("Mish", single_minimum_bounds(_mish, -1.1924325, widened), "torch.nn.functional.mish({0})",
          forms=((18, PLAIN), (22, FLOATS)), within=exponents)  # fmt: skip
# The approximation by tanh has a cube in it.
register_pointwise("Gelu", _gelu_values, _gelu_text, forms=((20, FLOATS),),
                   within=bounded_domain(-1e6, 1e6, 16.0),
                   attribute_specs=(AttributeSpec("approximate", Choice("none", "tanh"), omit=0.4,
                                                  default="none"),))  # fmt: skip
register_pointwise("Swish", _swish, _swish_text, forms=((24, FLOATS),), within=share(4),
          attribute_specs=_alpha(0.5, 1.0, 1.702, 2.0))  # fmt: skip
register_pointwise(
    "Shrink",
    _shrink,
    _shrink_text,
    forms=((9, PLAIN + SIGNED + UNSIGNED),),
    within=share(2),
    attribute_specs=(
        AttributeSpec("lambd", Computed(_threshold, _is_threshold), default=0.5),
        AttributeSpec("bias", Computed(_bias, _is_bias), omit=0.4, default=0.0),
    ),
)


def _logarithm(width: float, others: int) -> float:
    """The log-softmax of one element when `others` exceed it by `width`."""
    if others == 0:
        return 0.0
    large = width + math.log(others)
    return -(large if large > 700 else math.log1p(math.exp(large)))


def _log_softmax(context: NodeContext) -> Interval:
    low, high = context.range(0)
    length = context.shape[context.axis()]
    others = 1 << 40 if length is None else length - 1
    return Interval(_logarithm(high - low, others), 0.0 if length is None else _logarithm(low - high, others))


def _softmax(context: NodeContext) -> Interval:
    low, high = _log_softmax(context)
    return after_rounding(Interval(math.exp(low), math.exp(high)), context.dtype)


def _lp_domain(type_: TensorType) -> Interval:
    """Positive: ONNX does not define norms near zero before opset 22."""
    largest = min(per_element(type_).high, root_per_element(type_).high)
    return Interval(min(1e-2, largest / 2), largest)


def _lp_values(context: NodeContext) -> Interval:
    low, high = context.range(0)
    length = context.dims(0)[context.axis()]
    return after_rounding(Interval(low / (high * length), 1.0), context.dtype)


def _lp_text(context: NodeContext, names: Sequence[str]) -> str:
    return f"torch.nn.functional.normalize({names[0]}, p={context.get('p')}, dim={context.get('axis')})"


_AXIS = AttributeSpec("axis", Axis(), omit=0.3, default=-1)
_RANKS = ANY_RANK[1:]


def _hardmax_text(context: NodeContext, names: Sequence[str]) -> str:
    (x,), axis = names, context.get("axis")
    return f"torch.zeros_like({x}).scatter({axis}, torch.argmax({x}, dim={axis}, keepdim=True), 1)"


def _along(function: str) -> Callable[[NodeContext, Sequence[str]], str]:
    return lambda context, names: f"torch.{function}({names[0]}, dim={context.get('axis')})"


register(
    OperatorSpec("Softmax", 13, values=_softmax, within=share(4), ranks=_RANKS, dynamic=True,
                 attribute_specs=(_AXIS,), torch=_along("softmax")),
    OperatorSpec("LogSoftmax", 13, values=lambda context: widened(_log_softmax(context), context.dtype),
                 within=share(4), ranks=_RANKS, dynamic=True, attribute_specs=(_AXIS,),
                 torch=_along("log_softmax")),
    OperatorSpec("Hardmax", 13, values=lambda context: UNIT, within=full_range, ranks=_RANKS, dynamic=True,
             attribute_specs=(_AXIS,), torch=_hardmax_text),
    *(OperatorSpec("LpNormalization", since, values=_lp_values, within=_lp_domain, ranks=_RANKS,
                   dtypes=dtypes,
                   attribute_specs=(_AXIS, AttributeSpec("p", Choice(1, 2), omit=0.4, default=2)),
                   torch=_lp_text)
      for since, dtypes in LATE),
)  # fmt: skip
