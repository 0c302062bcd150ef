"""Draws valid mutants of a model: one to three mutations, each kept only if its result is valid."""

from __future__ import annotations

from dataclasses import replace

from fuzzing.cases import OnnxModel, Recipe, Tensor, TestCase
from fuzzing.errors import UnreadableError
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.types import TensorType
from fuzzing.mutate.graphs.models import base
from fuzzing.mutate.graphs.models.base import ModelMutant
from fuzzing.rng import Rng

#: Mutations of a mutant, at most.
_MOST = 3
#: Draws of a mutation until one is valid.
_TRIES = 12
#: Parameters are where converters forget something, so they are drawn as often as all others together.
_PARAMETERS = 0.5


def read_model(case: TestCase) -> ModelMutant | None:
    """The model of a case with its data; None where data are no tensors or the graph cannot be read."""
    assert isinstance(case.program, OnnxModel)
    try:
        graph = from_onnx(case.program.model)
    except UnreadableError:
        return None
    given = {name: value.draw() if isinstance(value, Recipe) else value for name, value in case.inputs}
    types, values = list(graph.types), {}
    for edge in graph.inputs:
        value = given.get(graph.names.get(edge, f"v{edge}"))
        if not isinstance(value, Tensor):
            return None
        values[edge] = value
        types[edge] = TensorType(value.dtype, value.shape)
    if set(values) & set(graph.constants):
        return None
    return ModelMutant(replace(graph, types=tuple(types)), values)


def draw_mutant(model: ModelMutant, rng: Rng) -> tuple[ModelMutant, tuple[str, ...]] | None:
    """A valid mutant and the names of its mutations; None if no draw is valid."""
    others = [name for name in base.names() if name != "parameters"]
    done: list[str] = []
    for _ in range(rng.between(1, _MOST)):
        for _ in range(_TRIES):
            name = "parameters" if rng.chance(_PARAMETERS) else rng.choice(others)
            changed = base.get(name)(model, rng)
            found = None if changed is None else base.validated(changed)
            if found is not None:
                model = found
                done.append(name)
                break
    return (model, tuple(done)) if done else None
