"""Each node of an ONNX model as a model of its own: OPERA's template for the ONNX front end.

The node keeps its attributes, subgraphs included; its inputs get the types and shapes that the model states
or shape inference finds; constants stay constants, as compilers require. Names are positional, so equal nodes
are one model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fuzzing.cases import Input, OnnxModel
from fuzzing.migrate import onnx_input_values
from fuzzing.migrate.onnx_input_values import CannotDrawError, static_shape

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

#: Types that OPERA leaves out of its ONNX tests (its released recorder).
SKIPPED_TYPES = frozenset(
    {"Adagrad", "Adam", "ArrayFeatureExtractor", "Binarizer", "LinearRegressor", "Momentum"}
)
MAX_CONSTANT_BYTES = 1 << 16  # of one that stays in the model; a larger one becomes an input
_STANDARD = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training")


_CAPTURED = 1 << 16  # the place of an input that only a subgraph reads


class UnsupportedModelError(Exception):
    """A node or a model becomes no case; the text is the skip's reason, `detail` its particulars."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail


@dataclass(frozen=True)
class SingleNodeModel:
    """A model of one node, and inputs for it."""

    operator: str
    program: OnnxModel
    inputs: tuple[tuple[str, Input], ...]
    model: ModelProto = field(compare=False)


@dataclass(frozen=True)
class Scope:
    """Types and constants by name at a node."""

    types: Mapping[str, ValueInfoProto]
    constants: Mapping[str, TensorProto]


def infer_shapes(model: ModelProto) -> ModelProto:
    """The model with inferred types and shapes, unchanged where inference fails."""
    import onnx

    from fuzzing.graph.onnx_reader import refuse_crashing

    try:
        refuse_crashing(model.graph)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # noqa: BLE001 - onnx's own, in C++: tests make models that are wrong on purpose
        return model


def make_valid(model: ModelProto, known: ModelProto) -> ModelProto:
    """The model, or, where it states too little to be valid, the inferred one: `known`.

    Without producer fields, so that equal models are one. Raises UnsupportedModelError if neither is valid
    ONNX.
    """
    import onnx

    kept = onnx.ModelProto()
    kept.CopyFrom(model)
    try:
        onnx.checker.check_model(kept)
    except onnx.checker.ValidationError:
        kept.CopyFrom(known)
        kept.graph.ClearField("value_info")
        try:
            onnx.checker.check_model(kept)
        except onnx.checker.ValidationError as error:
            raise UnsupportedModelError("the model is not valid ONNX", str(error)[:300]) from None
    for name in ("doc_string", "domain", "metadata_props", "model_version"):
        kept.ClearField(name)
    kept.ClearField("producer_name")
    kept.ClearField("producer_version")
    kept.graph.ClearField("doc_string")
    kept.graph.name = "graph"
    return kept


def walk_nodes(model: ModelProto) -> Iterator[tuple[NodeProto, Scope]]:
    """Each node of an inferred model with its scope; those of subgraphs after their own."""
    yield from _walk(model.graph, Scope({}, {}))


def _walk(graph: GraphProto, outer: Scope) -> Iterator[tuple[NodeProto, Scope]]:
    scope = _scope(graph, outer)
    for node in graph.node:
        if node.op_type != "Constant":
            yield node, scope
        for body in _subgraphs(node.attribute):
            yield from _walk(body, scope)


def _scope(graph: GraphProto, outer: Scope) -> Scope:
    types = {item.name: item for item in (*graph.input, *graph.output, *graph.value_info)}
    constants = {item.name: item for item in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            constants.update(_constant(node))
    inner = {*types, *constants, *(name for node in graph.node for name in node.output)}
    return Scope(
        {**{name: item for name, item in outer.types.items() if name not in inner}, **types},
        {**{name: item for name, item in outer.constants.items() if name not in inner}, **constants},
    )


def _constant(node: NodeProto) -> Iterator[tuple[str, TensorProto]]:
    from onnx import TensorProto, helper

    for attribute in node.attribute:
        if attribute.name == "value":
            yield node.output[0], attribute.t
        elif attribute.name in ("value_int", "value_ints"):
            whole = list(attribute.ints) if attribute.name == "value_ints" else [attribute.i]
            dims = [len(whole)] if attribute.name == "value_ints" else []
            yield node.output[0], helper.make_tensor("", TensorProto.INT64, dims, whole)
        elif attribute.name in ("value_float", "value_floats"):
            floats = list(attribute.floats) if attribute.name == "value_floats" else [attribute.f]
            dims = [len(floats)] if attribute.name == "value_floats" else []
            yield node.output[0], helper.make_tensor("", TensorProto.FLOAT, dims, floats)


def _subgraphs(attributes: Iterable[AttributeProto]) -> Iterator[GraphProto]:
    for attribute in attributes:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def extract_node(node: NodeProto, scope: Scope, model: ModelProto) -> SingleNodeModel:
    """The model of one node of `model`. Raises UnsupportedModelError."""
    import onnx
    from onnx import helper

    _check_kind(node, model)
    names = _names(node)
    graph = onnx.GraphProto(name=node.op_type)
    graph.node.append(_rename_edges(node, names))
    shapes = [_shape_of(name, scope) for name in node.input]
    values: list[tuple[str, Input]] = []
    for name, place in {**dict.fromkeys(_captured_names(node), _CAPTURED), **_places(node)}.items():
        if name not in node.input and name not in scope.types and name not in scope.constants:
            raise UnsupportedModelError("a subgraph takes what is not known outside", name)
        constant = scope.constants.get(name)
        if constant is not None and constant.ByteSize() <= MAX_CONSTANT_BYTES:
            graph.initializer.append(_rename_tensor(constant, names[name]))
            continue
        declared = _declare_input(name, names[name], scope)
        graph.input.append(declared)
        values.append((names[name], _value(node, place, declared, shapes)))
    for output in node.output:
        if output:
            graph.output.append(onnx.ValueInfoProto(name=names[output]))
    made = helper.make_model(graph, opset_imports=_opsets(node, model), ir_version=model.ir_version)
    made = _infer_and_check(made)
    return SingleNodeModel(
        node.op_type, OnnxModel(made.SerializeToString(deterministic=True)), tuple(values), made
    )


def _check_kind(node: NodeProto, model: ModelProto) -> None:
    import onnx

    if node.op_type in SKIPPED_TYPES:
        raise UnsupportedModelError("OPERA leaves this operator out")
    local = any((item.domain, item.name) == (node.domain, node.op_type) for item in model.functions)
    if local or node.domain not in _STANDARD or not onnx.defs.has(node.op_type, domain=_domain(node.domain)):
        raise UnsupportedModelError(
            "the operator is not one of the standard's", f"{node.domain}.{node.op_type}"
        )


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _places(node: NodeProto) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, name in enumerate(node.input):
        if name:
            found.setdefault(name, place)
    return found


def _names(node: NodeProto) -> dict[str, str]:
    """The names in the node's own model.

    With subgraphs nothing is renamed, because they refer to outer names.
    """
    read = [*_places(node), *_captured_names(node)]
    given = [name for name in node.output if name]
    if any(True for _ in _subgraphs(node.attribute)):
        return {name: name for name in (*read, *given)}
    names = {name: f"x{place}" for place, name in enumerate(read)}
    return {**names, **{name: f"y{place}" for place, name in enumerate(given)}}


def _captured_names(node: NodeProto) -> list[str]:
    found: dict[str, None] = {}
    for body in _subgraphs(node.attribute):
        own = {item.name for item in (*body.input, *body.initializer)}
        for inner in body.node:
            for name in (*inner.input, *_captured_names(inner)):
                if name and name not in own:
                    found[name] = None
            own.update(inner.output)
        found.update((item.name, None) for item in body.output if item.name not in own)
    return list(found)


def _rename_edges(node: NodeProto, names: Mapping[str, str]) -> NodeProto:
    import onnx

    made = onnx.NodeProto()
    made.CopyFrom(node)
    for cleared in ("name", "doc_string", "metadata_props"):
        made.ClearField(cleared)
    made.domain = _domain(node.domain)
    made.input[:] = [names.get(name, "") for name in node.input]
    made.output[:] = [names.get(name, "") for name in node.output]
    attributes = sorted(made.attribute, key=lambda attribute: attribute.name)
    made.ClearField("attribute")
    made.attribute.extend(attributes)
    for attribute in made.attribute:
        attribute.ClearField("doc_string")
    return made


def _rename_tensor(tensor: TensorProto, name: str) -> TensorProto:
    import onnx

    made = onnx.TensorProto()
    made.CopyFrom(tensor)
    made.name = name
    made.ClearField("doc_string")
    return made


def _shape_of(name: str, scope: Scope) -> tuple[int, ...] | None:
    if name in scope.constants:
        return tuple(scope.constants[name].dims)
    item = scope.types.get(name)
    return None if item is None else static_shape(item)


def _declare_input(name: str, new: str, scope: Scope) -> ValueInfoProto:
    from onnx import TensorProto, helper

    if name in scope.constants:
        constant = scope.constants[name]
        return helper.make_tensor_value_info(new, constant.data_type, list(constant.dims))
    item = scope.types.get(name)
    if item is None or not item.type.WhichOneof("value"):
        raise UnsupportedModelError("the type of an input is not known", name)
    if not item.type.HasField("tensor_type"):
        raise UnsupportedModelError("an input is no tensor", str(item.type.WhichOneof("value")))
    if item.type.tensor_type.elem_type == TensorProto.UNDEFINED:
        raise UnsupportedModelError("the type of an input is not known", name)
    shape = static_shape(item)
    if shape is None:
        raise UnsupportedModelError("the rank of an input is not known", name)
    return helper.make_tensor_value_info(new, item.type.tensor_type.elem_type, shape)


def _value(
    node: NodeProto, place: int, declared: ValueInfoProto, shapes: Sequence[tuple[int, ...] | None]
) -> Input:
    shape = static_shape(declared)
    assert shape is not None  # `_declare_input` has given it one
    try:
        return onnx_input_values.draw_input(node, place, element_type(declared), shape, shapes)
    except CannotDrawError as error:
        raise UnsupportedModelError(str(error)) from None


def element_type(item: ValueInfoProto) -> str:
    """The element type of a tensor as cases name it."""
    from onnx import helper

    name = helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type).name
    return "string" if name == "object" else str(name)


def _opsets(node: NodeProto, model: ModelProto) -> Sequence[object]:
    """The model's version of the node's own domain, and of the standard's where subgraphs need it."""
    import onnx

    wanted = {_domain(node.domain)} | ({""} if any(True for _ in _subgraphs(node.attribute)) else set())
    versions = {_domain(item.domain): item.version for item in model.opset_import}
    latest = onnx.defs.onnx_opset_version()
    return [onnx.helper.make_opsetid(name, versions.get(name, latest)) for name in sorted(wanted)]


def _infer_and_check(model: ModelProto) -> ModelProto:
    import onnx

    try:
        made = onnx.shape_inference.infer_shapes(model)
        if any(not item.type.WhichOneof("value") for item in made.graph.output):
            raise UnsupportedModelError("the type of an output is not known")
        onnx.checker.check_model(made)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise UnsupportedModelError("the node alone is not valid ONNX", str(error)[:300]) from None
    made.graph.ClearField("value_info")
    return made
