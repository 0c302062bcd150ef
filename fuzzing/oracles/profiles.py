"""Tolerance profiles: how far an output may lie from the reference, by name.

A profile is one registered function from an element type and the source's own tolerance to `Bounds`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuzzing.cases import Tolerance
from fuzzing.errors import UnknownNameError


@dataclass(frozen=True)
class Bounds:
    """What is allowed of one element: |got - want| ≤ atol + rtol·|want| + noise·max|want|, or `steps`.

    steps  counts representable numbers and is for types too coarse for a relative bound
    noise  times the largest finite magnitude of the whole reference: where large terms cancel, each has
           brought its own rounding, and an element near 0 shows it
    """

    rtol: float = 0.0
    atol: float = 0.0
    steps: int = 0
    noise: float = 0.0


Profile = Callable[[str, "Tolerance | None"], Bounds]

EXACT = Bounds()

#: torch.testing.assert_close's table (torch/testing/_comparison.py, _DTYPE_PRECISIONS), read as
#: (rtol, atol). Its `default_tolerances` gives every other type (0, 0), hence exactness.
DTYPE_TOLERANCES = {
    "float16": Tolerance(1e-3, 1e-5),
    "bfloat16": Tolerance(1.6e-2, 1e-5),
    "float32": Tolerance(1.3e-6, 1e-5),
    "float64": Tolerance(1e-7, 1e-7),
    "complex64": Tolerance(1.3e-6, 1e-5),
    "complex128": Tolerance(1e-7, 1e-7),
}

#: Four roundings of the largest element. A float32 DFT of terms near 1000 is off by 1e-4 where 0 is due, and
#: rightly so: the error of a sum is bounded by the sum of the magnitudes, not by its value (Higham,
#: "Accuracy and Stability of Numerical Algorithms", section 4.2).
NOISE = {
    "float16": 4 * 2.0**-10,
    "bfloat16": 4 * 2.0**-7,
    "float32": 4 * 2.0**-23,
    "float64": 4 * 2.0**-52,
    "complex64": 4 * 2.0**-23,
    "complex128": 4 * 2.0**-52,
}

#: Types of at most three mantissa bits: rounding once more moves a value by one step.
COARSE_DTYPES = frozenset(
    {
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn",
    }
)

_PROFILES: dict[str, Profile] = {}


def register_profile(name: str) -> Callable[[Profile], Profile]:
    """Decorator: makes a function known as the profile `name`."""

    def register(function: Profile) -> Profile:
        _PROFILES[name] = function
        return function

    return register


def profile_named(name: str) -> Profile:
    """The profile `name`; raises UnknownNameError that lists those there are."""
    try:
        return _PROFILES[name]
    except KeyError:
        known = ", ".join(sorted(_PROFILES))
        raise UnknownNameError(f"no tolerance profile is called {name!r}; there are: {known}") from None


@register_profile("default")
def default(dtype: str, own: Tolerance | None) -> Bounds:
    """The looser of the source's own tolerance and the type's, and noise; integers and the like exact."""
    if dtype in COARSE_DTYPES:
        return Bounds(steps=1)
    usual = DTYPE_TOLERANCES.get(dtype)
    if usual is None:
        return EXACT
    noise = NOISE[dtype]
    if own is None:
        return Bounds(usual.rtol, usual.atol, noise=noise)
    return Bounds(max(own.rtol, usual.rtol), max(own.atol, usual.atol), noise=noise)


@register_profile("onnx")
def onnx(dtype: str, own: Tolerance | None) -> Bounds:  # noqa: ARG001 - the runner knows one bound for all
    """What ONNX's own backend-test runner does: 1e-3 and 1e-7 for every numeric type.

    bfloat16 gets two of its steps, 2**-6, as in onnx/backend/test/runner/__init__.py.
    """
    return Bounds(2**-6 if dtype == "bfloat16" else 1e-3, 1e-7)
