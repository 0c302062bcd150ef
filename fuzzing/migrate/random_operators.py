"""ONNX models with random operators, whose outputs can only be compared by types and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fuzzing.cases import Tensor, Value

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

#: Operators of the ONNX standard that draw on every run. A `seed` attribute makes a runtime repeat
#: itself, yet the standard fixes no generator, so two runtimes still differ.
RANDOM_OPERATORS = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
_STANDARD_DOMAINS = ("", "ai.onnx")

Constants = Mapping[str, float]


def is_random_model(model: ModelProto, inputs: Mapping[str, Value]) -> bool:
    """Whether any node is random, wherever it is: in the graph, a subgraph or a function's body.

    `inputs` decide whether Dropout trains, where the model takes that as an input.
    """
    opset = next((item.version for item in model.opset_import if item.domain in _STANDARD_DOMAINS), 0)
    known = _scalars(model.graph, inputs)
    nodes = [*_walk(model.graph.node)]
    for function in model.functions:
        nodes.extend(_walk(function.node))
    return any(_is_random_node(node, opset, known) for node in nodes)


def _is_random_node(node: NodeProto, opset: int, known: Constants) -> bool:
    if node.domain not in _STANDARD_DOMAINS:
        return False
    if node.op_type in RANDOM_OPERATORS:
        return True
    return node.op_type == "Dropout" and _dropout_trains(node, opset, known)


def _dropout_trains(node: NodeProto, opset: int, known: Constants) -> bool:
    """Dropout-1 and -6 train unless `is_test`; 7 and 10 never do; 12 and later take it as an input."""
    if opset < 7:
        return not any(attribute.name == "is_test" and attribute.i for attribute in node.attribute)
    if opset < 12 or len(node.input) < 3 or not node.input[2]:
        return False
    trains = known.get(node.input[2], 1.0)  # what is not known may be true
    ratio = known.get(node.input[1], 0.5) if node.input[1] else 0.5  # the standard's default
    return bool(trains) and ratio != 0


def _scalars(graph: GraphProto, inputs: Mapping[str, Value]) -> dict[str, float]:
    from onnx import numpy_helper

    found: dict[str, float] = {}
    for initializer in graph.initializer:
        if initializer.data_type in _NUMERIC and list(initializer.dims) in ([], [1]):
            found[initializer.name] = float(numpy_helper.to_array(initializer).item())
    for name, value in inputs.items():  # a given input overrides the initializer of its name
        if isinstance(value, Tensor) and value.shape in ((), (1,)) and value.array().dtype.kind in "bf":
            found[name] = float(value.array().item())
    return found


_NUMERIC = frozenset({1, 9, 10, 11})  # TensorProto.FLOAT, BOOL, FLOAT16, DOUBLE


def _walk(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in _graphs(attribute):
                yield from _walk(graph.node)


def _graphs(attribute: AttributeProto) -> Iterator[GraphProto]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs
