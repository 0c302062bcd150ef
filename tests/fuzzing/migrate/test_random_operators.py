from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fuzzing.cases import Tensor, Value
from fuzzing.migrate.random_operators import RANDOM_OPERATORS, is_random_model

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])


def model(
    nodes: Sequence[onnx.NodeProto],
    opset: int = 22,
    functions: Sequence[onnx.FunctionProto] = (),
    initializer: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [X], [Y], initializer=initializer)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions)


@pytest.mark.parametrize("operator", sorted(RANDOM_OPERATORS))
def test_operators_that_draw(operator: str) -> None:
    assert is_random_model(model([helper.make_node(operator, ["x"], ["y"])]), {})
    assert not is_random_model(model([helper.make_node(operator, ["x"], ["y"], domain="local")]), {})


def test_all_of_the_standard_are_known() -> None:
    """Operators with a `seed` draw, all but Dropout always; RandomNormal and the like have one too."""
    seeded = {schema.name for schema in onnx.defs.get_all_schemas() if "seed" in schema.attributes}
    assert seeded - {"Dropout"} == RANDOM_OPERATORS


def test_other_operators_do_not() -> None:
    assert not is_random_model(model([helper.make_node("Relu", ["x"], ["y"])]), {})


def test_subgraphs_are_searched() -> None:
    def branch(operator: str) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "b", [], [Y])

    def both(operator: str) -> onnx.ModelProto:
        node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Relu"), else_branch=branch(operator))
        outer = helper.make_graph([node], "outer", [], [Y])
        loop = helper.make_node("Loop", ["", "c", "x"], ["y"], body=outer)
        return model([loop])

    assert is_random_model(both("RandomNormalLike"), {})
    assert not is_random_model(both("Abs"), {})


def test_functions_are_searched() -> None:
    def calling(operator: str) -> onnx.ModelProto:
        body = [helper.make_node(operator, ["a"], ["b"])]
        function = helper.make_function("local", "F", ["a"], ["b"], body, [helper.make_opsetid("", 22)])
        return model([helper.make_node("F", ["x"], ["y"], domain="local")], functions=[function])

    assert is_random_model(calling("Bernoulli"), {})
    assert not is_random_model(calling("Abs"), {})


TRUE, FALSE = Tensor.of(np.array(True)), Tensor.of(np.array(False))


@pytest.mark.parametrize(
    ("opset", "attributes", "inputs", "given", "draws"),
    [
        (1, {}, ["x"], {}, True),
        (6, {"is_test": 0}, ["x"], {}, True),
        (6, {"is_test": 1}, ["x"], {}, False),
        (7, {}, ["x"], {}, False),
        (10, {}, ["x"], {}, False),
        (12, {}, ["x"], {}, False),
        (12, {}, ["x", "r"], {}, False),
        (12, {}, ["x", "", "t"], {}, True),
        (12, {}, ["x", "", "t"], {"t": TRUE}, True),
        (12, {}, ["x", "", "t"], {"t": FALSE}, False),
        (22, {}, ["x", "r", "t"], {"t": TRUE, "r": Tensor.of(np.float32(0))}, False),
        (22, {}, ["x", "r", "t"], {"t": TRUE, "r": Tensor.of(np.float32(0.5))}, True),
        (22, {}, ["x", "r", "t"], {"r": Tensor.of(np.float32(0))}, False),
        (22, {}, ["x", "r", "t"], {"t": TRUE}, True),
    ],
)
def test_dropout(
    opset: int,
    attributes: dict[str, Any],
    inputs: list[str],
    given: dict[str, Value],
    draws: bool,
) -> None:
    node = helper.make_node("Dropout", inputs, ["y"], **attributes)
    assert is_random_model(model([node], opset), given) == draws


def test_dropout_reads_initializers() -> None:
    node = helper.make_node("Dropout", ["x", "r", "t"], ["y"])

    def stored(*, trains: bool) -> onnx.ModelProto:
        return model(
            [node],
            initializer=[
                numpy_helper.from_array(np.array(trains), "t"),
                numpy_helper.from_array(np.array([0.5], np.float32), "r"),
            ],
        )

    assert is_random_model(stored(trains=True), {})
    assert not is_random_model(stored(trains=False), {})
    assert is_random_model(stored(trains=False), {"t": TRUE})  # an input overrides its initializer
