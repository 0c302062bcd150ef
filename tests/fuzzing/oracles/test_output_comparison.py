from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fuzzing.cases import Absent, Sequence, Tensor, Tolerance, Value
from fuzzing.cases.values import CARRIERS, RAW_DTYPES
from fuzzing.errors import UnknownNameError
from fuzzing.oracles.mismatches import OutputPair
from fuzzing.oracles.output_comparison import Outputs, bounds_for, compare, elements_within
from fuzzing.oracles.tolerance_profiles import COARSE_DTYPES, DTYPE_TOLERANCES, profile_names
from fuzzing.outcomes import Mismatch
from tests.fuzzing.cases.strategies import numeric_tensors, values

Array = np.ndarray[Any, Any]
INTEGERS = sorted(
    name for name, carrier in CARRIERS.items() if np.dtype(carrier).kind in "iu" and name not in RAW_DTYPES
)
REALS = ["float16", "float32", "float64"]


def outputs(*given: Value) -> Outputs:
    return tuple((f"y{number}", value) for number, value in enumerate(given))


def only(want: Value, got: Value, **options: Any) -> Mismatch | None:
    """The one mismatch of two values, if any."""
    found = compare(outputs(want), outputs(got), **options)
    assert len(found) <= 1
    return found[0] if found else None


def of(items: Any, dtype: str = "float32") -> Tensor:
    return Tensor.of(np.array(items, dtype=CARRIERS[dtype]), dtype)


@given(values)
def test_a_value_is_like_itself(value: Value) -> None:
    assert compare(outputs(value), outputs(value)) == ()


@given(numeric_tensors())
def test_a_copy_is_like_itself_on_the_slow_road_too(tensor: Tensor) -> None:
    """Flipping the sign of zeros keeps a tensor equal, but not its bytes."""
    array = tensor.array()
    if array.dtype.kind == "f":
        array = np.where(array == 0, -array, array)
    assert only(tensor, Tensor.of(array, tensor.dtype)) is None


@given(values, values)
def test_comparing_never_fails(one: Value, other: Value) -> None:
    for profile in ("default", "onnx"):
        for mismatch in compare(outputs(one), outputs(other), profile=profile):
            assert mismatch.detail
            assert 0 < mismatch.ratio <= 1


@given(numeric_tensors(), st.data(), st.sampled_from(profile_names()))
def test_what_is_told_at_a_glance_is_what_all_elements_say(
    want: Tensor, draw: st.DataObject, profile: str
) -> None:
    array = want.array()
    if array.dtype.kind != "f" or want.dtype in RAW_DTYPES:
        return
    steps = st.sampled_from([0.0, 1e-9, 9.99e-6, 1e-5, 1.001e-5, 1e-3, 1.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        off = np.array(draw.draw(st.lists(steps, min_size=array.size, max_size=array.size)), array.dtype)
        got = Tensor.of(array + off.reshape(array.shape), want.dtype)
    right = elements_within(OutputPair("y", got, want), bounds_for(want, None, profile))
    passes = np.count_nonzero(right) >= bounds_for(want, None, profile).share * right.size
    assert (only(want, got, profile=profile) is None) == bool(right.all() or passes)


@st.composite
def planted(draw: st.DrawFn) -> tuple[str, Array, tuple[int, ...]]:
    """A type, an array of ordinary numbers, and an index into it."""
    dtype = draw(st.sampled_from(REALS))
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=0, max_size=3)))
    size = int(np.prod(shape, dtype=int))
    items = draw(st.lists(st.integers(-100, 100), min_size=size, max_size=size))
    index = tuple(draw(st.integers(0, dim - 1)) for dim in shape)
    return dtype, np.array(items, CARRIERS[dtype]).reshape(shape), index


@given(planted(), st.sampled_from([2.0, 10.0, -1000.0]))
def test_an_error_above_tolerance_is_found_where_it_is(
    given_: tuple[str, Array, tuple[int, ...]], times: float
) -> None:
    _, want, index = given_
    usual = bounds_for(Tensor.of(want), None)
    got = want.copy()
    got[index] = want[index] + times * (usual.atol + usual.rtol * abs(float(want[index])))
    assume(abs(float(got[index]) - float(want[index])) > usual.atol + usual.rtol * abs(float(want[index])))
    mismatch = only(Tensor.of(want), Tensor.of(got))
    assert mismatch is not None
    assert (mismatch.kind, mismatch.worst) == ("value", index)
    assert mismatch.ratio == 1 / want.size
    assert mismatch.max_abs == pytest.approx(abs(float(got[index]) - float(want[index])))
    assert (mismatch.got, mismatch.want) == (str(got[index]), str(want[index]))
    assert (mismatch.rtol, mismatch.atol) == (usual.rtol, usual.atol)


@given(planted(), st.floats(-0.9, 0.9))
def test_an_error_below_tolerance_passes(given_: tuple[str, Array, tuple[int, ...]], share: float) -> None:
    dtype, want, index = given_
    usual = DTYPE_TOLERANCES[dtype]
    got = want.copy()
    got[index] = want[index] + share * (usual.atol + usual.rtol * abs(float(want[index])))
    assume(abs(float(got[index]) - float(want[index])) <= usual.atol + usual.rtol * abs(float(want[index])))
    assert only(Tensor.of(want), Tensor.of(got)) is None


@given(st.permutations(range(12)), st.integers(0, 11))
def test_permuting_elements_permutes_the_worst(order: list[int], at: int) -> None:
    want = np.arange(12, dtype=np.float32)
    got = want + np.where(np.arange(12) == at, 5, 1).astype(np.float32)
    before = only(Tensor.of(want), Tensor.of(got))
    after = only(Tensor.of(want[order]), Tensor.of(got[order]))
    assert before is not None
    assert after is not None
    assert order[after.worst[0]] == before.worst[0] == at
    assert (after.ratio, after.max_abs, after.max_rel) == (before.ratio, before.max_abs, before.max_rel)


@given(numeric_tensors(tuple(INTEGERS), min_dim=1), st.data())
def test_integers_are_exact_up_to_their_extremes(tensor: Tensor, data: st.DataObject) -> None:
    want = tensor.array()
    limits = np.iinfo(want.dtype)
    index = tuple(data.draw(st.integers(0, dim - 1)) for dim in want.shape)
    other = data.draw(
        st.integers(int(limits.min), int(limits.max)) | st.sampled_from([limits.min, limits.max])
    )
    assume(int(want[index]) != int(other))
    got = want.copy()
    got[index] = other
    mismatch = only(tensor, Tensor.of(got))
    assert mismatch is not None
    assert mismatch.worst == index
    assert mismatch.max_abs == float(abs(int(want[index]) - int(other)))
    assert (mismatch.got, mismatch.want) == (str(other), str(want[index]))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_neighbors_beyond_float64_differ(dtype: str) -> None:
    most = int(np.iinfo(dtype).max)
    mismatch = only(of([most], dtype), of([most - 1], dtype))
    assert mismatch is not None
    assert mismatch.max_abs == 1.0


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", [*REALS, "complex64", "bfloat16"])
@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        (NAN, NAN, True),
        (NAN, 0.0, False),
        (0.0, NAN, False),
        (INF, INF, True),
        (-INF, -INF, True),
        (INF, -INF, False),
        (-INF, INF, False),
        (INF, NAN, False),
        (INF, 3e38, False),
        (1.0, INF, False),
        (0.0, -0.0, True),
        (-0.0, 0.0, True),
    ],
)
def test_odd_numbers(dtype: str, want: float, got: float, same: bool) -> None:
    def tensor(number: float) -> Tensor:
        with np.errstate(over="ignore"):
            if dtype == "bfloat16":
                bits = np.array([1, number], np.float32).view(np.uint32) >> 16
                return Tensor.of(bits.astype(np.uint16), dtype)
            return of([1, number], dtype)

    if dtype == "float16" and got == 3e38:
        got = 65504.0
    mismatch = only(tensor(want), tensor(got))
    assert (mismatch is None) == same
    if mismatch is not None:
        assert (mismatch.worst, mismatch.max_abs, mismatch.max_rel) == ((1,), None, None)


def test_nan_is_the_worst_error() -> None:
    mismatch = only(of([1, 2, 3]), of([100, NAN, 3]))
    assert mismatch is not None
    assert (mismatch.worst, mismatch.ratio) == ((1,), 2 / 3)


def test_float64_at_its_extremes_does_not_warn() -> None:
    mismatch = only(of([1e308], "float64"), of([-1e308], "float64"))
    assert mismatch is not None
    assert mismatch.max_abs is None
    assert only(of([5e-324], "float64"), of([0], "float64")) is None


def test_relative_error_leaves_out_zeros() -> None:
    mismatch = only(of([0, 2]), of([1, 3]))
    assert mismatch is not None
    assert (mismatch.max_abs, mismatch.max_rel) == (1.0, 0.5)
    lone = only(of([0]), of([1]))
    assert lone is not None
    assert lone.max_rel is None


@pytest.mark.parametrize("dtype", sorted(COARSE_DTYPES - {"float8_e8m0fnu"}))
def test_coarse_types_may_be_one_step_off(dtype: str) -> None:
    one, next_, second = (Tensor(dtype, (1,), bytes([code])) for code in (2, 3, 4))
    assert only(one, next_) is None
    assert only(next_, one) is None
    mismatch = only(one, second)
    assert mismatch is not None
    assert "1 step" in mismatch.detail


def test_coarse_steps_cross_zero_and_stop_at_infinity() -> None:
    def e5m2(code: int) -> Tensor:
        return Tensor("float8_e5m2", (1,), bytes([code]))

    assert only(e5m2(0x80), e5m2(0x00)) is None  # -0 and 0
    assert only(e5m2(0x81), e5m2(0x00)) is None  # the smallest negative and 0
    assert only(e5m2(0x81), e5m2(0x01)) is not None
    assert only(e5m2(0x7B), e5m2(0x7C)) is not None  # the largest and infinity
    assert only(e5m2(0x7D), e5m2(0x7F)) is None  # two NaN
    assert only(e5m2(0x7C), e5m2(0xFC)) is not None  # two infinities
    assert only(e5m2(0x7C), e5m2(0x7D)) is not None  # infinity and NaN


def test_four_bits_are_compared_by_meaning() -> None:
    assert only(Tensor("int4", (1,), b"\x0f"), Tensor("int4", (1,), b"\xff")) is None
    mismatch = only(Tensor("int4", (1,), b"\x07"), Tensor("int4", (1,), b"\x08"))
    assert mismatch is not None
    assert (mismatch.got, mismatch.want, mismatch.max_abs) == ("-8", "7", 15.0)


@pytest.mark.parametrize("dtype", [*CARRIERS, "string"])
def test_empty_tensors_are_equal(dtype: str) -> None:
    data = b"[]" if dtype == "string" else b""
    assert only(Tensor(dtype, (2, 0), data), Tensor(dtype, (2, 0), data)) is None
    mismatch = only(Tensor(dtype, (2, 0), data), Tensor(dtype, (0, 2), data))
    assert mismatch is not None
    assert mismatch.kind == "shape"


def test_strings_are_exact() -> None:
    want = Tensor.of(np.array([["a", "é"]]))
    assert only(want, Tensor("string", (1, 2), b'["a", "\\u00e9"]')) is None  # other spelling, same text
    mismatch = only(want, Tensor.of(np.array([["a", "e" * 500]])))
    assert mismatch is not None
    assert (mismatch.worst, mismatch.ratio, mismatch.want, mismatch.max_abs) == ((0, 1), 0.5, "'é'", None)
    assert len(mismatch.got) <= 80


def test_bools_are_exact() -> None:
    mismatch = only(of([True, False], "bool"), of([True, True], "bool"))
    assert mismatch is not None
    assert (mismatch.worst, mismatch.got, mismatch.want) == ((1,), "True", "False")


def test_type_and_shape_are_told() -> None:
    typed = only(of([1]), of([1], "float64"))
    assert typed is not None
    assert (typed.kind, typed.detail) == ("type", "float64 instead of float32")
    shaped = only(of([[1]]), of([1]))
    assert shaped is not None
    assert (shaped.kind, shaped.detail) == ("shape", "shape [1] instead of [1, 1]")


@pytest.mark.parametrize(
    ("want", "got", "detail"),
    [
        (of([1]), Sequence(()), "a sequence instead of a tensor"),
        (Sequence(()), Absent(), "nothing instead of a sequence"),
        (Absent(), of([1]), "a tensor instead of nothing"),
    ],
)
def test_kinds_of_value_are_told(want: Value, got: Value, detail: str) -> None:
    mismatch = only(want, got)
    assert mismatch is not None
    assert (mismatch.kind, mismatch.detail) == ("type", detail)


def test_sequences_are_compared_item_by_item() -> None:
    want = Sequence((of([1]), of([2]), of([3])))
    found = compare(outputs(want), outputs(Sequence((of([9]), of([2]), of([9])))))
    assert [mismatch.output for mismatch in found] == ["y0[0]", "y0[2]"]
    shorter = only(want, Sequence((of([1]),)))
    assert shorter is not None
    assert (shorter.kind, shorter.detail) == ("shape", "a sequence of 1 tensors instead of 3")


def test_every_difference_is_told() -> None:
    want = outputs(of([1]), of([2]), of([3]), of([4]))
    got = (("y0", of([9])), ("y1", of([2])), ("y2", of([3], "float64")))
    found = compare(want, got)
    assert [(mismatch.output, mismatch.kind) for mismatch in found] == [
        ("y0", "value"),
        ("y2", "type"),
        ("y3", "missing"),
    ]


def test_no_outputs_at_all_are_all_missing() -> None:
    assert [m.kind for m in compare(outputs(of([1]), of([2])), ())] == ["missing", "missing"]


def test_outputs_are_found_by_name() -> None:
    want = (("a", of([1])), ("b", of([2])))
    assert compare(want, tuple(reversed(want))) == ()


def test_renamed_outputs_are_found_by_position() -> None:
    want = (("a", of([1])), ("b", of([2])))
    assert compare(want, (("a", of([1])), ("b/sink_port_0", of([2])))) == ()
    assert compare(want, (("x", of([1])), ("y", of([2])))) == ()


def test_an_output_is_not_taken_twice() -> None:
    want = (("a", of([1])), ("b", of([1])))
    found = compare(want, (("b", of([1])),))
    assert [(mismatch.output, mismatch.kind) for mismatch in found] == [("a", "missing")]


def test_unexpected_outputs_are_passed_over() -> None:
    assert compare(outputs(of([1])), outputs(of([1]), of([2]))) == ()


def test_shapes_alone() -> None:
    assert only(of([1, 2]), of([3, NAN]), comparison="shapes") is None
    assert only(of([1, 2]), of([[3, 4]]), comparison="shapes") is not None
    assert only(of([1]), of([1], "float64"), comparison="shapes") is not None
    assert only(Sequence((of([1]),)), Sequence((of([2]),)), comparison="shapes") is None


def test_the_looser_tolerance_counts() -> None:
    want, got = of([100]), of([100.05])
    assert only(want, got) is not None
    assert only(want, got, tolerance=Tolerance(1e-3, 0)) is None
    assert only(of([1e-6]), of([5e-6]), tolerance=Tolerance(0, 0)) is None  # float32's own 1e-5
    assert only(of([100], "int32"), of([101], "int32"), tolerance=Tolerance(1, 1)) is not None


def test_the_onnx_profile_is_the_runners() -> None:
    want = of([1.0])
    assert only(want, of([1.0009]), profile="onnx") is None
    assert only(want, of([1.0011]), profile="onnx", tolerance=Tolerance(1, 1)) is not None
    assert only(of([0.0]), of([1e-6]), profile="onnx") is not None
    assert only(of([5000], "int32"), of([5001], "int32"), profile="onnx") is None  # as assert_allclose does


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(
        UnknownNameError, match="default, eagle, eagle-batch, graph-fuzz, isra, isra-code, onnx, opera"
    ):
        compare((), (), profile="strict")
