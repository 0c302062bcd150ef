"""ONNX models as calls of `onnx.helper`, the form in which compilers' own tests are written.

The calls are executed before they are returned, and what they build is compared with the model, as in
`fuzzing.triage.onnx_text`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fuzzing.triage.onnx_text import InexpressibleError, plain_model, same_model
from fuzzing.triage.tensor_text import numpy_expression

if TYPE_CHECKING:
    from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto


def onnx_outline(model: bytes) -> dict[str, Any]:
    """The parts of a model as Python expressions; {} where no short calls build it.

    nodes         calls of `helper.make_node`
    inputs        {"name", "dtype", "shape", "info"}: numpy's type, sizes and names, `make_tensor_value_info`
    outputs       the same
    initializers  {"name", "array", "tensor"}: a numpy expression, a call of `numpy_helper.from_array`
    operators     {"name", "domain", "inputs", "outputs", "attributes"} of each node, attributes as literals
    opsets        domain → version
    ir_version    of the model's format

    The expressions use `np` and, from onnx, `helper`, `numpy_helper` and `TensorProto`.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        proto = plain_model(onnx.load_model_from_string(model))
        _name_constants(proto)
        outline = _outline(proto)
    except (DecodeError, InexpressibleError, ValueError, TypeError):
        return {}
    return outline if _builds(outline, proto) else {}


def _name_constants(proto: ModelProto) -> None:
    """Names initializers as ONNX names the input that each is: `axis`, `shape`, `starts`.

    Those of several operators, and of models with subgraphs, which may use them too, keep their names.
    """
    from onnx import defs

    graph, opsets = proto.graph, {one.domain: one.version for one in proto.opset_import}
    if any(one.HasField("g") or one.graphs for node in graph.node for one in node.attribute):
        return
    uses = [(node, at) for node in graph.node for at in range(len(node.input))]
    taken = {one.name for one in (*graph.input, *graph.output)} | {
        name for node in graph.node for name in (*node.input, *node.output)
    }
    for constant in graph.initializer:
        places = [(node, at) for node, at in uses if node.input[at] == constant.name]
        if len(places) != 1:
            continue
        ((node, at),) = places
        try:
            formal = defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain).inputs
        except defs.SchemaError:
            continue
        last = len(formal) - 1
        if at > last or (at == last and formal[at].option == defs.OpSchema.FormalParameterOption.Variadic):
            continue
        if (name := formal[at].name.lower()) not in taken:
            taken.add(name)
            node.input[at] = constant.name = name


def _outline(proto: ModelProto) -> dict[str, Any]:
    return {
        "nodes": [_node(node) for node in proto.graph.node],
        "inputs": [_value(value) for value in proto.graph.input],
        "outputs": [_value(value) for value in proto.graph.output],
        "initializers": [
            {"name": one.name, "array": _array(one), "tensor": _tensor(one, one.name)}
            for one in proto.graph.initializer
        ],
        "operators": [_operator(node) for node in proto.graph.node],
        "opsets": {one.domain: one.version for one in proto.opset_import},
        "ir_version": proto.ir_version,
    }


def _node(node: NodeProto) -> str:
    if node.overload:
        raise InexpressibleError
    parts = [_literal(node.op_type), _literal(list(node.input)), _literal(list(node.output))]
    parts += [f"domain={_literal(node.domain)}"] if node.domain else []
    parts += [f"{one.name}={_attribute(one)}" for one in node.attribute]
    return f"helper.make_node({', '.join(parts)})"


def _operator(node: NodeProto) -> dict[str, Any]:
    return {
        "name": node.op_type,
        "domain": node.domain,
        "inputs": list(node.input),
        "outputs": list(node.output),
        "attributes": {one.name: _attribute(one) for one in node.attribute},
    }


def _attribute(one: AttributeProto) -> str:
    from onnx import AttributeProto

    if one.ref_attr_name or not one.name.isidentifier():
        raise InexpressibleError
    kind = AttributeProto.AttributeType.Name(one.type)
    if kind == "TENSOR":
        return _tensor(one.t, "")
    if kind in ("INTS", "FLOATS", "STRINGS"):
        items = {"INTS": one.ints, "FLOATS": one.floats, "STRINGS": one.strings}[kind]
        return f"[{', '.join(map(_scalar, items))}]"
    if kind in ("INT", "FLOAT", "STRING"):
        return _scalar({"INT": one.i, "FLOAT": one.f, "STRING": one.s}[kind])
    raise InexpressibleError


def _scalar(value: object) -> str:
    if isinstance(value, bytes):
        return _literal(value.decode())
    if isinstance(value, float):
        if not np.isfinite(value):
            return f'float("{value}")'
        return repr(float(str(np.float32(value))))
    return str(value)


def _literal(value: object) -> str:
    """The literal with double quotes, as the formatters of compilers' repositories write it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    text = str(value)
    if not text.isprintable():
        raise InexpressibleError
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _tensor(tensor: TensorProto, name: str) -> str:
    named = f", {_literal(name)}" if name else ""
    return f"numpy_helper.from_array({_array(tensor)}{named})"


def _array(tensor: TensorProto) -> str:
    import onnx

    expression = numpy_expression(onnx.numpy_helper.to_array(tensor))
    if not expression:
        raise InexpressibleError
    return expression


def _value(value: ValueInfoProto) -> dict[str, Any]:
    from onnx import TensorProto, helper

    if value.type.WhichOneof("value") != "tensor_type":
        raise InexpressibleError
    tensor = value.type.tensor_type
    shape: list[int | str | None] | None = None
    if tensor.HasField("shape"):
        shape = [
            getattr(one, kind) if (kind := one.WhichOneof("value")) else None for one in tensor.shape.dim
        ]
    kind_name = f"TensorProto.{TensorProto.DataType.Name(tensor.elem_type)}"
    sizes = "None" if shape is None else _sizes(shape)
    return {
        "name": value.name,
        "dtype": str(helper.tensor_dtype_to_np_dtype(tensor.elem_type)),
        "shape": shape,
        "info": f"helper.make_tensor_value_info({_literal(value.name)}, {kind_name}, {sizes})",
    }


def _sizes(shape: list[int | str | None]) -> str:
    return f"[{', '.join(_literal(one) if isinstance(one, str) else str(one) for one in shape)}]"


def _builds(outline: dict[str, Any], wanted: ModelProto) -> bool:
    """Whether the calls, which are ours, build `wanted`."""
    import onnx
    from onnx import helper

    space = {"np": np, "helper": helper, "numpy_helper": onnx.numpy_helper, "TensorProto": onnx.TensorProto}

    def built(expressions: list[str]) -> list[Any]:
        return [eval(one, dict(space)) for one in expressions]  # noqa: S307

    try:
        graph = helper.make_graph(
            built(outline["nodes"]),
            "g",
            built([one["info"] for one in outline["inputs"]]),
            built([one["info"] for one in outline["outputs"]]),
            built([one["tensor"] for one in outline["initializers"]]),
        )
        opsets = [helper.make_opsetid(*one) for one in outline["opsets"].items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=outline["ir_version"])
    except (SyntaxError, ValueError, TypeError, AttributeError):
        return False
    return same_model(model, wanted)
