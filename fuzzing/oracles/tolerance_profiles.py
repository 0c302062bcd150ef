"""Tolerance profiles: named bounds of the distance between an output and the reference.

A profile is a registered function from an element type and the source's own tolerance to `Bounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from fuzzing.cases import Tolerance
from fuzzing.registry import Registry

#: The default profile, the only one whose mismatches are rechecked.
DEFAULT = "default"
#: Its replacement where a recheck has no float64 run.
WITHOUT_FLOAT64 = "without-float64"


@dataclass(frozen=True)
class Bounds:
    """Bounds of one element: |got - want| ≤ atol + rtol·|want| + noise·max|want|, or another rule.

    ulps      distance in representable values, for types too coarse for a relative bound
    noise     times the largest finite magnitude of the whole reference: where large terms cancel, each has
              its own rounding, which shows in an element near 0
    share     fraction of the elements that must satisfy the rule for the output to pass
    decimals  instead of distances: both sides, rounded to so many decimals, must be equal
    skip_nan  outputs with a NaN on either side are not compared
    """

    rtol: float = 0.0
    atol: float = 0.0
    ulps: int = 0
    noise: float = 0.0
    share: float = 1.0
    decimals: int | None = None
    skip_nan: bool = False


Profile = Callable[[str, "Tolerance | None"], Bounds]

EXACT = Bounds()

#: torch.testing.assert_close's table (torch/testing/_comparison.py, _DTYPE_PRECISIONS), as (rtol, atol). Its
#: `default_tolerances` gives every other type (0, 0), that is, exact comparison.
DTYPE_TOLERANCES = {
    "float16": Tolerance(1e-3, 1e-5),
    "bfloat16": Tolerance(1.6e-2, 1e-5),
    "float32": Tolerance(1.3e-6, 1e-5),
    "float64": Tolerance(1e-7, 1e-7),
    "complex64": Tolerance(1.3e-6, 1e-5),
    "complex128": Tolerance(1e-7, 1e-7),
}

#: Four roundings of the largest element. A correct float32 DFT of terms near 1000 can be off by 1e-4 at a
#: zero: the error of a sum is bounded by the sum of the magnitudes, not by its value (Higham, "Accuracy and
#: Stability of Numerical Algorithms", section 4.2).
NOISE = {
    "float16": 4 * 2.0**-10,
    "bfloat16": 4 * 2.0**-7,
    "float32": 4 * 2.0**-23,
    "float64": 4 * 2.0**-52,
    "complex64": 4 * 2.0**-23,
    "complex128": 4 * 2.0**-52,
}

#: Types of at most three mantissa bits: another rounding moves a value by one step.
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

_PROFILES: Registry[Profile] = Registry("tolerance profile")
register_profile = _PROFILES.register
get_profile = _PROFILES.get
profile_names = _PROFILES.names


def format_configuration(options: Mapping[str, str], profile: str = DEFAULT) -> str:
    """Options, and the profile if it is not the default, as text: "optimization=disabled profile=isra".

    Pass only the options that are not the backend's default.
    """
    named = [f"{name}={value}" for name, value in sorted(options.items())]
    return " ".join(named if profile == DEFAULT else [*named, f"profile={profile}"])


@register_profile(DEFAULT)
@lru_cache(maxsize=1024)  # called for each output, with few types and tolerances
def default(dtype: str, own: Tolerance | None) -> Bounds:
    """The looser of the source's own tolerance and the type's; integers and the like exact.

    Differences beyond it are rechecked, see `fuzzing.oracles.float64_check`.
    """
    if dtype in COARSE_DTYPES:
        return Bounds(ulps=1)
    usual = DTYPE_TOLERANCES.get(dtype)
    if usual is None:
        return EXACT
    if own is None:
        return Bounds(usual.rtol, usual.atol)
    return Bounds(max(own.rtol, usual.rtol), max(own.atol, usual.atol))


@register_profile(WITHOUT_FLOAT64)
def without_float64(dtype: str, own: Tolerance | None) -> Bounds:
    """The default and noise, for floats without a float64 run that would separate noise from errors."""
    return replace(default(dtype, own), noise=NOISE.get(dtype, 0.0))


@register_profile("onnx")
def onnx(dtype: str, own: Tolerance | None) -> Bounds:  # noqa: ARG001 - the runner has one bound for all
    """The bounds of ONNX's own backend-test runner: 1e-3 and 1e-7 for every numeric type.

    bfloat16 has two of its steps, 2**-6, as in onnx/backend/test/runner/__init__.py.
    """
    return Bounds(2**-6 if dtype == "bfloat16" else 1e-3, 1e-7)


def _register_paper_profile(name: str, bounds: Bounds) -> None:
    """Registers a paper's rule, the same for every numeric type; the source's tolerance is ignored."""
    register_profile(name)(lambda dtype, own: bounds)  # noqa: ARG005


# OPERA names the Chebyshev distance without a threshold. The released harnesses call numpy's assert_allclose
# with rtol = atol = 1e-3, the one for TVM with PyTorch with 1e-5.
_register_paper_profile("opera", Bounds(1e-3, 1e-3))
_register_paper_profile("opera-tvm-torch", Bounds(1e-5, 1e-5))
# Isra's paper: a relative error above 10 % fails. Its tvm_detecter.py: rounded to one decimal, at least 90 %
# of the elements must be equal; an output with any NaN is skipped.
_register_paper_profile("isra", Bounds(rtol=0.1))
_register_paper_profile("isra-code", Bounds(decimals=1, share=0.9, skip_nan=True))
# Graph-based fuzz testing: at least 99.9 % of the elements within 0.1 % relative error. Another sentence of
# the paper requires a failing share below 0.1 %; the rules differ at exactly 0.1 %.
_register_paper_profile("graph-fuzz", Bounds(rtol=1e-3, share=0.999))
# EAGLE: |o1 - o2| ≤ atol + rtol·|o2|. Its notebooks use atol 1e-2 and rtol 1e-5, its batch script numpy's
# defaults.
_register_paper_profile("eagle", Bounds(1e-5, 1e-2))
_register_paper_profile("eagle-batch", Bounds(1e-5, 1e-8))
# TorchProbe states no tolerance; these are NNSmith's, the oracle it is compared with.
_register_paper_profile("torchprobe", Bounds(1e-2, 1e-3))
