"""ONNX models as Python code: `onnx.parser` text, and the large constants as numpy expressions.

The code is executed before it is returned, and compared with the model: what it builds differs from the
model in documentation, producer, node names and intermediate types at most, and in the names of values
that are neither inputs nor outputs.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzzing.triage.tensor_text import bytes_expression, numpy_expression

if TYPE_CHECKING:
    from onnx import (
        AttributeProto,
        FunctionProto,
        GraphProto,
        ModelProto,
        NodeProto,
        TensorProto,
        TypeProto,
    )

#: Initializers of more elements are written as numpy expressions behind the text.
MAX_TEXT_ELEMENTS = 8
#: Characters of the code; longer models are shown in another form.
MAX_CODE = 6_000
_WRAP = 100
_INDENT = "  "
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def onnx_code(model: bytes, variable: str = "model") -> str:
    """Python statements that define an onnx.ModelProto; "" where text cannot express it exactly.

    They use `np`, `base64` and `onnx`, with its modules `parser` and `numpy_helper` imported.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        proto = plain_model(onnx.load_model_from_string(model), functions=True)
        code = _code(proto, variable)
    except (DecodeError, InexpressibleError, ValueError, TypeError):
        return ""
    return code if len(code) <= MAX_CODE and _builds(code, proto, variable) else ""


class InexpressibleError(Exception):
    """The model has a part for which there is no text."""


def plain_model(proto: ModelProto, *, functions: bool = False) -> ModelProto:
    """The model without what does not change its meaning, intermediate values called v0, v1, …

    functions  whether the model may have functions; their values keep their names
    """
    for field in ("producer_name", "producer_version", "model_version", "doc_string", "domain"):
        proto.ClearField(field)
    del proto.metadata_props[:]
    if (proto.functions and not functions) or proto.training_info or proto.graph.sparse_initializer:
        raise InexpressibleError
    for function in proto.functions:
        for field in ("doc_string", "value_info", "metadata_props"):
            function.ClearField(field)
        _clear_notes(function.node)
    kept = {item.name for item in (*proto.graph.input, *proto.graph.output)} | {""}
    names = {name: name for name in kept}
    fresh = (name for name in map("v{}".format, range(1 << 30)) if name not in kept)
    for graph in _graphs(proto.graph):
        graph.name = "g"
        graph.ClearField("doc_string")
        for repeated in (graph.value_info, graph.metadata_props, graph.quantization_annotation):
            del repeated[:]
        _clear_notes(graph.node)
        for node in graph.node:
            for names_of in (node.input, node.output):
                names_of[:] = [names.setdefault(name, "") or _name(names, name, fresh) for name in names_of]
        for item in (*graph.input, *graph.output, *graph.initializer):
            item.ClearField("doc_string")
            item.name = names.setdefault(item.name, "") or _name(names, item.name, fresh)
    return proto


def _clear_notes(nodes: Iterable[NodeProto]) -> None:
    for node in nodes:
        for field in ("name", "doc_string"):
            node.ClearField(field)
        del node.metadata_props[:]
        for attribute in node.attribute:
            attribute.ClearField("doc_string")
            attribute.t.ClearField("name") if attribute.HasField("t") else None
        _sort_attributes(node)


def _name(names: dict[str, str], name: str, fresh: Iterator[str]) -> str:
    if name:
        names[name] = next(fresh)
    return names[name]


def _sort_attributes(node: NodeProto) -> None:
    ordered = sorted(node.attribute, key=lambda attribute: attribute.name)
    del node.attribute[:]
    node.attribute.extend(ordered)


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _graphs(inner)


def _code(proto: ModelProto, variable: str) -> str:
    large = [tensor for tensor in proto.graph.initializer if _is_large(tensor)]
    rest = type(proto.graph)()
    rest.CopyFrom(proto.graph)
    del rest.initializer[:]
    rest.initializer.extend(tensor for tensor in proto.graph.initializer if not _is_large(tensor))
    head = f"<ir_version: {proto.ir_version}, opset_import: {_opsets(proto)}>"
    text = "\n".join([head, _graph(rest, ""), *map(_function, proto.functions)])
    quotes = '"""' if '"""' not in text else "'''"
    lines = [f"{variable} = onnx.parser.parse_model({'r' * (chr(92) in text)}{quotes}\n{text}\n{quotes})"]
    added = f"{variable}.graph.initializer.append"
    lines += [f"{added}(onnx.numpy_helper.from_array({_array(tensor)}, {tensor.name!r}))" for tensor in large]
    return "\n".join(lines)


def _opsets(holder: ModelProto | FunctionProto) -> str:
    return f"[{', '.join(f'{_string(one.domain.encode())} : {one.version}' for one in holder.opset_import)}]"


def _function(function: FunctionProto) -> str:
    if function.attribute_proto or function.overload:
        raise InexpressibleError
    attributes = f"<{', '.join(function.attribute)}> " if function.attribute else ""
    inputs, outputs = (", ".join(map(_quoted, names)) for names in (function.input, function.output))
    head = f"<domain: {_string(function.domain.encode())}, opset_import: {_opsets(function)}>"
    signature = f"{function.name} {attributes}({inputs}) => ({outputs}) {{"
    return "\n".join([head, signature, *(_node(node, _INDENT) for node in function.node), "}"])


def _is_large(tensor: TensorProto) -> bool:
    """Whether a numpy expression is shorter: many elements, or a type without literals in the text."""
    from onnx import TensorProto

    plain = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT64)
    small = (*plain, TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL, TensorProto.STRING)
    return math.prod(tensor.dims) > MAX_TEXT_ELEMENTS or tensor.data_type not in small


def _array(tensor: TensorProto) -> str:
    import onnx

    array = onnx.numpy_helper.to_array(tensor)
    expression = numpy_expression(array) or bytes_expression(array)
    if not expression:
        raise InexpressibleError
    return expression


def _graph(graph: GraphProto, indent: str) -> str:
    inputs, outputs = (", ".join(map(_value, values)) for values in (graph.input, graph.output))
    constants = ", ".join(
        f"{_type_name(one)} {_quoted(one.name)} = {_data(one)}" for one in graph.initializer
    )
    head = f"g ({inputs}) => ({outputs})" + (f"\n{indent}<{constants}>" if constants else "") + " {"
    return "\n".join([head, *(_node(node, indent + _INDENT) for node in graph.node), indent + "}"])


def _value(value: Any) -> str:
    return f"{_type(value.type)} {_quoted(value.name)}".strip()


def _type(given: TypeProto) -> str:
    from onnx import TensorProto

    kind = given.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return f"{kind[:3]}({_type(getattr(given, kind).elem_type)})".replace("opt(", "optional(")
    if kind is None:
        return ""
    if kind != "tensor_type":
        raise InexpressibleError
    name = TensorProto.DataType.Name(given.tensor_type.elem_type).lower()
    if not given.tensor_type.HasField("shape"):
        return f"{name}[]"
    dims = [_dimension(one) for one in given.tensor_type.shape.dim]
    return f"{name}[{','.join(dims)}]" if dims else name


def _dimension(one: Any) -> str:
    kind = one.WhichOneof("value")
    return str(one.dim_value) if kind == "dim_value" else one.dim_param if kind == "dim_param" else "?"


def _type_name(tensor: TensorProto) -> str:
    from onnx import TensorProto

    name = TensorProto.DataType.Name(tensor.data_type).lower()
    return f"{name}[{','.join(map(str, tensor.dims))}]" if tensor.dims else name


def _data(tensor: TensorProto) -> str:
    """The elements between braces."""
    import onnx

    array = onnx.numpy_helper.to_array(tensor)
    if array.dtype == object:
        return "{" + ", ".join(_string(item.encode()) for item in array.ravel()) + "}"
    if array.dtype.kind not in "fiub" or array.dtype == np.float16:
        if array.size > MAX_TEXT_ELEMENTS or array.dtype != np.float16:
            raise InexpressibleError
        return "{" + ", ".join(map(str, array.ravel().view(np.uint16).tolist())) + "}"
    return "{" + ", ".join(_number(item) for item in array.ravel()) + "}"


def _number(item: Any) -> str:
    """The shortest decimal that gives the same element."""
    if isinstance(item, np.bool_):
        return str(int(item))
    if not isinstance(item, np.floating):
        return str(item)
    return np.format_float_scientific(item, trim="-") if _is_extreme(float(item)) else str(item)


def _is_extreme(number: float) -> bool:
    return bool(number) and math.isfinite(number) and not 1e-4 <= abs(number) < 1e16


def _node(node: NodeProto, indent: str) -> str:
    outputs, inputs = (", ".join(map(_quoted, names)) for names in (node.output, node.input))
    attributes = ", ".join(_attribute(one, indent) for one in node.attribute)
    operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    if node.overload:
        raise InexpressibleError
    return f"{indent}{outputs} = {operator}{f'<{attributes}>' if attributes else ''}({inputs})"


def _quoted(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else _string(name.encode())


def _attribute(one: AttributeProto, indent: str) -> str:
    from onnx import AttributeProto

    kind = AttributeProto.AttributeType.Name(one.type)
    if one.ref_attr_name:
        return f"{one.name}: {kind.lower()} = @{one.ref_attr_name}"
    if kind == "GRAPH":
        return f"{one.name}: graph = {_graph(one.g, indent)}"
    if kind == "TENSOR":
        return f"{one.name} = {_type_name(one.t)} {_data(one.t)}"
    if kind == "TYPE_PROTO":
        return f"{one.name}: type_proto = {_type(one.tp)}"
    if kind in ("INTS", "FLOATS", "STRINGS"):
        items = {"INTS": one.ints, "FLOATS": one.floats, "STRINGS": one.strings}[kind]
        return f"{one.name}{'' if items else ': ' + kind.lower()} = [{', '.join(map(_scalar, items))}]"
    if kind in ("INT", "FLOAT", "STRING"):
        return f"{one.name} = {_scalar({'INT': one.i, 'FLOAT': one.f, 'STRING': one.s}[kind])}"
    raise InexpressibleError


def _scalar(value: object) -> str:
    if isinstance(value, bytes):
        return _string(value)
    return _number(np.float32(value)) if isinstance(value, float) else str(value)


def _string(data: bytes) -> str:
    text = data.decode()  # UnicodeDecodeError is a ValueError: no text holds it
    if not text.isprintable():
        raise InexpressibleError
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _builds(code: str, wanted: ModelProto, variable: str) -> bool:
    """Whether the code, which is ours, defines `wanted`."""
    import onnx

    space: dict[str, Any] = {"np": np, "onnx": onnx, "base64": base64}
    try:
        exec(code, space)  # noqa: S102
    except (onnx.parser.ParseError, SyntaxError, ValueError, TypeError, AttributeError):
        return False
    return same_model(space[variable], wanted)


def same_model(built: ModelProto, wanted: ModelProto) -> bool:
    """Whether two models are equal but for how tensors and defaults are stored; changes both."""
    pair: Sequence[ModelProto] = (built, wanted)
    for model in pair:
        for holder in (model, *model.functions):
            for opset in holder.opset_import:
                opset.domain = opset.domain  # set, though it may be the default
        for graph in _graphs(model.graph):
            graph.name = "g"
            _pack(graph.initializer)
            _order(graph.node)
        for function in model.functions:
            _order(function.node)
        ordered = sorted(model.graph.initializer, key=lambda tensor: tensor.name)
        del model.graph.initializer[:]
        model.graph.initializer.extend(ordered)
    first, second = (model.SerializeToString(deterministic=True) for model in pair)
    return bool(first == second)


def _order(nodes: Iterable[NodeProto]) -> None:
    for node in nodes:
        node.domain = node.domain
        _sort_attributes(node)
        _pack([attribute.t for attribute in node.attribute if attribute.HasField("t")])


def _pack(tensors: Any) -> None:
    """Tensors that hold equal elements made equal: protobuf has several fields for them."""
    import onnx

    for tensor in tensors:
        if tensor.data_type != onnx.TensorProto.STRING:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), tensor.name))
