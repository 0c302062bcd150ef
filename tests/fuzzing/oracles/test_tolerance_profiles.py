"""Each profile at its threshold: what just passes, and what just does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuzzing.cases import Tensor, Tolerance
from fuzzing.oracles import format_configuration, tolerance_profiles
from fuzzing.oracles.output_comparison import compare
from fuzzing.outcomes import Mismatch

NAN, INF = float("nan"), float("inf")
THOUSAND = [1.0] * 1000


def differs(want: Any, got: Any, profile: str, dtype: str = "float32") -> tuple[Mismatch, ...]:
    sides = ((("y", Tensor.of(np.array(side, dtype))),) for side in (want, got))
    return compare(*sides, profile=profile, tolerance=Tolerance(1, 1) if profile != "default" else None)


@pytest.mark.parametrize(
    ("profile", "want", "inside", "outside"),
    [
        ("opera", 0, 0.99e-3, 1.01e-3),
        ("opera", 1, 1.0019, 1.0021),
        ("opera-tvm-torch", 1, 1.000019, 1.000021),
        ("isra", 10, 10.99, 11.01),
        ("isra", -10, -9.01, -8.99),
        ("isra", 0, 0, 1e-6),
        ("isra-code", 0.5, 0.54, 0.56),
        ("graph-fuzz", 1, 1.00099, 1.00101),
        ("graph-fuzz", 0, 0, 1e-9),
        ("eagle", 0, 0.99e-2, 1.01e-2),
        ("eagle", 1000, 1000.019, 1000.021),
        ("eagle-batch", 1, 1.0000099, 1.0000102),
        ("eagle-batch", 0, 0.9e-8, 1.1e-8),
        ("torchprobe", 0, 0.99e-3, 1.01e-3),
        ("torchprobe", 1, 1.0109, 1.0111),
        ("default", 1, 1 + 1.1e-5, 1 + 1.2e-5),
        ("without-float64", 4096, 4096 + 6.9e-3, 4096 + 7.4e-3),
    ],
)
def test_thresholds(profile: str, want: float, inside: float, outside: float) -> None:
    """Whatever the source itself allows: that is a matter of the default alone."""
    dtype = "float64" if profile not in ("default", "without-float64") else "float32"
    own = {"default": Tolerance(0, 0), "without-float64": Tolerance(0, 0)}.get(profile, Tolerance(1, 1))

    def passes(got: float) -> bool:
        sides = ((("y", Tensor.of(np.array([side], dtype))),) for side in (want, got))
        return not compare(*sides, profile=profile, tolerance=own)

    assert passes(inside)
    assert not passes(outside)


@pytest.mark.parametrize(("wrong", "passes"), [(0, True), (1, True), (2, False), (1000, False)])
def test_graph_fuzz_wants_all_but_one_in_a_thousand(wrong: int, passes: bool) -> None:
    assert (not differs(THOUSAND, [2.0] * wrong + THOUSAND[wrong:], "graph-fuzz")) == passes


@pytest.mark.parametrize(("wrong", "passes"), [(100, True), (101, False)])
def test_isras_code_wants_nine_in_ten(wrong: int, passes: bool) -> None:
    assert (not differs(THOUSAND, [2.0] * wrong + THOUSAND[wrong:], "isra-code")) == passes


def test_isras_code_passes_over_nan() -> None:
    assert not differs([NAN, 1], [2, 3], "isra-code")
    assert not differs([1, 1], [NAN, 3], "isra-code")
    assert differs([1, INF], [1, 3], "isra-code")
    assert differs([NAN, 1], [2, 3], "isra")


@pytest.mark.parametrize(
    "profile", [name for name in tolerance_profiles.profile_names() if name != "isra-code"]
)
def test_nan_and_infinity_are_no_matter_of_tolerance(profile: str) -> None:
    assert not differs([NAN, INF, -INF], [NAN, INF, -INF], profile)
    for want, got in ((NAN, 0.0), (0.0, NAN), (INF, -INF), (INF, 3e38), (1.0, INF)):
        assert differs([want], [got], profile)


@pytest.mark.parametrize("profile", tolerance_profiles.profile_names())
def test_types_and_shapes_are_exact_in_every_profile(profile: str) -> None:
    want = (("y", Tensor.of(np.zeros(2, np.float32))),)
    for got in (np.zeros(2, np.float64), np.zeros((2, 1), np.float32)):
        assert compare(want, (("y", Tensor.of(got)),), profile=profile)


def test_a_share_is_told() -> None:
    [found] = differs(THOUSAND, [2.0] * 2 + THOUSAND[2:], "graph-fuzz")
    assert found.ratio == 0.002
    assert "(allowed: 0 + 0.001·|reference| for 99.9 % of the elements)" in found.detail
    [found] = differs([0.5], [0.9], "isra-code")
    assert "equal to 1 decimal for 90 %" in found.detail


def test_a_configuration_is_what_is_not_the_default() -> None:
    assert format_configuration({}) == ""
    assert format_configuration({"optimization": "disabled"}, "isra") == "optimization=disabled profile=isra"
    assert format_configuration({"b": "2", "a": "1"}) == "a=1 b=2"
