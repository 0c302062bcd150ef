"""Opsets: the model in an older or newer form of its operators."""

from __future__ import annotations

from dataclasses import replace

from fuzzing.errors import UnwritableError
from fuzzing.graph.opset_conversion import convert_opset
from fuzzing.mutate.graphs.models.base import ModelMutant, register_mutation
from fuzzing.rng import Rng

#: The oldest opset that specifications hold for, and the newest that compilers read in 2026.
_OPSETS = (13, 26)


@register_mutation("opsets")
def mutate_opset(mutant: ModelMutant, rng: Rng) -> ModelMutant | None:
    """Converts the model up or down; None where ONNX's converter cannot."""
    graph = mutant.graph
    named = {edge: graph.names.get(edge, f"v{edge}") for edge in graph.inputs}
    try:
        made = convert_opset(graph, rng.between(*_OPSETS))
    except UnwritableError:
        return None
    if made.opset == graph.opset:
        return None
    by_name = {made.names.get(edge, f"v{edge}"): edge for edge in made.inputs}
    if set(by_name) != set(named.values()):
        return None
    values = {by_name[name]: mutant.values[edge] for edge, name in named.items()}
    return replace(mutant, graph=made, values=values)
