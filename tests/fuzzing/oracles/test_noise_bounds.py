"""Noise: where large terms cancel, an element near 0 shows the rounding of each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fuzzing.cases import Tensor, Tolerance
from fuzzing.oracles.output_comparison import bounds_for as bounds_under
from fuzzing.oracles.output_comparison import compare
from fuzzing.oracles.tolerance_profiles import (
    COARSE_DTYPES,
    DTYPE_TOLERANCES,
    NOISE,
    WITHOUT_FLOAT64,
    Bounds,
    get_profile,
)

FLOATS = sorted(NOISE)


def bounds_for(want: Tensor, own: Tolerance | None, profile: str = WITHOUT_FLOAT64) -> Bounds:
    return bounds_under(want, own, profile)


#: Mantissa bits behind the point, from IEEE 754 and, for bfloat16, from its definition.
BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52, "complex64": 23, "complex128": 52}


def of(*items: complex, dtype: str = "float32") -> Tensor:
    if dtype == "bfloat16":
        bits = np.array(items, np.float32).view(np.uint32) >> 16
        return Tensor.of(bits.astype(np.uint16), dtype)
    return Tensor.of(np.array(items, dtype))


def same(
    want: Tensor, got: Tensor, tolerance: Tolerance | None = None, profile: str = WITHOUT_FLOAT64
) -> bool:
    return compare((("y", want),), (("y", got),), tolerance=tolerance, profile=profile) == ()


def test_noise_is_four_roundings_of_each_type_that_has_a_tolerance() -> None:
    assert NOISE.keys() == DTYPE_TOLERANCES.keys() == BITS.keys()
    assert {dtype: 4 * 2.0**-bits for dtype, bits in BITS.items()} == NOISE


def large(dtype: str) -> float:
    """A power of two whose noise is much more than the type's own absolute tolerance."""
    return float(2.0 ** np.ceil(np.log2(100 * DTYPE_TOLERANCES[dtype].atol / NOISE[dtype])))


@pytest.mark.parametrize("dtype", FLOATS)
def test_an_element_near_zero_may_show_the_noise_of_the_largest(dtype: str) -> None:
    """Just inside four roundings of the largest passes where 0 is due, beyond them it does not."""
    most = large(dtype)
    allowed = DTYPE_TOLERANCES[dtype].atol + NOISE[dtype] * most
    want = of(most, 0, dtype=dtype)
    assert same(want, of(most, 0.96 * allowed, dtype=dtype))
    assert not same(want, of(most, 1.04 * allowed, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_among_small_elements_there_is_no_noise_to_speak_of(dtype: str) -> None:
    """What a large neighbor excuses is an error without one."""
    most = large(dtype)
    off = 0.96 * (DTYPE_TOLERANCES[dtype].atol + NOISE[dtype] * most)
    assert not same(of(most / 1024, 0, dtype=dtype), of(most / 1024, off, dtype=dtype))


def test_the_noise_of_got_excuses_nothing() -> None:
    """It is the reference whose magnitude counts: a wild output must not widen its own bounds."""
    assert not same(of(1, 0), of(1e9, 1))


@pytest.mark.parametrize("odd", [float("inf"), float("-inf"), float("nan")])
def test_infinity_and_nan_make_no_noise(odd: float) -> None:
    assert not same(of(odd, 0, 1), of(odd, 1, 1))
    assert same(of(odd, 0, 1024), of(odd, 4e-4, 1024))
    assert bounds_for(of(odd, 2), None) == bounds_for(of(2), None)


def test_bounds_of_settles_the_noise_into_atol() -> None:
    usual = DTYPE_TOLERANCES["float32"]
    assert bounds_for(of(-1024, 3), None) == Bounds(usual.rtol, usual.atol + NOISE["float32"] * 1024)
    assert bounds_for(of(3 + 4j, dtype="complex64"), None).atol == pytest.approx(
        usual.atol + NOISE["complex64"] * 5
    )
    loose = bounds_for(of(1024), Tolerance(0.5, 0.25))
    assert (loose.rtol, loose.atol) == (0.5, 0.25 + NOISE["float32"] * 1024)


@pytest.mark.parametrize("want", [Tensor("float32", (0,), b""), of(0.0), of(float("nan")), of(float("inf"))])
def test_a_reference_without_magnitude_has_no_noise(want: Tensor) -> None:
    bounds = bounds_for(want, None)
    assert (bounds.rtol, bounds.atol) == (DTYPE_TOLERANCES["float32"].rtol, DTYPE_TOLERANCES["float32"].atol)


def test_other_types_have_no_noise() -> None:
    assert bounds_for(Tensor.of(np.array([1 << 40])), None) == Bounds()
    assert bounds_for(Tensor.of(np.array(["a"])), None) == Bounds()
    assert bounds_for(Tensor.of(np.array([True])), None) == Bounds()
    for dtype in COARSE_DTYPES:
        assert get_profile(WITHOUT_FLOAT64)(dtype, None) == Bounds(ulps=1)


def test_the_default_knows_no_noise() -> None:
    """A float64 run tells noise from error, where there is one."""
    assert bounds_for(of(1024), None, "default") == Bounds(1.3e-6, 1e-5)
    assert not same(of(1024, 0), of(1024, 4e-4), profile="default")


def test_the_onnx_profile_knows_no_noise() -> None:
    assert bounds_for(of(1024), None, "onnx") == Bounds(1e-3, 1e-7)
    assert not same(of(1024, 0), of(1024, 4e-4), profile="onnx")


elements = st.floats(-1e6, 1e6, width=32)


@given(st.lists(st.tuples(elements, st.floats(-2, 2)), min_size=1, max_size=8))
def test_what_is_compared_is_what_bounds_of_says(pairs: list[tuple[float, float]]) -> None:
    want = np.array([item for item, _ in pairs], np.float32)
    bounds = bounds_for(Tensor.of(want), None)
    allowed = bounds.atol + bounds.rtol * np.abs(want.astype(np.float64))
    got = (want + np.array([share for _, share in pairs]) * allowed).astype(np.float32)
    distance = np.abs(got.astype(np.float64) - want.astype(np.float64))
    assume((np.abs(distance - allowed) > 1e-12 * allowed).all())
    assert same(Tensor.of(want), Tensor.of(got)) == bool((distance <= allowed).all())


@given(st.lists(elements, min_size=1, max_size=8), st.floats(1, 1e6))
def test_bounds_grow_with_the_largest_element_and_with_nothing_else(items: list[float], more: float) -> None:
    want = np.array(items, np.float32)
    bounds = bounds_for(Tensor.of(want), None)
    assert bounds_for(Tensor.of(want[::-1].copy()), None) == bounds
    assert bounds_for(Tensor.of(-want), None) == bounds
    assert bounds_for(Tensor.of(np.append(want, np.float32(0))), None) == bounds
    larger = np.append(want, np.float32(np.abs(want).max() + more))
    assert bounds_for(Tensor.of(larger), None).atol > bounds.atol


def test_the_message_tells_the_bounds_that_were_applied() -> None:
    [mismatch] = compare((("y", of(1024, 0)),), (("y", of(1024, 1)),), profile=WITHOUT_FLOAT64)
    bounds = bounds_for(of(1024, 0), None)
    assert (mismatch.rtol, mismatch.atol) == (bounds.rtol, bounds.atol)
    assert f"(allowed: {bounds.atol:g} + {bounds.rtol:g}·|reference|)" in mismatch.detail
