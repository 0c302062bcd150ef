"""What ONNX's evaluator gets wrong and `_onnx_corrected` puts right: against torch, or what is written."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx.parser
import onnx.reference
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.backends.onnx_reference import OnnxReference, corrections
from fuzzing.cases import OnnxModel, Tensor, Value
from fuzzing.errors import InternalError
from fuzzing.migrate.onnx_node_tests import collect
from fuzzing.migrate.onnx_wrong_tests import WRONG_TESTS

Array = np.ndarray[Any, Any]
Outputs = list[Array]
F, I = np.float32, np.int64  # noqa: E741


def model(graph: str, opset: int) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {graph}')


@cache
def judge(precision: str = "native", undefined: str = "native") -> OnnxReference:
    found = OnnxReference()
    found.load("CPU", {"precision": precision, "undefined": undefined})
    return found


def corrected(given_: onnx.ModelProto, inputs: list[Array], how: OnnxReference | None = None) -> Outputs:
    backend = how or judge()
    named: list[tuple[str, Value]] = [
        (item.name, Tensor.of(array)) for item, array in zip(given_.graph.input, inputs, strict=True)
    ]
    executable = backend.compile(backend.convert(OnnxModel(given_.SerializeToString()), named))
    return [value.array() for _, value in backend.run(executable, named) if isinstance(value, Tensor)]


def plain(given_: onnx.ModelProto, inputs: list[Array]) -> Outputs | None:
    """What onnx itself gives; None if it fails, however it does."""
    names = [item.name for item in given_.graph.input]
    try:
        with np.errstate(all="ignore"):
            found = onnx.reference.ReferenceEvaluator(given_).run(None, dict(zip(names, inputs, strict=True)))
    except Exception:  # noqa: BLE001 - that onnx's own code fails is what is asked
        return None
    assert isinstance(found, list)
    return found


def ramp(*shape: int) -> Array:
    """Different numbers that are exact, of both signs."""
    count = int(np.prod(shape))
    return ((np.arange(count) * 37 % (2 * count + 1) - count) / 8).reshape(shape).astype(F)


def line(*numbers: float) -> Array:
    return np.array(numbers, F)


X3, X4 = ramp(1, 2, 6), ramp(2, 3, 5, 4)
LOOP = (
    "y, s = Loop({trips}, {going}, x) <body = b (int64 i, bool c, float[2] a) "
    "=> (bool d, float[2] e, float[2] f)"
    " {{ d = Identity(c) e = Add(a, a) f = Identity(a) }}>"
)
SCAN = (
    "(float[2,3] x) => (float[3,2] y) { y = Scan<num_scan_inputs = 1, scan_input_axes = [1], "
    "scan_input_directions = [1], body = b (float[2] a) => (float[2] c) { c = Neg(a) }>(x) }"
)
BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [0, 2, 1, 3]]], F)
SCORES = np.array([[[0.9, 0.8, 0.7]]], F)
HALF = np.linspace(-3, 3, 8).astype(np.float16).reshape(2, 4)


def _windows(kind: str, **more: Any) -> Outputs:
    return [getattr(torch.nn.functional, kind)(torch.tensor(X3), **more).numpy()]


def _lstm(steps: int) -> Outputs:
    """Of zero weights and biases: the gates are 1/2, what is added is 0, so the cell halves each step."""
    cell = 0.5**steps
    return [np.full((1, 1, 2), 0.5 * np.tanh(cell), F)]


def _recurrent(name: str, gates: int, more: str) -> tuple[str, list[Array]]:
    graph = (
        f"(float[3,1,1] x, float[1,{2 * gates},1] w, float[1,{2 * gates},2] r, int32[1] n, float[1,1,2] h) "
        f'=> (float[1,1,2] y) {{ u, y = {name}<hidden_size = 2>(x, w, r, "", n, h{more}) }}'
    )
    zeros = [np.zeros((1, 2 * gates, size), F) for size in (1, 2)]
    return graph, [np.ones((3, 1, 1), F), *zeros, np.array([2], np.int32), np.ones((1, 1, 2), F)]


#: By operator: opset, graph, inputs, what is due. For each, onnx 1.23.2 fails or gives something else.
CASES: dict[str, tuple[int, str, list[Array], Outputs]] = {
    "AffineGrid": (
        20,
        "(double[1,2,3] t) "
        "=> (double[1,1,2,2] y) { s = Constant<value_ints = [1, 1, 1, 2]>() y = AffineGrid(t, s) }",
        [np.array([[[1, 0, 1e-9], [0, 1, 0]]])],
        [np.array([[[[-0.5 + 1e-9, 0], [0.5 + 1e-9, 0]]]])],
    ),
    "Attention": (
        23,
        '(float[1,1,1,2] q) '
        '=> (float[1,1,1,1] s) { a, b, c, s = Attention<softcap = 1.0, scale = 1.0>(q, q, q) }',
        [np.array([[[[1, 2]]]], F)],
        [np.array([[[[5]]]], F)],
    ),
    "AveragePool": (
        19,
        '(float[1,2,6] x) '
        '=> (float[1,2,L] y) { y = AveragePool<kernel_shape = [2], strides = [2], auto_pad = '
        '"VALID", ceil_mode = 1>(x) }',
        [X3],
        _windows("avg_pool1d", kernel_size=2, stride=2),
    ),
    "BatchNormalization": (
        9,
        "(float[2,3,5,4] x, float[3] o, float[3] z) "
        "=> (float[2,3,5,4] y) { y = BatchNormalization<epsilon = 0.0>"
        "(x, o, z, z, o) }",
        [X4, np.ones(3, F), np.zeros(3, F)],
        [X4],
    ),
    "ConvTranspose": (
        11,
        "(float[1,2,6] x, float[2,2,3] w) => (float[1,4,L] y) { y = ConvTranspose<group = 2>(x, w) }",
        [X3, ramp(2, 2, 3)],
        [
            torch.nn.functional.conv_transpose1d(
                torch.tensor(X3), torch.tensor(ramp(2, 2, 3)), groups=2
            ).numpy()
        ],
    ),
    "DequantizeLinear": (
        13,
        "(uint8[2,2] x, float[2] s, uint8[2] z) "
        "=> (float[2,2] y) { y = DequantizeLinear<axis = 0>(x, s, z) }",
        [np.array([[1, 2], [3, 4]], np.uint8), line(0.5, 2), np.array([1, 5], np.uint8)],
        [np.array([[0, 0.5], [-4, -2]], F)],
    ),
    "Det": (
        11,
        "(float16[2,2] x) => (float16 y) { y = Det(x) }",
        [np.array([[1, 2], [3, 4]], np.float16)],
        [np.array(-2, np.float16)],
    ),
    "GRU": (14, *_recurrent("GRU", 3, ""), [np.full((1, 1, 2), 0.25, F)]),
    "GatherElements": (
        13,
        "(float[2,3] x, int64[1,2] i) => (float[1,2] y) { y = GatherElements<axis = 0>(x, i) }",
        [np.array([[1, 2, 3], [4, 5, 6]], F), np.array([[1, -2]], I)],
        [np.array([[4, 2]], F)],
    ),
    "GlobalLpPool": (
        2,
        "(float[1,1,2] x) => (float[1,1,1] y) { y = GlobalLpPool(x) }",
        [np.array([[[3, -4]]], F)],
        [np.array([[[5]]], F)],
    ),
    "GlobalMaxPool": (
        1,
        "(float[1,2,6] x) => (float[1,2,1] y) { y = GlobalMaxPool(x) }",
        [X3],
        [X3.max(axis=2, keepdims=True)],
    ),
    "GridSample": (
        16,
        '(float[1,1,1,3] x, float[1,1,2,2] g) '
        '=> (float[1,1,1,2] y) { y = GridSample<mode = "bilinear">(x, g) }',
        [np.array([[[[1, 2, 4]]]], F), np.array([[[[0, 0], [1, 0]]]], F)],
        [np.array([[[[2, 2]]]], F)],
    ),
    "LRN": (
        13,
        "(float[1,3,1,1] x) "
        "=> (float[1,3,1,1] y) { y = LRN<size = 2, alpha = 2.0, beta = 1.0, bias = 1.0>(x) }",
        [np.array([1, 2, 3], F).reshape(1, 3, 1, 1)],
        [np.array([1 / 6, 2 / 14, 3 / 10], F).reshape(1, 3, 1, 1)],
    ),
    "LSTM": (14, *_recurrent("LSTM", 4, ", h"), _lstm(2)),
    "LayerNormalization": (
        17,
        "(float16[2,4] x, float16[4] s) "
        "=> (float16[2,4] y, float[2,1] m) { y, m = LayerNormalization(x, s) }",
        [HALF, np.ones(4, np.float16)],
        [
            torch.nn.functional.layer_norm(torch.tensor(HALF.astype(F)), (4,)).numpy().astype(np.float16),
            HALF.astype(F).mean(axis=1, keepdims=True),
        ],
    ),
    "LogSoftmax": (
        13,
        "(float[1,2] x) => (float[1,2] y) { y = LogSoftmax(x) }",
        [line(0, 1000)[None]],
        [line(-1000, 0)[None]],
    ),
    "Loop": (
        13,
        "(float[2] x, int64 n) => (float[2] y, float[3,2] s) { " + LOOP.format(trips="n", going='""') + " }",
        [line(1, 2), np.array(3, I)],
        [line(8, 16), np.array([[1, 2], [2, 4], [4, 8]], F)],
    ),
    "LpPool": (
        18,
        "(float[1,1,3] x) "
        "=> (float[1,1,2] y) { y = LpPool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x) }",
        [np.array([[[3, 4, -5]]], F)],
        [np.array([[[5, 5]]], F)],
    ),
    "MaxPool": (
        12,
        '(float[1,1,5] x) '
        '=> (float[1,1,3] y, int64[1,1,3] i) { y, i = MaxPool<kernel_shape = [2], strides = [2], '
        'auto_pad = "SAME_LOWER">(x) }',
        [np.array([[[1, 5, 2, 3, 4]]], F)],
        [np.array([[[1, 5, 4]]], F), np.array([[[0, 1, 4]]], I)],
    ),
    "MaxUnpool": (
        11,
        "(float[1,1,1,1] x, int64[1,1,1,1] i, int64[4] s) "
        "=> (float[1,1,3,3] y) { y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i, s) }",
        [np.array([[[[5]]]], F), np.array([[[[3]]]], I), np.array([1, 1, 3, 3], I)],
        [np.array([[[[0, 0, 0], [5, 0, 0], [0, 0, 0]]]], F)],
    ),
    "MaxRoiPool": (
        1,
        "(float[1,1,2,4] x, float[1,5] r) "
        "=> (float[1,1,1,2] y) { y = MaxRoiPool<pooled_shape = [1, 2]>(x, r) }",
        [np.arange(8, dtype=F).reshape(1, 1, 2, 4), np.array([[0, 0, 0, 3, 1]], F)],
        [np.array([[[[5, 7]]]], F)],
    ),
    "Mean": (
        13,
        "(float[2] a, float[2,2] b) => (float[2,2] y) { y = Mean(a, b) }",
        [line(1, 3), np.array([[1, 1], [3, 5]], F)],
        [np.array([[1, 2], [2, 4]], F)],
    ),
    "NegativeLogLikelihoodLoss": (
        13,
        "(float[2,2] x, int64[2] t) => (float y) { y = NegativeLogLikelihoodLoss<ignore_index = -1>(x, t) }",
        [np.array([[-1, -2], [-3, -4]], F), np.array([1, -1], I)],
        [np.array(2, F)],
    ),
    "NonMaxSuppression": (
        11,
        "(float[1,3,4] b, float[1,1,3] s, int64 n) => (int64[N,3] y) { y = NonMaxSuppression(b, s, n) }",
        [BOXES, SCORES, np.array(2, I)],
        [np.array([[0, 0, 0], [0, 0, 2]], I)],
    ),
    "OneHot": (
        13,
        "(float[3] i, int64[1] d, uint8[2] v) => (uint8[3,2] y) { y = OneHot(i, d, v) }",
        [line(0.5, -1, 7), np.array([2], I), np.array([9, 3], np.uint8)],
        [np.array([[3, 9], [9, 3], [9, 9]], np.uint8)],
    ),
    "Optional": (
        18,
        "(float[2] x) => (float[2] y) { o = Optional(x) y = OptionalGetElement(o) }",
        [line(1, 2)],
        [line(1, 2)],
    ),
    "Pad": (
        18,
        '(float[4] x, int64[2] p) => (float[4] y) { y = Pad<mode = "reflect">(x, p) }',
        [line(1, 2, 3, 4), np.array([-1, 1], I)],
        [line(2, 3, 4, 3)],
    ),
    "QLinearConv": (
        10,
        "(uint8[1,1,2] x, float s, uint8 z, uint8[1,1,1] w, uint8 o, float h) => (uint8[1,1,2] y) "
        "{ y = QLinearConv(x, s, z, w, s, z, h, o) }",
        [
            np.array([[[5, 7]]], np.uint8), np.array(1, F), np.array(0, np.uint8),
            np.array([[[1]]], np.uint8), np.array(1, np.uint8), np.array(2, F),
        ],
        [np.array([[[3, 5]]], np.uint8)],
    ),
    "QLinearMatMul": (
        10,
        "(uint8[1,1] x, float s, uint8 z, uint8[1,1] w, uint8 o, float h) => (uint8[1,1] y) "
        "{ y = QLinearMatMul(x, s, z, w, s, z, h, o) }",
        [
            np.array([[5]], np.uint8), np.array(1, F), np.array(0, np.uint8),
            np.array([[1]], np.uint8), np.array(1, np.uint8), np.array(2, F),
        ],
        [np.array([[3]], np.uint8)],
    ),
    "RNN": (
        14,
        "(float[2,1,1] x, float[1,1,1] w, float[1,1,1] r) => (float[2,1,1,1] y) "
        "{ y = RNN<hidden_size = 1, clip = 0.5>(x, w, r) }",
        [np.ones((2, 1, 1), F), np.full((1, 1, 1), 2, F), np.zeros((1, 1, 1), F)],
        [np.full((2, 1, 1, 1), np.tanh(0.5), F)],
    ),
    "ReduceSumSquare": (
        13,
        "(int32[2] x) => (int32[1] y) { y = ReduceSumSquare<axes = [0]>(x) }",
        [np.array([3, 4], np.int32)],
        [np.array([25], np.int32)],
    ),
    "Resize": (
        18,
        '(float[3] x, float[1] s) => (float[1] y) { y = Resize<mode = "linear", axes = [-1], '
        'coordinate_transformation_mode = "pytorch_half_pixel">(x, "", s) }',
        [line(1, 2, 4), line(0.5)],
        [line(1)],
    ),
    "RoiAlign": (
        10,
        "(float[1,1,2,2] x, float[1,4] r, int64[1] b) => (float[1,1,1,1] y) "
        "{ y = RoiAlign<sampling_ratio = 1>(x, r, b) }",
        [np.array([[[[1, 2], [3, 4]]]], F), np.array([[0, 0, 1, 1]], F), np.array([0], I)],
        [np.array([[[[2.5]]]], F)],
    ),
    "Scan": (13, SCAN, [np.arange(6, dtype=F).reshape(2, 3)], [-np.array([[2, 5], [1, 4], [0, 3]], F)]),
    "Softsign": (
        13,
        "(float x) => (float y) { y = Softsign(x) }",
        [np.array(-3, F)],
        [np.array(-0.75, F)],
    ),
    "Unique": (
        11,
        "(int64[2,3] x) => (int64[N] y) { y = Unique<sorted = 0>(x) }",
        [np.array([[5, 1, 5], [3, 1, 3]], I)],
        [np.array([5, 1, 3], I)],
    ),
}  # fmt: skip


def same(found: Outputs | None, want: Outputs) -> bool:
    return found is not None and all(
        np.asarray(one).dtype == other.dtype
        and np.shape(one) == other.shape
        and np.allclose(one, other, rtol=1e-6, atol=1e-12)
        for one, other in zip(found, want, strict=True)
    )


@pytest.mark.parametrize("operator", CASES)
def test_gives_what_is_due(operator: str) -> None:
    opset, graph, inputs, want = CASES[operator]
    found = corrected(model(graph, opset), inputs)
    for one, other in zip(found, want, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-12, strict=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("operator", CASES)
def test_onnx_itself_does_not(operator: str) -> None:
    """Once this fails, a newer onnx has mended it: the correction has had its day."""
    opset, graph, inputs, want = CASES[operator]
    assert not same(plain(model(graph, opset), inputs), want)


def test_every_correction_is_shown() -> None:
    assert set(CASES) == set(corrections.CORRECTIONS)


@pytest.mark.parametrize("operator", ["GridSample", "LRN", "LSTM", "LpPool", "LayerNormalization"])
def test_float64_referee_computes_in_float64(operator: str) -> None:
    opset, graph, inputs, want = CASES[operator]
    for one, other in zip(corrected(model(graph, opset), inputs, judge("float64")), want, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=1e-3 if other.dtype == np.float16 else 1e-6)


def test_stash_type_is_widened_where_it_is_left_out() -> None:
    """Else a referee of double would compute in float32, as the standard has it by default."""
    x = np.array([[1.0, 1.0 + 1e-9, 1.0 + 3e-9, 1.0]])
    graph = "(double[1,4] x, double[4] s) => (double[1,4] y) { y = LayerNormalization<epsilon = 0.0>(x, s) }"
    [found] = corrected(model(graph, 17), [x, np.ones(4)], judge("float64"))
    np.testing.assert_allclose(found, (x - x.mean()) / x.std(), rtol=1e-6)


@pytest.mark.parametrize("opset", [11, 13, 17])
def test_an_empty_list_of_axes_is_all_axes(opset: int) -> None:
    """ONNX's version converter writes such a list, and its shape inference takes it as none."""
    graph = model("(float[2,3] x) => (float[1,1] y) { y = ReduceSumSquare<axes: ints = []>(x) }", opset)
    given_ = [np.ones((2, 3), F)]
    [found] = corrected(graph, given_)
    assert found.tolist() == [[6]]
    assert same([found], plain(graph, given_) or [])


@pytest.mark.parametrize("trips", [0, 1])
def test_undefined_results_are_found_in_corrected_bodies(trips: int) -> None:
    """Both ways of making an evaluator at once: a division by 0 in a Loop's body."""
    graph = (
        "(int32 x, int32 z, int64 n) "
        '=> (int32 y) { y = Loop(n, "", x) <body = b (int64 i, bool c, int32 a) => '
        "(bool d, int32 e) { d = Identity(c) e = Div(a, z) }> }"
    )
    inputs: list[Array] = [np.array(7, np.int32), np.array(0, np.int32), np.array(trips, I)]
    found = [corrected(model(graph, 13), inputs, judge("float64", fill))[0].item() for fill in ("0", "1")]
    assert found == ([0, 1] if trips else [7, 7])


def test_corrections_reach_functions() -> None:
    text = (
        '<ir_version: 8, opset_import: ["" : 18, "own" : 1]> g (float[1,2,6] x) => (float[1,2,1] y) '
        '{ y = own.f(x) } <domain: "own", opset_import: ["" : 18]> f (a) => (b) { b = GlobalMaxPool(a) }'
    )
    [found] = corrected(onnx.parser.parse_model(text), [X3])
    np.testing.assert_array_equal(found, X3.max(axis=2, keepdims=True))


def test_a_state_of_a_scan_keeps_its_shape() -> None:
    """onnxruntime refuses another shape; ONNX requires one shape "in each iteration"."""
    graph = (
        "(float[1] s, float[2,3] x) => (float[3] t) { t = Scan<num_scan_inputs = 1, "
        "body = b (float[n] a, float[3] c) => (float[3] d) { d = Add(a, c) }>(s, x) }"
    )
    inputs = [np.zeros(1, F), np.ones((2, 3), F)]
    with pytest.raises(ValueError, match="the shape of a state changes"):
        corrected(model(graph, 18), inputs)
    assert corrected(model(graph, 18), [np.zeros(3, F), inputs[1]])[0].tolist() == [2, 2, 2]


def test_loop_without_a_trip_has_outputs_of_the_body_s_shape() -> None:
    _, graph, _, _ = CASES["Loop"]
    kept, scanned = corrected(model(graph.replace("[3,2]", "[0,2]"), 13), [line(1, 2), np.array(0, I)])
    np.testing.assert_array_equal(kept, line(1, 2))
    assert (scanned.shape, scanned.dtype) == ((0, 2), np.float32)


@pytest.mark.parametrize(("storage", "places"), [(0, [3, 5]), (1, [4, 5])])
def test_places_of_the_largest_are_counted_in_the_order_asked_for(storage: int, places: list[int]) -> None:
    graph = (
        "(float[1,1,3,2] x) => (float[1,1,2,1] y, int64[1,1,2,1] i) "
        f"{{ y, i = MaxPool<kernel_shape = [2, 2], storage_order = {storage}>(x) }}"
    )
    found, where = corrected(model(graph, 21), [np.array([[[[0, 1], [2, 3], [0, 4]]]], F)])
    assert found.ravel().tolist() == [3, 4]
    assert where.ravel().tolist() == places


@given(
    kernel=st.integers(1, 4), stride=st.integers(1, 4), dilation=st.integers(1, 3), ceil=st.booleans(),
    data=st.data(),
)  # fmt: skip
def test_max_pool_is_torch_s(
    kernel: int, stride: int, dilation: int, ceil: bool, data: st.DataObject
) -> None:
    pad = data.draw(st.integers(0, kernel // 2))
    length = data.draw(st.integers(dilation * (kernel - 1) + 1, 12))
    x = ramp(2, 2, length)
    graph = (
        f"(float[2,2,{length}] x) "
        f"=> (float[2,2,L] y, int64[2,2,L] i) {{ y, i = MaxPool<kernel_shape = [{kernel}], "
        f"strides = [{stride}], dilations = [{dilation}], pads = [{pad}, {pad}], "
        f"ceil_mode = {int(ceil)}>(x) }}"
    )
    want = torch.nn.functional.max_pool1d(
        torch.tensor(x), kernel, stride, pad, dilation, ceil, return_indices=True
    )
    found, where = corrected(model(graph, 12), [x])
    np.testing.assert_array_equal(found, want[0].numpy())
    # torch counts within an image, ONNX within the whole tensor.
    np.testing.assert_array_equal(where, want[1].numpy() + np.arange(4).reshape(2, 2, 1) * length)


@given(kernel=st.integers(1, 3), more=st.integers(0, 2), length=st.integers(1, 4))
def test_max_unpool_is_torch_s_and_undoes_max_pool(kernel: int, more: int, length: int) -> None:
    long = length * kernel + min(more, kernel - 1)  # as long as what this many windows were pooled from
    x = np.abs(ramp(2, 2, long, long)) + 1  # the largest are not 0, so that pooling finds them again
    pooled, where = torch.nn.functional.max_pool2d(torch.tensor(x), kernel, return_indices=True)
    graph = (
        f"(float[2,2,{length},{length}] x, int64[2,2,{length},{length}] i, int64[4] s) => (float[2,2,N,M] y) "
        f"{{ y = MaxUnpool<kernel_shape = [{kernel}, {kernel}], strides = [{kernel}, {kernel}]>(x, i, s) }}"
    )
    # torch counts within an image, ONNX within the whole tensor.
    flat = where.numpy() + np.arange(4).reshape(2, 2, 1, 1) * long * long
    found = corrected(model(graph, 11), [pooled.numpy(), flat, np.array(x.shape, I)])[0]
    want = torch.nn.functional.max_unpool2d(pooled, where, [kernel, kernel], output_size=x.shape[2:])
    np.testing.assert_array_equal(found, want.numpy())
    again = torch.nn.functional.max_pool2d(torch.tensor(found), kernel)
    np.testing.assert_array_equal(again.numpy(), pooled.numpy())


@given(
    kernel=st.integers(1, 4), stride=st.integers(1, 3), group=st.integers(1, 2), dilation=st.integers(1, 2),
    more=st.integers(0, 2), pad=st.integers(0, 1),
)  # fmt: skip
def test_conv_transpose_is_torch_s(
    kernel: int, stride: int, group: int, dilation: int, more: int, pad: int
) -> None:
    more = min(more, max(stride, dilation) - 1)
    pad = min(pad, dilation * (kernel - 1))
    x, w, b = ramp(2, 4, 5), ramp(4, 3, kernel), ramp(3 * group)
    graph = (
        f"(float[2,4,5] x, float[4,3,{kernel}] w, float[{3 * group}] b) => (float[2,{3 * group},L] y) "
        f"{{ y = ConvTranspose<group = {group}, strides = [{stride}], dilations = [{dilation}], "
        f"output_padding = [{more}], pads = [{pad}, {pad}]>(x, w, b) }}"
    )
    want = torch.nn.functional.conv_transpose1d(
        torch.tensor(x), torch.tensor(w), torch.tensor(b), stride, pad, more, group, dilation
    )
    np.testing.assert_allclose(corrected(model(graph, 11), [x, w, b])[0], want.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_grid_sample_is_torch_s(mode: str, padding: str, corners: int) -> None:
    random = np.random.default_rng(3)
    x, grid = ramp(2, 2, 4, 1), random.uniform(-2.5, 2.5, (2, 3, 4, 2)).astype(F)
    graph = (
        "(float[2,2,4,1] x, float[2,3,4,2] g) => (float[2,2,3,4] y) "
        f'{{ y = GridSample<mode = "{mode}", padding_mode = "{padding}", align_corners = {corners}>(x, g) }}'
    )
    want = torch.nn.functional.grid_sample(torch.tensor(x), torch.tensor(grid), mode, padding, bool(corners))
    np.testing.assert_allclose(corrected(model(graph, 16), [x, grid])[0], want.numpy(), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(("corners", "coordinates"), [(True, "align_corners"), (False, "half_pixel")])
@pytest.mark.parametrize(("mode", "torch_mode"), [("linear", "bilinear"), ("cubic", "bicubic")])
@pytest.mark.parametrize("size", [(3, 9), (1, 6), (12, 2)])
def test_resize_is_torch_s(
    mode: str, torch_mode: str, coordinates: str, corners: bool, size: tuple[int, int]
) -> None:
    x = ramp(1, 2, 5, 6)
    graph = (
        f"(float[1,2,5,6] x, int64[2] n) => (float[1,2,{size[0]},{size[1]}] y) "
        f'{{ y = Resize<mode = "{mode}", axes = [-2, 3], '
        f'coordinate_transformation_mode = "{coordinates}">(x, "", "", n) }}'
    )
    want = torch.nn.functional.interpolate(torch.tensor(x), size, mode=torch_mode, align_corners=corners)
    found = corrected(model(graph, 18), [x, np.array(size, I)])[0]
    np.testing.assert_allclose(found, want.numpy(), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(("name", "gates"), [("RNN", 1), ("LSTM", 4)])
def test_recurrent_networks_are_torch_s(name: str, gates: int) -> None:
    torch.manual_seed(2)
    layer = getattr(torch.nn, name)(3, 2, bidirectional=True)
    # ONNX's order of gates is i, o, f, c; torch's i, f, g, o.
    order = [0] if gates == 1 else [0, 3, 1, 2]

    def both(kind: str) -> Array:
        halves = [getattr(layer, f"{kind}_l0{suffix}").detach().numpy() for suffix in ("", "_reverse")]
        return np.stack([np.concatenate([np.split(half, gates)[at] for at in order]) for half in halves])

    x = ramp(4, 2, 3)
    bias = np.concatenate([both("bias_ih"), both("bias_hh")], axis=1)
    size = 2 * gates
    graph = (
        f"(float[4,2,3] x, float[2,{size},3] w, float[2,{size},2] r, float[2,{2 * size}] b) "
        f"=> (float[4,2,2,2] y) "
        f'{{ y = {name}<hidden_size = 2, direction = "bidirectional">(x, w, r, b) }}'
    )
    want = layer(torch.tensor(x))[0].detach().numpy().reshape(4, 2, 2, 2).transpose(0, 2, 1, 3)
    found = corrected(model(graph, 14), [x, both("weight_ih"), both("weight_hh"), bias])[0]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_onnx_s_own_node_tests_agree() -> None:
    """Those of all operators that are corrected, but for the listed ones, which contradict the text."""
    evaluator = corrections.evaluator(onnx)
    wrong = {
        test.name
        for test in collect()
        if test.model is not None
        and len(test.model.graph.node) == 1
        and _applies(test.model)
        and not _agrees(evaluator(test.model), test)
    }
    assert wrong == set(WRONG_TESTS)


def _applies(given_: onnx.ModelProto) -> bool:
    correction = corrections.CORRECTIONS.get(given_.graph.node[0].op_type)
    opset = given_.opset_import[0].version
    return correction is not None and correction.since <= opset <= correction.until


def _agrees(evaluator: Any, test: Any) -> bool:
    if not test.data_sets:
        raise InternalError(f"{test.name} has no data")
    for inputs, outputs in test.data_sets:
        names = [item.name for item in test.model.graph.input]
        found = evaluator.run(None, dict(zip(names, inputs, strict=False)))
        for one, want in zip(found, outputs, strict=True):
            if isinstance(want, np.ndarray):
                close = np.allclose(one, want, rtol=test.rtol, atol=max(test.atol, 1e-5), equal_nan=True)
                if np.shape(one) != want.shape or one.dtype != want.dtype or not close:
                    return False
    return True
