"""Element types: all data of one type get another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fuzzing.cases import Tensor
from fuzzing.graph.types import TensorType
from fuzzing.mutate.graphs.models.base import ModelMutant, register_mutation
from fuzzing.rng import Rng

_GROUPS = (
    ("float32", "float64", "float16"),
    ("int32", "int64", "int8", "uint8", "int16"),
)


@register_mutation("types")
def mutate_types(mutant: ModelMutant, rng: Rng) -> ModelMutant | None:
    """Converts all inputs and initializers of one element type; refused where a number does not fit."""
    tensors = {edge: mutant.data(edge) for edge in mutant.data_edges()}
    known = {edge: tensor for edge, tensor in tensors.items() if tensor is not None}
    present = sorted(
        {tensor.dtype for tensor in known.values() if any(tensor.dtype in one for one in _GROUPS)}
    )
    if not present:
        return None
    old = rng.choice(present)
    group = next(one for one in _GROUPS if old in one)
    new = rng.choice([dtype for dtype in group if dtype != old])
    changed = {}
    for edge, tensor in known.items():
        if tensor.dtype == old:
            with np.errstate(over="ignore", invalid="ignore"):
                array = tensor.array().astype(new)
            if not np.array_equal(np.isfinite(array), np.isfinite(tensor.array())):
                return None
            if not old.startswith("float") and not np.array_equal(array, tensor.array()):
                return None
            changed[edge] = Tensor.of(array, new)
    made = mutant.with_data(changed)
    types = tuple(
        TensorType(new, type_.shape) if type_.dtype == old else type_ for type_ in made.graph.types
    )  # what follows from the inputs; inference corrects it
    return replace(made, graph=replace(made.graph, types=types))
