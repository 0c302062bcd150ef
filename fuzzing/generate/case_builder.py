"""Builds a case from a generated graph, with inputs as recipes within the graph's ranges.

Cases have no expected outputs: the reference implementation computes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fuzzing.cases import Input, OnnxModel, Provenance, Recipe, Tensor, TestCase
from fuzzing.errors import InternalError
from fuzzing.generate.generators import GeneratedGraph
from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Constant, Graph
from fuzzing.graph.onnx_writer import to_bytes
from fuzzing.graph.types import TensorType
from fuzzing.rng import Rng, derive_seed

_PREFIX = "v"  # before an edge's number: what the writer calls edges that have no name


@dataclass(frozen=True)
class CaseOrigin:
    """The origin of a run's cases; see `Provenance`.

    source   the generator's name, or that of a case source
    version  of the library that defines the operators
    """

    source: str
    version: str
    library: str = "onnx"


def build_case(
    generated: GeneratedGraph, seed: int, origin: CaseOrigin, test: str, *, initializers: bool = False
) -> TestCase:
    """The case of a graph generated from `seed`; `test` is its name within the source.

    With `initializers` the model holds its data, else they are inputs. The same seed gives the same bytes.
    Raises InternalError if no number lies within the bounds of an input.
    """
    graph = generated.graph
    rng = Rng(derive_seed(seed, "data"))
    recipes = {
        edge: make_recipe(graph.types[edge], generated.ranges[edge], rng.seed()) for edge in graph.inputs
    }
    if initializers:
        graph, recipes = embed_inputs(graph, recipes), {}
    names = graph.names
    return TestCase(
        program=OnnxModel(to_bytes(graph)),
        inputs=tuple([(names.get(edge) or f"{_PREFIX}{edge}", given) for edge, given in recipes.items()]),
        provenance=Provenance(
            origin.source, test, single_operator(graph), origin.library, origin.version, seed
        ),
    )


def single_operator(graph: Graph) -> str:
    """The operator of a graph with one operator; "" if it has several."""
    return graph.nodes[0].op if len({node.op for node in graph.nodes}) == 1 else ""


def make_recipe(type_: TensorType, range_: Interval, seed: int) -> Input:
    """An input of this type within these bounds; a recipe, where recipes can draw the type."""
    dtype, shape = type_.dtype, type_.lengths
    if dtype == "bfloat16":
        return _draw_bfloat16(shape, range_, seed)
    if dtype.startswith("float"):
        return Recipe("uniform", dtype, shape, range_.low, range_.high, seed)
    low, high = math.ceil(range_.low), math.floor(range_.high)
    if low > high:
        raise InternalError(f"no whole number lies in {range_}, where a {type_} is to come from")
    return Recipe("integers", dtype, shape, low, high, seed)


def _draw_bfloat16(shape: tuple[int, ...], range_: Interval, seed: int) -> Tensor:
    """Drawn here, because numpy has no bfloat16 for recipes."""
    wide = Recipe("uniform", "float32", shape, range_.low, range_.high, seed).draw().array()
    # Towards zero, by dropping bits: of a bound that bfloat16 holds, nothing gets beyond it.
    return Tensor("bfloat16", shape, (wide.view(np.uint32) >> 16).astype("<u2").tobytes())


def embed_inputs(graph: Graph, given: dict[int, Input]) -> Graph:
    """The graph with these inputs as initializers."""
    constants = dict(graph.constants)
    for edge, value in given.items():
        tensor = value.draw() if isinstance(value, Recipe) else value
        assert isinstance(tensor, Tensor)
        constants[edge] = Constant(tensor.dtype, tensor.array())
    inputs = tuple(edge for edge in graph.inputs if edge not in given)
    return replace(graph, inputs=inputs, constants=constants)
