"""Functions that networks use as activations, of one element or along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fuzzing.graph.domains import Axis, Choice, Made
from fuzzing.graph.intervals import UNIT, Interval, cut, hull, scale, whole
from fuzzing.graph.ir import Attribute
from fuzzing.graph.operator import ANY_RANK, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.operators.elementwise import LATE, PLAIN, dipping, exact, pointwise, rising, valley
from fuzzing.graph.rounding import exponents, limited, loosened, per_element, root_per_element, rounded, share
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, SIGNED, UNSIGNED, TensorType

_POSITIVE = Interval(0.0, math.inf)
_NEGATIVE = Interval(-math.inf, 0.0)


def _alpha(*values: float, default: float = 1.0) -> tuple[Setting, ...]:
    return (Setting("alpha", Choice(*values), omit=0.5, default=default),)


def _call(function: str, *attributes: str) -> Callable[[Site, Sequence[str]], str]:
    """A function of torch.nn.functional that is given the values of attributes in this order."""

    def text(site: Site, names: Sequence[str]) -> str:
        values = "".join(f", {site.get(name)!r}" for name in attributes)
        return f"torch.nn.functional.{function}({names[0]}{values})"

    return text


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _not_negative(found: Interval, dtype: str) -> Interval:
    """Off a little, but positive or zero by construction."""
    return loosened(found, dtype, floor=0.0)


def _split(site: Site, negative: Callable[[Interval], Interval], positive: float = 1.0) -> Interval:
    """Bounds of a function that is `negative` below zero, and a multiple of the element above."""
    found = site.range(0)
    parts = []
    if found.low < 0:
        parts.append(loosened(negative(cut(found, _NEGATIVE)), site.dtype))
    if found.high >= 0:
        above = scale(cut(found, _POSITIVE), positive)
        parts.append(above if positive == 1.0 else rounded(above, site.dtype))
    return hull(parts)


def _leaky(site: Site) -> Interval:
    alpha = site.get("alpha")
    return _split(site, lambda below: scale(below, alpha))


def _elu(site: Site) -> Interval:
    alpha = site.get("alpha")
    return _split(site, lambda below: scale(_exponential(below), alpha))


def _selu(site: Site) -> Interval:
    alpha, gamma = site.get("alpha"), site.get("gamma")
    return _split(site, lambda below: scale(_exponential(below), alpha * gamma), gamma)


def _celu(site: Site) -> Interval:
    alpha = site.get("alpha")
    return _split(site, lambda below: scale(_exponential(scale(below, 1 / alpha)), alpha))


def _exponential(below: Interval) -> Interval:
    return Interval(math.expm1(below.low), math.expm1(below.high))


def _thresholded(site: Site) -> Interval:
    found, alpha = site.range(0), site.get("alpha")
    if found.low > alpha:
        return found
    zero = Interval(0.0, 0.0)
    return zero if found.high <= alpha else hull((zero, Interval(alpha, found.high)))


def _hard_sigmoid(site: Site) -> Interval:
    line = scale(site.range(0), site.get("alpha"))
    beta = site.get("beta")
    clamped = [min(1.0, max(0.0, end + beta)) for end in line]
    return cut(loosened(Interval(*clamped), site.dtype), UNIT)


def _hard_sigmoid_text(site: Site, names: Sequence[str]) -> str:
    return f"torch.clamp({names[0]} * {site.get('alpha')!r} + {site.get('beta')!r}, 0.0, 1.0)"


def _hard_swish(x: float) -> float:
    return x * min(1.0, max(0.0, x / 6 + 0.5))


def _mish(x: float) -> float:
    return x * math.tanh(_softplus(x))


def _gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def _gelu_values(site: Site) -> Interval:
    # Its least value, -0.16997 at -0.7518; the approximation by tanh is off by at most 5e-4.
    bounds = valley(_gelu, -0.7517916, site.range(0))
    return loosened(bounds, site.dtype, scale=100.0 if site.get("approximate") == "tanh" else 1.0)


def _gelu_text(site: Site, names: Sequence[str]) -> str:
    return f"torch.nn.functional.gelu({names[0]}, approximate={site.get('approximate')!r})"


def _swish(site: Site) -> Interval:
    # x·sigmoid(x) is least at -1.2785; with alpha the curve is the same, alpha times as narrow and as low.
    alpha = site.get("alpha")
    curve = valley(lambda x: x * _sigmoid(x), -1.2784645, scale(site.range(0), alpha))
    return loosened(scale(curve, 1 / alpha), site.dtype)


def _swish_text(site: Site, names: Sequence[str]) -> str:
    return f"{names[0]} * torch.sigmoid({names[0]} * {site.get('alpha')!r})"


def _threshold(site: Site) -> float:
    """Fractions do not become thresholds of integers: ONNX leaves open how they are rounded."""
    return site.draws.choice((0.0, 0.5, 1.0, 1.5) if site.dtype in FLOATS else (1.0, 2.0, 3.0))


def _bias(site: Site) -> float:
    """At most the threshold, so that what is unsigned stays so."""
    return site.draws.choice((0.0, 0.5, 1.0) if site.dtype in FLOATS else (0.0, 1.0))


def _is_threshold(value: Attribute, site: Site) -> bool:  # noqa: ARG001 - whatever the site
    return isinstance(value, float) and value >= 0


def _is_bias(value: Attribute, site: Site) -> bool:
    return isinstance(value, float) and 0 <= value <= site.get("lambd")


def _shrink(site: Site) -> Interval:
    found, lambd, bias = site.range(0), site.get("lambd"), site.get("bias")
    parts = []
    if found.low < -lambd:
        parts.append(Interval(found.low + bias, min(found.high, -lambd) + bias))
    if found.high > lambd:
        parts.append(Interval(max(found.low, lambd) - bias, found.high - bias))
    if found.high >= -lambd and found.low <= lambd:
        parts.append(Interval(0.0, 0.0))
    return loosened(hull(parts), site.dtype)


def _shrink_text(site: Site, names: Sequence[str]) -> str:
    (x,), lambd, bias = names, site.get("lambd"), site.get("bias")
    inner = f"torch.where({x} > {lambd!r}, {x} - {bias!r}, 0)"
    return f"torch.where({x} < {-lambd!r}, {x} + {bias!r}, {inner}).to({x}.dtype)"


pointwise("Sigmoid", rising(_sigmoid, _not_negative), "torch.sigmoid({0})")
pointwise("Softsign", rising(lambda x: x / (1 + abs(x))), "torch.nn.functional.softsign({0})", forms=LATE)
pointwise("Softplus", rising(_softplus, _not_negative), "torch.nn.functional.softplus({0})", forms=LATE,
          within=exponents)  # fmt: skip
pointwise("Relu", rising(lambda x: max(x, 0.0), exact), "torch.relu({0})",
          forms=((13, FLOATS), (14, FLOATS + SIGNED)))  # fmt: skip
pointwise("LeakyRelu", _leaky, _call("leaky_relu", "alpha"), forms=((6, PLAIN), (16, FLOATS)),
          settings=_alpha(0.01, 0.02, 0.2, -0.1, default=0.01))  # fmt: skip
pointwise("ThresholdedRelu", _thresholded,
          lambda site, names: f"torch.nn.functional.threshold({names[0]}, {site.get('alpha')!r}, 0.0)",
          forms=((10, PLAIN), (22, FLOATS)), settings=_alpha(0.5, 1.0, 2.0))  # fmt: skip
pointwise("Elu", _elu, _call("elu", "alpha"), forms=LATE, settings=_alpha(0.5, 1.0, 2.0))
pointwise("Selu", _selu, lambda site, names: f"{site.get('gamma')!r} * {_call('elu', 'alpha')(site, names)}",
          forms=LATE, within=share(2), settings=(
    Setting("alpha", Choice(1.0, 1.5, 1.6732632), omit=0.7, default=1.6732632),
    Setting("gamma", Choice(0.5, 1.0, 1.0507010), omit=0.7, default=1.0507010)))  # fmt: skip
pointwise("Celu", _celu, _call("celu", "alpha"), forms=((12, ("float32",)), (28, FLOATS)),
          within=share(2), settings=_alpha(0.5, 1.0, 2.0))  # fmt: skip
pointwise("HardSigmoid", _hard_sigmoid, _hard_sigmoid_text, forms=LATE, settings=(
    Setting("alpha", Choice(0.1, 0.25, 0.5), omit=0.5, default=0.2),
    Setting("beta", Choice(0.25, 0.5, 0.75), omit=0.5, default=0.5)))  # fmt: skip
pointwise("HardSwish", dipping(_hard_swish, -1.5, loosened), "torch.nn.functional.hardswish({0})",
          forms=((14, PLAIN), (22, FLOATS)), within=share(2))  # fmt: skip
pointwise("Mish", dipping(_mish, -1.1924325, loosened), "torch.nn.functional.mish({0})",
          forms=((18, PLAIN), (22, FLOATS)), within=exponents)  # fmt: skip
# The approximation by tanh has a cube in it.
pointwise("Gelu", _gelu_values, _gelu_text, forms=((20, FLOATS),), within=limited(-1e6, 1e6, 16.0),
          settings=(Setting("approximate", Choice("none", "tanh"), omit=0.4, default="none"),))  # fmt: skip
pointwise("Swish", _swish, _swish_text, forms=((24, FLOATS),), within=share(4),
          settings=_alpha(0.5, 1.0, 1.702, 2.0))  # fmt: skip
pointwise(
    "Shrink",
    _shrink,
    _shrink_text,
    forms=((9, PLAIN + SIGNED + UNSIGNED),),
    within=share(2),
    settings=(
        Setting("lambd", Made(_threshold, _is_threshold), default=0.5),
        Setting("bias", Made(_bias, _is_bias), omit=0.4, default=0.0),
    ),
)


def _logarithm(width: float, others: int) -> float:
    """The logarithm of the softmax of one element when `others` are larger than it by `width`."""
    if others == 0:
        return 0.0
    large = width + math.log(others)
    return -(large if large > 700 else math.log1p(math.exp(large)))


def _log_softmax(site: Site) -> Interval:
    low, high = site.range(0)
    length = site.shape[site.axis()]
    others = 1 << 40 if length is None else length - 1
    return Interval(_logarithm(high - low, others), 0.0 if length is None else _logarithm(low - high, others))


def _softmax(site: Site) -> Interval:
    low, high = _log_softmax(site)
    return rounded(Interval(math.exp(low), math.exp(high)), site.dtype)


def _lp_domain(type_: TensorType) -> Interval:
    """Positive: the norm is nowhere near zero, where ONNX says nothing before opset 22."""
    largest = min(per_element(type_).high, root_per_element(type_).high)
    return Interval(min(1e-2, largest / 2), largest)


def _lp_values(site: Site) -> Interval:
    low, high = site.range(0)
    length = site.dims(0)[site.axis()]
    return rounded(Interval(low / (high * length), 1.0), site.dtype)


def _lp_text(site: Site, names: Sequence[str]) -> str:
    return f"torch.nn.functional.normalize({names[0]}, p={site.get('p')}, dim={site.get('axis')})"


_AXIS = Setting("axis", Axis(), omit=0.3, default=-1)
_RANKS = ANY_RANK[1:]


def _hardmax_text(site: Site, names: Sequence[str]) -> str:
    (x,), axis = names, site.get("axis")
    return f"torch.zeros_like({x}).scatter({axis}, torch.argmax({x}, dim={axis}, keepdim=True), 1)"


def _along(function: str) -> Callable[[Site, Sequence[str]], str]:
    return lambda site, names: f"torch.{function}({names[0]}, dim={site.get('axis')})"


register(
    Operator("Softmax", 13, values=_softmax, within=share(4), ranks=_RANKS, dynamic=True, settings=(_AXIS,),
             torch=_along("softmax")),
    Operator("LogSoftmax", 13, values=lambda site: loosened(_log_softmax(site), site.dtype), within=share(4),
             ranks=_RANKS, dynamic=True, settings=(_AXIS,), torch=_along("log_softmax")),
    Operator("Hardmax", 13, values=lambda site: UNIT, within=whole, ranks=_RANKS, dynamic=True,
             settings=(_AXIS,), torch=_hardmax_text),
    *(Operator("LpNormalization", since, values=_lp_values, within=_lp_domain, ranks=_RANKS, dtypes=dtypes,
               settings=(_AXIS, Setting("p", Choice(1, 2), omit=0.4, default=2)), torch=_lp_text)
      for since, dtypes in LATE),
)  # fmt: skip
