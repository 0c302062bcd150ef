"""Initializers and inputs: some of one become the other."""

from __future__ import annotations

from dataclasses import replace

from fuzzing.graph.ir import Constant
from fuzzing.mutate.graphs.models.base import ModelMutant, register_mutation
from fuzzing.rng import Rng


@register_mutation("initializers")
def mutate_initializers(mutant: ModelMutant, rng: Rng) -> ModelMutant | None:
    """Turns some inputs into initializers, and some initializers into inputs."""
    edges = [edge for edge in mutant.data_edges() if mutant.data(edge) is not None]
    if not edges:
        return None
    constants, values = dict(mutant.graph.constants), dict(mutant.values)
    for place in rng.subset(len(edges)):
        edge = edges[place]
        tensor = mutant.data(edge)
        assert tensor is not None
        if edge in values:
            del values[edge]
            constants[edge] = Constant(tensor.dtype, tensor.array())
        else:
            del constants[edge]
            values[edge] = tensor
    graph = replace(mutant.graph, inputs=tuple(values), constants=constants)
    return replace(mutant, graph=graph, values=values)
