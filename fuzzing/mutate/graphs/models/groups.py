"""Groups: a convolution gets several times its groups, with as many times the channels and filters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fuzzing.cases import Tensor
from fuzzing.graph.ir import Node
from fuzzing.mutate.graphs.models.base import ModelMutant, register_mutation
from fuzzing.rng import Rng

#: Convolutions whose first axis of filters and bias is that of the groups.
_CONVOLUTIONS = ("Conv", "ConvTranspose")
_FLOATS = ("float16", "float32", "float64")
_MOST = 4


@register_mutation("groups")
def mutate_groups(mutant: ModelMutant, rng: Rng) -> ModelMutant | None:
    """Repeats channels and filters of a convolution of which all inputs are data.

    Each copy is half of the one before, so that groups give different results. The attribute alone could not
    change: filters must have as many channels as a group.
    """
    nodes = mutant.graph.nodes
    places = [place for place, node in enumerate(nodes) if _is_convolution_of_data(mutant, node)]
    if not places:
        return None
    place, factor = rng.choice(places), rng.between(2, _MOST)
    node = nodes[place]
    x, *filters = [edge for edge in node.inputs if edge is not None]
    changed = {edge: _repeat(mutant, edge, 0, factor) for edge in filters}
    changed[x] = _repeat(mutant, x, 1, factor)
    groups = node.attributes.get("group", 1)
    assert isinstance(groups, int)
    grouped = node._replace(attributes={**node.attributes, "group": groups * factor})
    graph = replace(mutant.graph, nodes=(*nodes[:place], grouped, *nodes[place + 1 :]))
    return replace(mutant, graph=graph).with_data(changed)


def _is_convolution_of_data(mutant: ModelMutant, node: Node) -> bool:
    if node.op not in _CONVOLUTIONS or node.domain:
        return False
    data = [mutant.data(edge) for edge in node.inputs if edge is not None]
    return all(tensor is not None and tensor.dtype in _FLOATS for tensor in data)


def _repeat(mutant: ModelMutant, edge: int, axis: int, factor: int) -> Tensor:
    tensor = mutant.data(edge)
    assert tensor is not None
    copies = [tensor.array() * np.asarray(0.5**number, tensor.array().dtype) for number in range(factor)]
    return Tensor.of(np.concatenate(copies, axis), tensor.dtype)
