from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given

from fuzzing.cases import Absent, Sequence, Tensor, Value
from fuzzing.oracles.element_types import ROUNDING, decode
from fuzzing.oracles.perturbation import perturb_equally, perturb_independently
from tests.fuzzing.cases.strategies import values

WAYS = (perturb_equally, perturb_independently)


def of(items: Any, dtype: str = "float32") -> Tensor:
    return Tensor.of(np.array(items, dtype), dtype)


def moved(value: Value, way: Any = perturb_independently, sign: int = 1) -> np.ndarray[Any, Any]:
    [(_, found)] = way((("x", value),), sign)
    assert isinstance(found, Tensor)
    return found.array()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_numbers_move_and_by_no_more_than_to_their_neighbor(dtype: str, way: Any) -> None:
    array = np.linspace(-50, 70, 99).astype(dtype)
    array = array[array != 0]
    found = moved(Tensor.of(array), way)
    assert found.dtype == (np.complex128 if array.dtype.kind == "c" else np.float64)
    share = np.abs(found - array) / (2 * ROUNDING[dtype][0] * np.abs(array))
    steps = 4.5 if dtype in ("float64", "complex128") else 1  # four, and rounded to float64's own grid
    assert share.max() <= 1.01 * steps
    assert (share > 0).all()


@given(values)
@example(Tensor("bfloat16", (), b"\x81\x7f"))  # a NaN that signals
def test_shapes_zeros_and_what_is_no_float_stay(value: Value) -> None:
    for way in WAYS:
        [(name, found)] = way((("x", value),), 1)
        assert name == "x"
        assert type(found) is type(value)
        if isinstance(value, Tensor) and isinstance(found, Tensor):
            assert found.shape == value.shape
            if value.dtype not in ROUNDING:
                assert found is value
                continue
            before, after = decode(value.dtype, value.array()), found.array()
            np.testing.assert_array_equal(after[before == 0], 0)
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(np.isnan(after), np.isnan(before))


def test_equal_numbers_stay_equal_or_part() -> None:
    ones = of([1.5] * 50)
    assert len(set(moved(ones, perturb_equally).tolist())) == 1
    assert len(set(moved(ones, perturb_independently).tolist())) == 50


def test_ties_break_one_way_and_the_other() -> None:
    ones = of([1.0, 1.0])
    assert np.argmax(moved(ones, perturb_independently, 1)) != np.argmax(
        moved(ones, perturb_independently, -1)
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_run_is_the_same_again_and_has_its_counterpart(way: Any) -> None:
    x = of([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(moved(x, way), moved(x, way))
    np.testing.assert_allclose(moved(x, way, 1) - x.array(), x.array() - moved(x, way, -1), rtol=1e-6)


def test_items_of_a_sequence_move_absent_ones_do_not() -> None:
    given_ = (("s", Sequence((of([1.0]), of([2.0])))), ("a", Absent()))
    [(_, items), (_, absent)] = perturb_independently(given_, 1)
    assert isinstance(items, Sequence)
    assert [item.dtype for item in items.items] == ["float64", "float64"]
    assert absent == Absent()


def test_bfloat16_is_moved_by_its_own_roundings() -> None:
    bits = (np.array([3.0], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    [found] = moved(Tensor.of(bits, "bfloat16")).tolist()
    assert 0 < abs(found - 3) <= 3 * 2.0**-7


@pytest.mark.parametrize("way", WAYS)
def test_one_run_has_neither_subnormal_numbers_nor_the_sign_of_zero(way: Any) -> None:
    numbers = of([1e-40, -1e-40, 1e-30, -0.0])
    kept, flushed = moved(numbers, way, 1), moved(numbers, way, -1)
    assert (kept[:3] != 0).all()
    assert np.signbit(kept[3])
    assert (flushed != 0).tolist() == [False, False, True, False]
    assert not np.signbit(flushed[3])
    assert (moved(of([1e-7], "float16"), way, -1) != 0).all()  # normal in float32, in which it is computed


@pytest.mark.parametrize("way", WAYS)
def test_numbers_move_to_the_grid_of_the_type_that_is_computed_in(way: Any) -> None:
    array = np.linspace(1, 2, 99)
    [(_, found)] = way((("x", Tensor.of(array)),), 1, {"float64": "float32"})
    assert isinstance(found, Tensor)
    share = np.abs(found.array() - array) / (2 * ROUNDING["float32"][0] * array)
    assert 0.5 < share.max() <= 1
