"""A call on each element computes the same for permuted inputs, its result permuted too."""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

_UNARY = (
    "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "deg2rad",
    "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "floor", "frac", "isfinite", "isinf",
    "isnan", "lgamma", "log", "log10", "log1p", "log2", "logit", "nan_to_num", "neg", "rad2deg",
    "reciprocal", "round", "rsqrt", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc", "i0", "special.i0e", "special.i1", "special.ndtri", "special.ndtr",
    "special.entr", "special.bessel_j0", "special.bessel_y0", "special.log_ndtr", "special.erfcx",
    "nn.functional.relu", "nn.functional.gelu", "nn.functional.elu", "nn.functional.silu",
    "nn.functional.mish", "nn.functional.softplus", "nn.functional.hardswish", "nn.functional.logsigmoid",
    "nn.functional.selu",
)  # fmt: skip
_BINARY = (
    "add", "sub", "mul", "div", "atan2", "copysign", "fmax", "fmin", "fmod", "hypot", "logaddexp",
    "logaddexp2", "maximum", "minimum", "nextafter", "pow", "remainder", "xlogy", "float_power", "heaviside",
    "ldexp", "special.zeta", "special.xlog1py", "eq", "lt", "isclose",
)  # fmt: skip


def _apis() -> tuple[str, ...]:
    return tuple(f"torch.{name}" for name in (*_UNARY, *_BINARY))


def _draw(api: str, rng: Rng) -> TestCase:
    # Lengths above a vector register's, and not its multiples: the last elements take another path.
    shape = (rng.between(1, 3), rng.between(1, 37))
    dtype = rng.choice(("float32", "float32", "float64", "float16", "bfloat16"))
    names = ("input", "other") if api.removeprefix("torch.") in _BINARY else ("input",)
    if dtype == "bfloat16":  # no recipe draws it
        dtype = "float32"
    return draws.call_case(api, {name: draws.uniform(rng, shape, dtype, 4.0) for name in names})


@register_rule("permutation", equation="f(i) = f(i permuted) permuted back", apis=_apis, draw=_draw)
def rewrite(subject: Subject) -> Sides | None:
    """Reverses the last dimension, with which elements change their place in vector registers."""
    if subject.api not in _apis():
        return None
    setup = [f"{name} = {name}.flip(-1)" for name in subject.names]
    return Sides(subject.program(), subject.program(f"({subject.expression}).flip(-1)", setup))
