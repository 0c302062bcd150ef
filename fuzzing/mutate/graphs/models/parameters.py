"""Parameters: an attribute of a node gets another value, or is left out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import onnx

from fuzzing.errors import UsageError
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.graph import operators
from fuzzing.graph.ir import Attribute, Constant, Node, Subgraph, TypeValue
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.graph.types import ANY, TensorType
from fuzzing.mutate.graphs.models.base import ModelMutant, register_mutation
from fuzzing.rng import Rng, derive_seed

#: Valid nodes of an operator and element type whose attributes are taken as examples.
_EXAMPLES = 48
#: How often an attribute that may be left out is left out.
_OMISSION = 0.1
#: Whole numbers that stand for types.
_ENUMERATIONS = ("dtype", "output_dtype", "stash_type", "to")
#: What whole numbers and floats are changed by.
_STEPS = (-2, -1, 1, 2)
_FACTORS = (-1.0, 0.25, 0.5, 1.5, 2.0, 4.0)


@register_mutation("parameters")
def mutate_parameters(mutant: ModelMutant, rng: Rng) -> ModelMutant | None:
    """Changes one attribute of one node."""
    graph = mutant.graph
    places = [place for place, node in enumerate(graph.nodes) if _schema(node, graph.opset) is not None]
    if not places:
        return None
    place = rng.choice(places)
    node = graph.nodes[place]
    schema = _schema(node, graph.opset)
    assert schema is not None
    changeable = [name for name in sorted(schema.attributes) if _changeable(node.attributes.get(name))]
    if not changeable:
        return None
    name = rng.choice(changeable)
    attributes = dict(node.attributes)
    if name in attributes and not schema.attributes[name].required and rng.chance(_OMISSION):
        del attributes[name]
    else:
        value = _draw(node, schema, name, graph.opset, rng, _first_input(mutant, node))
        if value is None or value == attributes.get(name):
            return None
        attributes[name] = value
    nodes = (*graph.nodes[:place], node._replace(attributes=attributes), *graph.nodes[place + 1 :])
    return replace(mutant, graph=replace(graph, nodes=nodes))


def _first_input(mutant: ModelMutant, node: Node) -> tuple[str, int]:
    """Element type and rank of a node's first input; a float32 vector's where it has none."""
    edge = next((edge for edge in node.inputs if edge is not None), None)
    type_ = TensorType("float32", (1,)) if edge is None else mutant.graph.types[edge]
    return type_.dtype, type_.rank


@cache
def _schema_of(op: str, domain: str, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


def _schema(node: Node, opset: int) -> onnx.defs.OpSchema | None:
    schema = _schema_of(node.op, node.domain, opset) if not node.domain else None
    return schema if schema is not None and schema.attributes else None


def _changeable(value: Attribute | None) -> bool:
    return not isinstance(value, Constant | Subgraph | TypeValue)


def _draw(
    node: Node, schema: onnx.defs.OpSchema, name: str, opset: int, rng: Rng, first: tuple[str, int]
) -> Attribute | None:
    """Another value: that of a generated node of this operator, or one near the present value or default."""
    examples = [value for value in _examples(node.op, opset, *first).get(name, ()) if _changeable(value)]
    present = node.attributes.get(name, _default(schema, name))
    if examples and (present is None or isinstance(present, str) or rng.chance(0.5)):
        return rng.choice(examples)
    if isinstance(present, str) or present is None or name in _ENUMERATIONS:
        return None
    if isinstance(present, int):
        return 1 - present if present in (0, 1) and rng.chance(0.5) else present + rng.choice(_STEPS)
    if isinstance(present, float):
        return present * rng.choice(_FACTORS) if present else rng.choice(_FACTORS)
    if isinstance(present, tuple) and present and isinstance(present[0], int):
        chosen = rng.below(len(present))
        numbers = [int(number) for number in present]
        numbers[chosen] += rng.choice(_STEPS)
        return tuple(numbers)
    return None


def _default(schema: onnx.defs.OpSchema, name: str) -> Attribute | None:
    attribute = schema.attributes[name].default_value
    if not attribute.type:
        return None
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, int | float) else None


@cache
def _examples(op: str, opset: int, dtype: str, rank: int) -> dict[str, list[Attribute]]:
    """The values that generated nodes of an operator have for an input like this, by attribute, each once."""
    if opset < operators.OLDEST or op not in operators.specifications(opset) or dtype not in ANY:
        return {}
    settings = GeneratorSettings(
        nodes=(1, 1),
        opset=opset,
        operators=(op,),
        dtypes=(dtype,),
        picking_rate=0.0,
        limits=GraphLimits(min_rank=max(rank, 0), max_rank=max(rank, 0)),
    )
    try:
        solver = Solver(settings)
    except UsageError:  # the operator takes no such element type
        return {}
    found: dict[str, list[Attribute]] = {}
    for number in range(_EXAMPLES):
        node = solver.generate(derive_seed(number, op, dtype)).graph.nodes[0]
        for name, value in node.attributes.items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return found
