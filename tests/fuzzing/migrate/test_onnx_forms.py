"""Node tests in forms that no node test has."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.test_case import TestCase as NodeTest

from fuzzing.migrate.onnx_forms import list_forms
from tests.fuzzing.migrate.test_onnx_contexts import X, node_test, run

ONES = np.ones(4, np.float32)
CHANNEL = "float[4] scale, float[4] bias, float[4] mean, float[4] var"
STATISTICS = [ONES, ONES * 0.1, ONES * 0.3, ONES]


def forms(text: str, *inputs: Any) -> dict[str, NodeTest]:
    return dict(list_forms(node_test(text, *inputs)))


def outputs(test: NodeTest) -> list[Any]:
    assert test.data_sets is not None
    [(_, found)] = test.data_sets
    return list(found)


def test_an_optional_input_is_left_out() -> None:
    found = forms(
        "(float[3,4] x, float[4] w, float[4] b) => (float[3,4] y) { y = LayerNormalization(x, w, b) }",
        X,
        ONES,
        ONES * 5,
    )
    assert set(found) == {"without B"}
    test = found["without B"]
    assert test.model is not None
    assert list(test.model.graph.node[0].input) == ["x", "w"]
    assert [one.name for one in test.model.graph.input] == ["x", "w"]
    assert abs(float(np.mean(outputs(test)[0]))) < 1e-3, "nothing is added"


def test_an_input_in_the_middle_is_left_out() -> None:
    found = forms(
        "(float[3,4] x, float least, float most) => (float[3,4] y) { y = Clip(x, least, most) }",
        X,
        np.float32(2),
        np.float32(5),
    )
    test = found["without min"]
    assert test.model is not None
    assert list(test.model.graph.node[0].input) == ["x", "", "most"]
    np.testing.assert_array_equal(outputs(test)[0], np.minimum(X, 5))


def test_one_of_several_types_is_float16() -> None:
    found = forms(
        f"(float[3,4] x, {CHANNEL}) => (float[3,4] y) "
        "{ y = BatchNormalization(x, scale, bias, mean, var) }",
        X / 7,
        *STATISTICS,
    )
    assert set(found) == {"T is float16", "T1 is float16", "T2 is float16"}
    test = found["T is float16"]
    assert test.model is not None
    half, single = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
    assert [one.type.tensor_type.elem_type for one in test.model.graph.input] == [half, *[single] * 4]
    assert [one.type.tensor_type.elem_type for one in test.model.graph.output] == [half]
    [output] = outputs(test)
    assert output.dtype == np.float16
    rounded = (X / 7).astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(output, (rounded - 0.3) / np.sqrt(1 + 1e-5) + 0.1, rtol=1e-3)


def test_of_one_type_and_of_functions_none_is_float16() -> None:
    assert not forms("(float[3,4] x, float[3,4] y) => (float[3,4] z) { z = Add(x, y) }", X, X)
    scaled = forms("(float[3,4] x, float[4] w) => (float[3,4] y) { y = LayerNormalization(x, w) }", X, ONES)
    assert not scaled


@pytest.mark.parametrize(
    ("operator", "given", "expected"),
    [
        ("Expand(x, s)", [2, 3, 4], {"shape of the input", "shape of the input after 1", "shape all 1"}),
        ("Tile(x, s)", [2, 2], {"repeats all 1"}),
        ("Pad(x, s)", [1, 0, 0, 0], {"pads all 0"}),
    ],
)
def test_sizes_leave_the_elements_as_they_are(operator: str, given: list[int], expected: set[str]) -> None:
    shape = {"Expand": "2,3,4", "Tile": "6,8", "Pad": "4,4"}[operator.partition("(")[0]]
    text = f"(float[3,4] x, int64[{len(given)}] s) => (float[{shape}] y) {{ y = {operator} }}"
    found = forms(text, X, np.array(given, np.int64))
    assert expected <= set(found)
    for test in (found[form] for form in expected):
        np.testing.assert_array_equal(outputs(test)[0].ravel(), X.ravel())
        assert test.model is not None
        dims = test.model.graph.output[0].type.tensor_type.shape.dim
        assert len(dims) == outputs(test)[0].ndim or not dims


def test_sizes_that_change_nothing_are_computed_too() -> None:
    text = "(float[3,4] x, int64[3] s) => (float[2,3,4] y) { y = Expand(x, s) }"
    found = forms(text, X, np.array([2, 3, 4], np.int64))["shape of the input after 1, computed"]
    graph, computed, expected = run(found)
    np.testing.assert_array_equal(computed, expected)
    assert computed[0].shape == (1, 3, 4)
    assert "Shape" in {node.op_type for node in graph.node}


@pytest.mark.parametrize("given", ["zero", ""])
def test_weights_of_a_convolution_have_a_zero_point_for_each_channel(given: str) -> None:
    x, w = np.arange(9, dtype=np.uint8).reshape(1, 1, 3, 3), np.full((1, 1, 2, 2), 5, np.uint8)
    declared = "uint8[1,1,3,3] x, uint8[1,1,2,2] w" + (", uint8 zero" if given else "")
    found = forms(
        f"({declared}) => (int32[1,1,2,2] y) {{ y = ConvInteger(x, w, , {given or ''}) }}".replace(
            ", , )", ")"
        ),
        x,
        w,
        *([np.uint8(1)] if given else []),
    )
    [result] = outputs(found["weights by channel"])
    assert result.shape == (1, 2, 2, 2)
    windows = np.array([[x[0, 0, i : i + 2, j : j + 2].sum() for j in (0, 1)] for i in (0, 1)], np.int32)
    zero = 1 if given else 0
    np.testing.assert_array_equal(result[0], [windows * (5 - zero), windows * (4 - zero)])


def test_a_quantized_product_has_a_scale_for_each_column() -> None:
    declared = "uint8[2,2] a, float s, uint8 z, uint8[2,3] b, float t, uint8 u, float v, uint8 w"
    one, zero = np.float32(1), np.uint8(0)
    a, b = np.eye(2, dtype=np.uint8), np.array([[10, 20, 30], [40, 50, 60]], np.uint8)
    found = forms(
        f"({declared}) => (uint8[2,3] y) {{ y = QLinearMatMul(a, s, z, b, t, u, v, w) }}",
        *(a, one, zero, b, one, zero, one, zero),
    )
    test = found["weights by channel"]
    assert test.data_sets is not None
    [(inputs, [result])] = test.data_sets
    np.testing.assert_array_equal(inputs[4], [1, 1.5, 2])
    np.testing.assert_array_equal(inputs[5], [0, 1, 2])
    np.testing.assert_array_equal(result, np.rint((b - np.array([0, 1, 2])) * [1, 1.5, 2]))


def test_weights_in_groups_stay_as_they_are() -> None:
    x, w = np.ones((1, 2, 3, 3), np.uint8), np.ones((2, 1, 1, 1), np.uint8)
    found = forms(
        "(uint8[1,2,3,3] x, uint8[2,1,1,1] w) => (int32[1,2,3,3] y) { y = ConvInteger<group = 2>(x, w) }",
        x,
        w,
    )
    assert "weights by channel" not in found


RNN = """(float[2,1,1] x, float[1,1,1] w, float[1,1,1] r) => (float[1,1,1] h) {
    , h = RNN<hidden_size=1>(x, w, r)
}"""


def test_a_recurrence_gets_lengths_and_a_first_state() -> None:
    one = np.ones((1, 1, 1), np.float32)
    found = forms(RNN, np.array([[[1]], [[2]]], np.float32), one, one * 0.5)
    assert {"with sequence_lens", "with initial_h"} <= found.keys()
    [plain] = outputs(found["with sequence_lens"])
    np.testing.assert_allclose(plain, [[[np.tanh(2 + 0.5 * np.tanh(1))]]], rtol=1e-6)
    [begun] = outputs(found["with initial_h"])
    np.testing.assert_allclose(begun, [[[np.tanh(2 + 0.5 * np.tanh(1 - 0.5 * 0.5))]]], rtol=1e-6)


def test_a_recurrence_whose_first_axis_is_the_batch() -> None:
    text = (
        "(float[1,2,1] x, float[1,1,1] w, float[1,1,1] r) => (float[1,1,1] h) "
        "{ , h = RNN<hidden_size=1, layout=1>(x, w, r) }"
    )
    one = np.ones((1, 1, 1), np.float32)
    found = forms(text, np.array([[[1], [2]]], np.float32), one, one * 0.5)
    for name in ("with sequence_lens", "with initial_h"):
        test = found[name]
        assert test.data_sets is not None
        [(inputs, _)] = test.data_sets
        assert inputs[-1].shape == {"with sequence_lens": (1,), "with initial_h": (1, 1, 1)}[name]
    test = found["with sequence_lens"]
    assert test.data_sets is not None
    assert test.data_sets[0][0][-1].tolist() == [2]


def test_optional_outputs_are_left_out() -> None:
    found = forms(
        "(float[3,4] x, float[4] w) => (float[3,4] y, float[3,1] m, float[3,1] d) "
        "{ y, m, d = LayerNormalization(x, w) }",
        X,
        ONES,
    )
    whole = found["without output InvStdDev"]
    assert whole.model is not None
    assert list(whole.model.graph.node[0].output) == ["y", "m"]
    assert len(outputs(whole)) == 2
    middle = found["without output Mean"]
    assert middle.model is not None
    assert list(middle.model.graph.node[0].output) == ["y", "", "d"]
    assert [one.name for one in middle.model.graph.output] == ["y", "d"]


def test_the_only_output_stays() -> None:
    found = forms(RNN, np.ones((2, 1, 1), np.float32), *[np.ones((1, 1, 1), np.float32)] * 2)
    assert not [name for name in found if name.startswith("without output")]
