"""What torch leaves open: found where its reference leaves it open, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuzzing.backends.torch_eager import TorchEager
from fuzzing.cases import Tensor, TorchProgram

pytestmark = pytest.mark.compiler_torch_eager

#: Rows with two equal elements, three, and none.
TIED = np.array([[5, 1, 5, 3], [2, 7, 2, 2], [4, 3, 2, 1]])
PAIR, THREE = [True, False, True, False], [True, False, True, True]
NONE = [False] * 4


def left_open(text: str, given: Any) -> list[Any]:
    """For each output which elements differ between the two ways to fill what is open."""
    program = TorchProgram(f"import torch\n\ndef forward(x):\n    return {text}\n")
    values = []
    for fill in ("0", "1"):
        torch = TorchEager()
        torch.load("CPU", {"precision": "float64", "undefined": fill})
        values.append(torch.run(torch.convert(program, []), [("x", Tensor.of(given))]))
    found = []
    for (_, one), (_, other) in zip(*values, strict=True):
        assert isinstance(one, Tensor)
        assert isinstance(other, Tensor)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        a, b = one.array(), other.array()
        found.append(((a != b) & ~((a != a) & (b != b))).tolist())
    return found


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "bfloat16"])
@pytest.mark.parametrize(
    ("text", "want"),
    [
        # sorted, the equal ones lie together: 1 3 5 5, 2 2 2 7, 1 2 3 4
        ("x.argsort(1)", [[NONE[:2] + [True] * 2, [True] * 3 + NONE[:1], NONE]]),
        ("x.t().sort(0)[1].t()", [[NONE[:2] + [True] * 2, [True] * 3 + NONE[:1], NONE]]),
        ("x.topk(2)", [[NONE[:2]] * 3, [[True, True], [False, True], NONE[:2]]]),
        ("x.topk(2, largest=False)[1]", [[NONE[:2], [True, True], NONE[:2]]]),
        ("x.kthvalue(2)", [NONE[:3], [False, True, False]]),
        ("x.median(1, keepdim=True)", [[[False]] * 3, [[False], [True], [False]]]),
        ("x.mode(1)[1]", [[True, True, False]]),
        ("x.gather(1, x.argsort(1))", [[NONE] * 3]),  # what they lead to is not open
    ],
)
def test_which_of_equal_elements_comes_first_is_open(text: str, want: list[Any], dtype: str) -> None:
    assert left_open(f"(lambda x: {text})(x.to(torch.{dtype}))", TIED) == want


@pytest.mark.parametrize(
    "text",
    [
        "torch.argsort(x, dim=1, stable=True)",
        "x.sort(stable=True)",
        "x.argmax(1)",
        "x.max(1)",
        "x.min(1)",
        "x.unique()",
    ],
)
def test_what_torch_promises_is_not_open(text: str) -> None:
    assert not np.concatenate([np.ravel(part) for part in left_open(text, TIED)]).any()


def test_without_an_order_asked_for_all_of_it_is_open() -> None:
    assert left_open("x.topk(2, sorted=False)", TIED[2:]) == [[[True, True]]] * 2


def test_nan_equals_nan_in_an_order() -> None:
    assert left_open("x.argsort()", np.array([np.nan, 1, np.nan])) == [[False, True, True]]


@pytest.mark.parametrize("given", [np.int64(3), np.zeros(0, np.int64), np.zeros((2, 0), np.int64)])
def test_nothing_is_open_of_nothing(given: Any) -> None:
    [values, indices] = left_open("x.sort()", np.asarray(given))
    assert not np.any(values)
    assert not np.any(indices)


@pytest.mark.parametrize(
    ("dtype", "want"),
    [
        ("int8", [False, False, True, True, True, True]),
        ("uint8", [False, True, True, True, True, True]),
        ("int64", [False, False, False, True, True, True]),
        ("bool", [False] * 6),
        ("float16", [False] * 6),
    ],
)
def test_a_float_beyond_an_integer_type_is_open(dtype: str, want: list[bool]) -> None:
    given = np.array([2.5, -2.5, 300.0, 2.0**63, -np.inf, np.nan], np.float32)
    [found] = left_open(
        f"x.nan_to_num(nan=1, posinf=2).to(torch.{dtype})" if dtype == "float16" else f"x.to(torch.{dtype})",
        given,
    )
    assert found == want


#: Of these 100 + 100, 3 * 100, and what is computed from -128 do not fit in 8 bits.
BYTES = np.array([[100, 2], [3, -128]], np.int8)
BOTH, FIRST, LAST = (
    [[True, False], [False, True]],
    [[True, False], [False, False]],
    [[False, False], [False, True]],
)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("x + x", BOTH),
        ("x * 2", BOTH),
        ("torch.add(x, x, alpha=0)", [[False] * 2] * 2),
        ("x.clone().add_(x)", BOTH),
        ("torch.add(x, x, out=x.new_empty(2, 2))", BOTH),
        ("x - 100", [[False, False], [False, True]]),
        ("1 - x", LAST),
        ("-x", LAST),
        ("x.abs()", LAST),
        ("x // -1", LAST),
        ("torch.div(x, -1, rounding_mode='floor')", LAST),
        ("x.pow(2)", BOTH),
        ("x ** x.clamp(0, 3)", FIRST),
        ("x.sum(1, dtype=torch.int8)", [False, False]),
        ("(x + x).sum(1)", [True, True]),  # what is computed from it is open as well
        ("x.cumsum(1, dtype=torch.int8)", [[False, False], [False, False]]),
        ("x.cumprod(1, dtype=torch.int8)", [[False, True], [False, True]]),
        ("x.prod(dtype=torch.int8)", True),
        ("x @ torch.ones_like(x)", [[False, False], [False, False]]),
        ("x @ x", BOTH),
        ("torch.einsum('ij,jk', x, x)", BOTH),
    ],
)
def test_signed_numbers_that_do_not_fit_are_open(text: str, want: Any) -> None:
    assert left_open(text, BYTES) == [want]


@pytest.mark.parametrize(
    "text",
    [
        "x.to(torch.uint8) + x.to(torch.uint8)",  # wraps
        "x.to(torch.int16) * x",
        "x.sum()",  # in 64 bits
        "x.float() * x",
        "(x > 2) + (x > 0)",
        "torch.div(x, -1)",
    ],
)
def test_what_fits_or_wraps_is_not_open(text: str) -> None:
    assert not np.concatenate([np.ravel(part) for part in left_open(text, BYTES)]).any()


def test_a_product_of_bytes_beyond_64_bits_is_open() -> None:
    assert left_open("x.prod(1)", np.array([[255] * 8, [2] * 8], np.uint8)) == [[True, False]]


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("torch.arange(0.1, -7.9, -4.0)", [2, 3]),
        ("torch.arange(0.5, 0.9, 0.1)", [4, 5]),
        ("torch.arange(0.5, 4.0, 0.5)", [7, 7]),  # float32 holds these exactly
        ("torch.arange(0.1, 0.95, 0.1)", [9, 9]),  # far from a whole number
        ("torch.arange(0, 4)", [4, 4]),
    ],
)
def test_how_many_numbers_there_are_is_open_where_rounding_decides(text: str, counts: list[int]) -> None:
    program = TorchProgram(f"import torch\n\ndef forward(x):\n    return {text}\n")
    found = []
    for fill in ("0", "1"):
        torch = TorchEager()
        torch.load("CPU", {"precision": "float64", "undefined": fill})
        [(_, value)] = torch.run(torch.convert(program, []), [("x", Tensor.of(TIED))])
        found.append(value.array().size if isinstance(value, Tensor) else 0)
    assert sorted(found) == counts


#: An infinity alone, two of different signs, NaN, and numbers.
INFINITE = np.array([[np.inf, 1, 3], [np.inf, 1, -np.inf], [np.nan, 1, np.inf], [1, 2, 4]], np.float32)


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_whether_a_mean_beside_a_variance_is_infinite_is_open(name: str, *, keepdim: bool) -> None:
    """`torch.mean` is; the algorithm for both subtracts infinities, and gives NaN."""
    opened = [True, False, False, False]
    want = [[item] for item in opened] if keepdim else opened
    shut = [[False]] * 4 if keepdim else [False] * 4
    assert left_open(f"torch.{name}(x, 1, keepdim={keepdim})", INFINITE) == [shut, want]


def test_whether_a_mean_of_all_beside_a_variance_is_infinite_is_open() -> None:
    assert left_open("torch.var_mean(x)", INFINITE[:1]) == [False, True]
    assert left_open("torch.var_mean(x)", INFINITE[3:]) == [False, False]


@pytest.mark.parametrize(
    "text",
    [
        "torch.native_layer_norm(x, (3,), None, None, 0.1)[1:]",
        "torch.native_group_norm(x, None, None, 4, 3, 1, 1, 0.1)[1:]",
    ],
)
def test_whether_the_mean_of_a_normalization_is_infinite_is_open(text: str) -> None:
    assert left_open(text, INFINITE) == [[[True], [False], [False], [False]], [[False]] * 4]


def test_a_normalization_of_nothing_is_run() -> None:
    [_, rest] = left_open("torch.native_group_norm(x, None, None, 0, 3, 1, 3, 0.1)[1:]", INFINITE[:0])
    assert rest == []
