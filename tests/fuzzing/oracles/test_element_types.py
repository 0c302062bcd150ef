from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from fuzzing.cases.values import CARRIERS, RAW_DTYPES
from fuzzing.oracles.element_types import decode, ulp_ranks
from fuzzing.oracles.tolerance_profiles import COARSE_DTYPES

CODES = {"int4": 16, "uint4": 16, "int2": 4, "uint2": 4, "float4_e2m1fn": 16}


def _codes(dtype: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.arange(CODES.get(dtype, 256), dtype=np.uint8)


@pytest.mark.parametrize("dtype", sorted(RAW_DTYPES - {"bfloat16"}))
def test_every_code_decodes_as_ml_dtypes_has_it(dtype: str) -> None:
    codes = _codes(dtype)
    want = codes.view(getattr(ml_dtypes, dtype)).astype(np.float64)
    np.testing.assert_array_equal(decode(dtype, codes).astype(np.float64), want)


def test_every_bfloat16_decodes_as_ml_dtypes_has_it() -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    want = codes.view(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(decode("bfloat16", codes), want)


@pytest.mark.parametrize("dtype", ["int4", "int2"])
def test_extended_signs_mean_the_same(dtype: str) -> None:
    """Some libraries hand out -1 as 0x0F, some as 0xFF."""
    bits = int(dtype.removeprefix("int"))
    low = _codes(dtype)
    extended = np.where(low >> (bits - 1), low | np.uint8(256 - (1 << bits)), low)
    assert decode(dtype, extended).tolist() == decode(dtype, low).tolist()


@pytest.mark.parametrize("dtype", sorted(COARSE_DTYPES))
def test_ranks_follow_the_order_of_the_numbers(dtype: str) -> None:
    codes = _codes(dtype)
    numbers = decode(dtype, codes)
    finite = np.isfinite(numbers)
    numbers, places = numbers[finite], ulp_ranks(dtype, codes)[finite]
    assert sorted(set(places.tolist())) == list(range(int(places.min()), int(places.max()) + 1))
    by_number = [places[numbers == number] for number in np.unique(numbers)]
    assert all(len(set(same.tolist())) == 1 for same in by_number)
    firsts = [int(same[0]) for same in by_number]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("dtype", sorted(set(CARRIERS) - RAW_DTYPES))
def test_numpy_types_are_left_alone(dtype: str) -> None:
    array = np.zeros(2, CARRIERS[dtype])
    assert decode(dtype, array) is array
