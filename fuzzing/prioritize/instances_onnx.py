"""The operator instance of an ONNX model: its first node that is not a Constant, under its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from fuzzing.cases.values import CARRIERS
from fuzzing.prioritize.call_binding import JSON, OUTPUT, BoundCall

#: The additional parameter of a model of several nodes: the distinct types of its nodes, in order.
BODY = "body"
_LONG = 64  # elements; longer attributes are cut


def extract_onnx_instance(model: bytes, given: Mapping[str, JSON], named: str) -> tuple[str, BoundCall]:
    """The operator of a model, `named` if that is known, and its parameters: inputs, attributes, outputs.

    Bytes that are not a model give no parameters; loading them reports the error.

    given  the case's values of the graph's inputs. For a tensor inside the graph only the model's declaration
           is known; an attribute that is a tensor counts by dtype and shape, a graph by the types of its
           nodes
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        loaded = onnx.load_from_string(model)
    except DecodeError:
        return named, BoundCall((), ())
    nodes = [node for node in loaded.graph.node if node.op_type != "Constant"] or list(loaded.graph.node)
    if not nodes:
        return named, BoundCall((), ())
    tensors = _declared(loaded.graph) | dict(given)
    if len(nodes) > 1 or (named and named != nodes[0].op_type):
        return named or nodes[0].op_type, _bind_network(loaded, nodes, tensors)
    node = nodes[0]
    version = next((one.version for one in loaded.opset_import if one.domain == node.domain), 1)
    parameters, explicit = _node(node, _schema(node.op_type, version, node.domain), tensors)
    return node.op_type, BoundCall(tuple(parameters.items()), tuple(explicit))


def _bind_network(model: Any, nodes: list[Any], tensors: Mapping[str, JSON]) -> BoundCall:
    """A function's expansion, or a small network: the graph's inputs are used as the operator's."""
    kinds = " ".join(dict.fromkeys(node.op_type for node in nodes))
    inputs = {item.name: tensors.get(item.name) for item in model.graph.input}
    outputs = {OUTPUT + item.name: tensors.get(item.name) for item in model.graph.output}
    parameters = inputs | {BODY: kinds} | outputs
    return BoundCall(tuple(parameters.items()), tuple(parameters))


def _node(node: Any, schema: Any, tensors: Mapping[str, JSON]) -> tuple[dict[str, JSON], list[str]]:
    parameters: dict[str, JSON] = {}
    explicit = []
    formal = [] if schema is None else list(schema.inputs)
    for name, value in _pair_formals(formal, list(node.input), tensors):
        parameters[name] = value
        if value is not None:
            explicit.append(name)
    given = {attribute.name: attribute_to_json(attribute) for attribute in node.attribute}
    defaults = {} if schema is None else _defaults(schema)
    for name, value in (defaults | given).items():
        parameters[name] = value
        if name in given:
            explicit.append(name)
    formal = [] if schema is None else list(schema.outputs)
    for name, value in _pair_formals(formal, list(node.output), tensors):
        parameters[OUTPUT + name] = value
    return parameters, explicit


def _pair_formals(
    formal: list[Any], actual: list[str], tensors: Mapping[str, JSON]
) -> Iterator[tuple[str, JSON]]:
    """Formal names with their arguments; a variadic one takes a list of all the rest."""
    for place, one in enumerate(formal):
        if str(one.option).endswith("Variadic"):
            yield one.name, [_tensor_type(tensors, name) for name in actual[place:]]
            return
        yield one.name, _tensor_type(tensors, actual[place]) if place < len(actual) else None
    for place in range(len(formal), len(actual)):
        yield str(place), _tensor_type(tensors, actual[place])


def _tensor_type(tensors: Mapping[str, JSON], name: str) -> JSON:
    if not name:
        return None  # omitted optional input
    return tensors.get(name, {"tensor": ["", []]})


@cache
def _schema(op_type: str, version: int, domain: str) -> Any:
    import onnx

    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:  # an operator outside ONNX
        return None


def _defaults(schema: Any) -> dict[str, JSON]:
    """Each attribute's default; None if it has none."""
    import onnx

    return {
        name: attribute_to_json(one.default_value)
        if one.default_value.type != onnx.AttributeProto.UNDEFINED
        else None
        for name, one in schema.attributes.items()
    }


def attribute_to_json(attribute: Any) -> JSON:
    """The value of an AttributeProto: a tensor as its dtype and shape, a graph as the types of its nodes."""
    import onnx

    kind, kinds = attribute.type, onnx.AttributeProto
    if kind == kinds.TENSOR:
        return _tensor_proto(attribute.t)
    if kind == kinds.GRAPH:
        return " ".join(dict.fromkeys(node.op_type for node in attribute.g.node))
    value = onnx.helper.get_attribute_value(attribute)
    if kind in (kinds.INT, kinds.FLOAT):
        return value
    if kind == kinds.STRING:
        return value.decode("utf-8", "replace")
    if kind in (kinds.INTS, kinds.FLOATS):
        return list(value)[:_LONG]
    if kind == kinds.STRINGS:
        return [item.decode("utf-8", "replace") for item in value][:_LONG]
    return kinds.AttributeType.Name(kind)


def _declared(graph: Any) -> dict[str, JSON]:
    """The graph's declared tensors, initializers and constants."""
    infos = (*graph.value_info, *graph.output, *graph.input)
    found = {info.name: _type(info.type) for info in infos}
    found |= {tensor.name: _tensor_proto(tensor) for tensor in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                found[node.output[0]] = _tensor_proto(attribute.t)
    return found


def _type(declared: Any) -> JSON:
    """A declared type; -1 for a dimension without a number, a list for a sequence."""
    if declared.HasField("optional_type"):
        return _type(declared.optional_type.elem_type)
    if declared.HasField("sequence_type"):
        return [_type(declared.sequence_type.elem_type)]
    tensor_type = declared.tensor_type
    shape = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor_type.shape.dim]
    return {"tensor": [_dtype(tensor_type.elem_type), shape]}


def _tensor_proto(tensor: Any) -> JSON:
    return {"tensor": [_dtype(tensor.data_type), list(tensor.dims)]}


#: ONNX's names in lower case and without underscores → those in cases.
_DTYPES = {name.replace("_", ""): name for name in CARRIERS} | {"float": "float32", "double": "float64"}


@cache
def _dtype(number: int) -> str:
    """An element type by its name in cases; "" for none."""
    import onnx

    name = onnx.TensorProto.DataType.Name(number).lower()
    return "" if name == "undefined" else _DTYPES.get(name, name)
