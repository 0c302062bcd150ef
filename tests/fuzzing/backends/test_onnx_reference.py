"""ONNX's evaluator as a judge: in float64, and with chosen numbers where a result is left open."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx.parser
import pytest

from fuzzing.backends.onnx_reference import OnnxReference, float64_widening
from fuzzing.cases import OnnxModel, Sequence, Tensor, Value

Array = np.ndarray[Any, Any]
HEADER = '<ir_version: 10, opset_import: ["" : 21, "own" : 1]>'


@cache
def evaluator(precision: str = "native", undefined: str = "native") -> OnnxReference:
    found = OnnxReference()
    found.load("CPU", {"precision": precision, "undefined": undefined})
    return found


def model(graph: str, functions: str = "", opset: int = 21) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{HEADER.replace('21', str(opset))} g {graph}\n{functions}")


def run(given: onnx.ModelProto, *inputs: Array, how: OnnxReference | None = None) -> list[Value]:
    backend = how or evaluator("float64")
    named: list[tuple[str, Value]] = [
        (item.name, Tensor.of(array)) for item, array in zip(given.graph.input, inputs, strict=True)
    ]
    program = OnnxModel(given.SerializeToString())
    executable = backend.compile(backend.convert(program, named))
    return [value for _, value in backend.run(executable, named)]


def wide(given: onnx.ModelProto, *inputs: Array) -> Array:
    """The one output of a float64 run, which must be float64."""
    [value] = run(given, *inputs)
    assert isinstance(value, Tensor)
    assert value.dtype == "float64"
    return value.array()


X = np.array([0.1, 1.0, 3.3], np.float32)
EXACT = X.astype(np.float64)


UNARY_GRAPH = "(float[3] x) => ({0}[3] y) {{ {1} }}"
IF = (
    "t = Constant<value = bool {1}>() y = If(t) <then_branch = a () => (float[3] u) { u = Sin(x) }, "
    "else_branch = b () => (float[3] u) { u = Cos(x) }>"
)
WEIGHTS = "(float[3] x) => (float[3] y) <float[3] w = {3, 2, 1}> { y = Div(x, w) }"
WIDENED: dict[str, tuple[str, Array]] = {
    "inputs": (UNARY_GRAPH.format("float", "y = Exp(x)"), np.exp(EXACT)),
    "cast": (UNARY_GRAPH.format("float16", "y = Cast<to = 10>(x)"), EXACT),
    "bfloat16": (UNARY_GRAPH.format("bfloat16", "h = Cast<to = 16>(x) y = Neg(h)"), -EXACT),
    "round trip": (UNARY_GRAPH.format("float", "h = Cast<to = 10>(x) y = Cast<to = 1>(h)"), EXACT),
    "value_float": (
        UNARY_GRAPH.format("float", "c = Constant<value_float = 0.1>() y = Mul(x, c)"),
        EXACT * np.float64(np.float32(0.1)),
    ),
    "value_floats": (
        UNARY_GRAPH.format("float", "c = Constant<value_floats = [0.5, 1.0, 2.0]>() y = Mul(x, c)"),
        EXACT * [0.5, 1, 2],
    ),
    "tensor": (
        UNARY_GRAPH.format("float", "c = Constant<value = float[3] {0.5, 1, 2}>() y = Mul(x, c)"),
        EXACT * [0.5, 1, 2],
    ),
    "of shape": (
        UNARY_GRAPH.format("float", "s = Shape(x) z = ConstantOfShape(s) y = Sub(z, x)"),
        -EXACT,
    ),
    "initializer": (WEIGHTS, EXACT / [3, 2, 1]),
    "subgraph": (UNARY_GRAPH.format("float", IF), np.sin(EXACT)),
}


@pytest.mark.parametrize(("graph", "want"), WIDENED.values(), ids=WIDENED.keys())
def test_everything_is_float64(graph: str, want: Array) -> None:
    np.testing.assert_allclose(wide(model(graph), X), want, rtol=1e-15)


def test_outputs_of_another_type_than_the_model_declares_are_no_reference() -> None:
    """onnx's Adam gives float32 for several tensors, whatever they are."""
    adam = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1]> g '
        "(double r, int64 t, double[1] x) "
        "=> (double[1] a, double[1] b, double[1] c, double[1] d, double[1] e, double[1] f) "
        "{ a, b, c, d, e, f = ai.onnx.preview.training.Adam(r, t, x, x, x, x, x, x, x, x) }"
    )
    given = (np.array(0.1), np.array(0), np.array([1.0]))
    with pytest.raises(TypeError, match="onnx gives float32 for a, which is declared float64"):
        run(adam, *given, how=evaluator())


def test_functions_are_widened_too() -> None:
    body = (
        '<domain: "own", opset_import: ["" : 21]> twice (a) => (b) '
        "{ c = Constant<value_float = 2.0>() d = CastLike(c, a) b = Mul(a, d) }"
    )
    graph = "(float[3] x) => (float[3] y) { y = own.twice(x) }"
    np.testing.assert_array_equal(wide(model(graph, body), X), 2 * EXACT)


def test_rounding_to_float8_is_what_the_program_asks_for() -> None:
    """Quantizing stays; float16 and float32 are how precisely it is computed."""
    graph = "(float[3] x) => (float[3] y) { q = Cast<to = 17>(x) y = Cast<to = 1>(q) }"
    native = run(model(graph), X, how=evaluator())[0]
    assert isinstance(native, Tensor)
    np.testing.assert_array_equal(wide(model(graph), X), native.array())
    assert (native.array() != X).any()


def test_sequences_and_integers_keep_their_kind() -> None:
    graph = "(float[3] x) => (seq(float[3]) s, int64[1] n) { s = SequenceConstruct(x) n = Shape(x) }"
    items, shape = run(model(graph), X)
    assert isinstance(items, Sequence)
    assert [item.dtype for item in items.items] == ["float64"]
    assert isinstance(shape, Tensor)
    assert shape.dtype == "int64"


@pytest.mark.parametrize("operator", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_defaults_are_widened(operator: str) -> None:
    """Without the attribute such an operator gives float32."""
    graph = f"() => (float[N] y) {{ n = Constant<value_int = 10>() y = {operator}(n) }}"
    assert wide(model(graph)).shape == (10,)


def test_what_is_widened_is_a_copy() -> None:
    given = model("(float[3] x) => (float[3] y) { y = Exp(x) }")
    before = given.SerializeToString()
    found = float64_widening.widen(given)
    assert given.SerializeToString() == before
    assert found.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE


def open_(graph: str, *inputs: Array, opset: int = 21) -> list[bool]:
    """Which elements of the one output depend on what the standard leaves open."""
    given = model(graph, opset=opset)
    one, other = (run(given, *inputs, how=evaluator("float64", fill))[0] for fill in ("0", "1"))
    assert isinstance(one, Tensor)
    assert isinstance(other, Tensor)
    found: list[bool] = (one.array() != other.array()).ravel().tolist()
    return found


INT = np.int32
LEAST, MOST = np.iinfo(INT).min, np.iinfo(INT).max
BINARY = "(int32[N] a, int32[N] b) => (int32[N] y) {{ y = {}(a, b) }}"
UNARY = "(int32[N] a) => (int32[N] y) {{ y = {}(a) }}"


@pytest.mark.parametrize(
    ("graph", "inputs", "want"),
    [
        (BINARY.format("Div"), ([7, 7, LEAST], [0, 2, -1]), [True, False, True]),
        (BINARY.format("Mod"), ([7, 7, LEAST], [0, 2, -1]), [True, False, True]),
        (BINARY.format("Add"), ([MOST, MOST, LEAST], [1, 0, -1]), [True, False, True]),
        (BINARY.format("Sub"), ([LEAST, 5], [1, 7]), [True, False]),
        (BINARY.format("Mul"), ([1 << 20, 1 << 15], [1 << 20, 1 << 15]), [True, False]),
        (BINARY.format("Pow"), ([2, 2, 2], [31, 30, -1]), [True, False, True]),
        (UNARY.format("Neg"), ([LEAST, MOST],), [True, False]),
        (UNARY.format("Abs"), ([LEAST, MOST],), [True, False]),
        (
            "(int32[2,2] a) => (int32[2] y) "
            "{ x = Constant<value_ints = [1]>() y = ReduceSum<keepdims = 0>(a, x) }",
            ([[MOST, 1], [MOST, 0]],),
            [True, False],
        ),
        (
            "(int32[3] a) => (int32[3] y) { x = Constant<value_int = 0>() y = CumSum(a, x) }",
            ([MOST, 1, 0],),
            [False, True, True],
        ),
        (
            "(int32[1,2] a, int32[2,1] b) => (int32[1,1] y) { y = MatMul(a, b) }",
            ([[MOST, 1]], [[1], [1]]),
            [True],
        ),
    ],
    ids=["div", "mod", "add", "sub", "mul", "pow", "neg", "abs", "sum", "cumsum", "matmul"],
)  # fmt: skip
def test_integer_results_that_c_leaves_undefined(graph: str, inputs: Any, want: list[bool]) -> None:
    assert open_(graph, *(np.array(item, INT) for item in inputs)) == want


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")  # numpy's word on it
def test_the_mean_of_nothing() -> None:
    graph = "(float[N,3] a) => (float[M,3] y) { x = Constant<value_ints = [0]>() y = ReduceMean(a, x) }"
    assert open_(graph, np.zeros((0, 3), np.float32)) == [True] * 3
    assert open_(graph, np.ones((2, 3), np.float32)) == [False] * 3
    assert open_(graph.replace("Mean", "Max"), np.zeros((0, 3), np.float32)) == [False] * 3, "minus infinity"


@pytest.mark.parametrize(
    ("attributes", "is_open"), [("sorted = 0", True), ("sorted = 0, axis = 0", True), ("sorted = 1", False)]
)
def test_the_order_of_the_largest_is_open_where_none_is_asked_for(attributes: str, is_open: bool) -> None:
    graph = f"(float[4] x, int64[1] k) => (float[3] y) {{ y, i = TopK<{attributes}>(x, k) }}"
    assert open_(graph, np.array([4, 1, 2, 3], np.float32), np.array([3])) == [is_open] * 3


def test_unsigned_integers_wrap() -> None:
    graph = "(uint8[2] a, uint8[2] b) => (uint8[2] y) { y = Add(a, b) }"
    assert open_(graph, np.array([255, 1], np.uint8), np.array([1, 1], np.uint8)) == [False, False]


def test_floats_that_no_integer_can_hold() -> None:
    floats = np.array([1.9, 127.9, 128, -128.9, -129, np.nan, np.inf], np.float32)
    graph = "(float[7] x) => (int8[7] y) { y = Cast<to = 3>(x) }"
    assert open_(graph, floats) == [False, False, True, False, True, True, True]
    unsigned = "(float[7] x) => (uint8[7] y) { y = Cast<to = 2>(x) }"
    assert open_(unsigned, floats) == [False, False, False, True, True, True, True]
    assert open_("(float[7] x) => (bool[7] y) { y = Cast<to = 9>(x) }", floats) == [False] * 7


def test_shifts_by_the_width_are_open_until_the_standard_defined_them() -> None:
    graph = '(uint8[3] a, uint8[3] b) => (uint8[3] y) { y = BitShift<direction = "LEFT">(a, b) }'
    given = np.array([3, 3, 3], np.uint8), np.array([1, 8, 7], np.uint8)
    assert open_(graph, *given) == [False, True, False]
    assert open_(graph, *given, opset=28) == [False] * 3


def test_what_follows_from_an_open_result_is_open_and_the_rest_is_not() -> None:
    """The point of two runs: the flow of data is followed by running it."""
    graph = (
        "(int32[2] a, int32[2] b) => (float[2] y) "
        "{ d = Div(a, b) c = Constant<value_ints = [0]>() e = Cast<to = 1>(d) y = Exp(e) }"
    )
    assert open_(graph, np.array([7, 7], INT), np.array([0, 2], INT)) == [True, False]
    masked = (
        "(int32[2] a, int32[2] b) => (int32[2] y) "
        "{ d = Div(a, b) z = Constant<value = int32 {0}>() m = Equal(b, z) y = Where(m, a, d) }"
    )
    assert open_(masked, np.array([7, 7], INT), np.array([0, 2], INT)) == [False, False]


def test_subgraphs_are_watched_too() -> None:
    graph = (
        "(int32[2] a, int32[2] b) => (int32[2] y) { t = Constant<value = bool {1}>() y = If(t) "
        "<then_branch = p () => (int32[2] u) { u = Div(a, b) }, "
        "else_branch = q () => (int32[2] u) { u = Add(a, b) }> }"
    )
    assert open_(graph, np.array([7, 7], INT), np.array([0, 2], INT)) == [True, False]


@pytest.mark.parametrize(("mode", "want"), [('mode = "max"', True), ('mode = "avg"', False), ("", False)])
def test_the_two_readings_of_roi_aligns_maximum_are_both_open(mode: str, want: bool) -> None:
    graph = (
        "(float[1,1,2,2] x, float[1,4] r, int64[1] b) => (float[1,1,1,1] y) "
        f"{{ y = RoiAlign<sampling_ratio = 1{', ' * bool(mode)}{mode}>(x, r, b) }}"
    )
    image = np.array([[[[1, 2], [3, 4]]]], np.float32)
    given = image, np.array([[0, 0, 1, 1]], np.float32), np.zeros(1, int)
    assert np.ravel(open_(graph, *given)).tolist() == [want]


@pytest.mark.parametrize(("zero", "want"), [(5, [True, False, True, False]), (4, [False] * 4)])
def test_ties_of_qlinear_conv_are_open_where_the_zero_point_is_odd(zero: int, want: list[bool]) -> None:
    """8.5 becomes 8 or 9, 9.5 becomes 10 or 9; what is no tie is not open."""
    graph = (
        "(uint8[1,1,4] x, float s, uint8 z, uint8[1,1,1] w, float h, uint8 o) => (uint8[1,1,4] y) "
        "{ y = QLinearConv(x, s, z, w, s, z, h, o) }"
    )
    one, two = np.array(1, np.float32), np.array(2, np.float32)
    given = np.array([[[7, 8, 9, 10]]], np.uint8), one, np.uint8(0), np.ones((1, 1, 1), np.uint8), two
    assert open_(graph, *map(np.asarray, (*given, np.uint8(zero)))) == want
    kept = run(model(graph), *map(np.asarray, (*given, np.uint8(zero))), how=evaluator("float64", "0"))[0]
    assert isinstance(kept, Tensor)
    assert kept.array().ravel().tolist() == [4 + zero, 4 + zero, 4 + zero, 5 + zero]


@pytest.mark.parametrize(("mode", "want"), [("linear", [False, True, True, False]), ("nearest", [False] * 4)])
def test_how_integers_are_rounded_that_lie_between_two_is_open(mode: str, want: list[bool]) -> None:
    graph = (
        "(int32[1,1,1,2] x) => (int32[1,1,1,4] y) <float[4] s = {1, 1, 1, 2}> "
        f'{{ y = Resize<mode = "{mode}">(x, , s) }}'
    )
    assert open_(graph, np.array([[[[0, 3]]]], INT)) == want
    assert open_(graph, np.array([[[[0, 4]]]], INT)) == [False] * 4, "a quarter of 4 is an integer"
    sampled = (
        "(int32[1,1,1,2] x, float[1,1,4,2] g) => (int32[1,1,1,4] y) "
        f'{{ y = GridSample<align_corners = 1, mode = "{mode}">(x, g) }}'
    )
    grid = np.array([[[[place, 0] for place in (-1, -0.5, 0.5, 1)]]], np.float32)
    assert open_(sampled, np.array([[[[0, 3]]]], INT), grid) == want


ROOT = "f = Cast<to = 1>(b) h = Constant<value = float {0.5}>() g = Mul(f, h) y = Pow(a, g)"
FRACTIONS = {
    "(int32[2,2] a) => (int32[2] y) { y = ReduceMean<axes = [1], keepdims = 0>(a) }": ([[1, 2], [1, 3]],),
    "(int32[2,2] a) => (int32[2] y) { y = ReduceL2<axes = [1], keepdims = 0>(a) }": ([[1, 2], [3, 4]],),
    f"(int32[2] a, int32[2] b) => (int32[2] y) {{ {ROOT} }}": ([2, 4], [1, 1]),
    "(int32[2,1] a, int32[1,1] b) => (int32[2,1] y) { y = Gemm<alpha = 0.5>(a, b) }": ([[1], [2]], [[1]]),
    "(int32[2] a) => (int32[2] y) { y = Shrink<bias = 0.5>(a) }": ([1, 0],),
}


@pytest.mark.parametrize("graph", FRACTIONS, ids=["mean", "norm", "root", "product", "shrink"])
def test_how_fractions_of_integers_are_rounded_is_open(graph: str) -> None:
    """The first element is one, the second is not."""
    assert open_(graph, *(np.array(item, INT) for item in FRACTIONS[graph]), opset=13) == [True, False]
