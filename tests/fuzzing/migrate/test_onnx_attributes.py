"""Cases with values of attributes that no node test has."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.coverage.attribute_classes import Cell
from fuzzing.migrate.onnx_attributes import make_cases
from fuzzing.migrate.sources import Skip


def case(text: str, *shape: int) -> TestCase:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')
    value = Tensor.of(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
    return TestCase(
        OnnxModel(model.SerializeToString()), (("x", value),), Provenance("t", "t", "", "onnx", "")
    )


POOL = case(
    "(float[1,1,6] x) => (float[1,1,3] y) { y = MaxPool<kernel_shape = [2], strides = [2]>(x) }", 1, 1, 6
)


def made(cell: Cell, test: TestCase) -> list[tuple[Any, list[int]]]:
    """The attribute's value and the declared output shape of each case."""
    found = []
    for one in make_cases(cell, [test]):
        assert isinstance(one, TestCase)
        assert one.expected is None
        model = onnx.load_model_from_string(one.program.to_bytes())
        [node], [output] = model.graph.node, model.graph.output
        [value] = [
            onnx.helper.get_attribute_value(item) for item in node.attribute if item.name == cell.attribute
        ] or [None]
        found.append((value, [dim.dim_value for dim in output.type.tensor_type.shape.dim]))
    return found


def test_a_value_of_the_class_is_written_and_shapes_follow() -> None:
    assert made(Cell("MaxPool", "strides", "all 1"), POOL) == [([1], [1, 1, 5])]


def test_an_attribute_is_left_out() -> None:
    assert made(Cell("MaxPool", "strides", "absent"), POOL) == [(None, [1, 1, 5])]


def test_an_axis_is_counted_from_the_end() -> None:
    softmax = case("(float[2,3] x) => (float[2,3] y) { y = Softmax<axis = 0>(x) }", 2, 3)
    assert made(Cell("Softmax", "axis", "from the end"), softmax) == [(-2, [2, 3])]


def test_a_value_without_an_effect_is_skipped() -> None:
    for cell in (
        Cell("MaxPool", "ceil_mode", "1"),
        Cell("MaxPool", "pads", "different on both sides"),
    ):
        [skip] = make_cases(cell, [POOL])
        assert isinstance(skip, Skip)


def test_a_momentum_is_a_share() -> None:
    """A compiler refuses more than 1: "the valid momentum range is [0, 1]" (TVM)."""
    one = ", ".join(["float[2] s"] + [f"float[2] {name}" for name in "bmv"])
    text = (
        f"(float[3,2] x, {one}) => (float[3,2] y, float[2] n, float[2] w) "
        "{ y, n, w = BatchNormalization<training_mode = 1>(x, s, b, m, v) }"
    )
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')
    values = {"x": Tensor.of(np.arange(6, dtype=np.float32).reshape(3, 2))}
    values |= {name: Tensor.of(np.ones(2, np.float32)) for name in "sbmv"}
    test = TestCase(
        OnnxModel(model.SerializeToString()), tuple(values.items()), Provenance("t", "t", "", "onnx", "")
    )
    given = list(make_cases(Cell("BatchNormalization", "momentum", "given"), [test]))
    assert len(given) == 2
    for item in given:
        assert isinstance(item, TestCase)
        [node] = onnx.load_model_from_string(item.program.to_bytes()).graph.node
        [momentum] = [attribute.f for attribute in node.attribute if attribute.name == "momentum"]
        assert 0 < momentum < 1


def test_a_type_of_integers_stands_in_for_the_zero_point_that_has_it() -> None:
    """ "If both `output_dtype` and `y_zero_point` are specified, `output_dtype` must be `T3`"."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x, float s, uint8 z) => (uint8[2] y) '
        "{ y = QuantizeLinear(x, s, z) }"
    )
    values = {"x": Tensor.of(np.array([-1, 300], np.float32))}
    values |= {"s": Tensor.of(np.float32(1)), "z": Tensor.of(np.uint8(0))}
    test = TestCase(
        OnnxModel(model.SerializeToString()), tuple(values.items()), Provenance("t", "t", "", "onnx", "")
    )
    cell = Cell("QuantizeLinear", "output_dtype", "integer")
    assert made(cell, test) == [(onnx.TensorProto.INT8, [2]), (onnx.TensorProto.INT16, [2])]
    for one in make_cases(cell, [test]):
        assert isinstance(one, TestCase)
        assert [name for name, _ in one.inputs] == ["x", "s"]
