"""From a generated graph to a case: its inputs as recipes, drawn from the ranges under which it stays finite.

Nothing is expected of a case: what it must give, the reference says when it is run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fuzzing.cases import Input, OnnxModel, Provenance, Recipe, Tensor, TestCase
from fuzzing.errors import InternalError
from fuzzing.generate.isra.solver import GeneratedGraph
from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Constant, Graph
from fuzzing.graph.onnx_writer import to_bytes
from fuzzing.graph.types import TensorType
from fuzzing.rng import Rng, derive_seed

_PREFIX = "v"  # before an edge's number: what the writer calls edges that have no name


@dataclass(frozen=True)
class CaseOrigin:
    """Where the cases of a run come from; see `Provenance`.

    source   the generator's name, or that of a case source
    version  of the library that defines the operators
    """

    source: str
    version: str
    library: str = "onnx"


def build_case(
    generated: GeneratedGraph, seed: int, origin: CaseOrigin, test: str, *, initializers: bool = False
) -> TestCase:
    """The case of a graph that was generated from `seed`; `test` names it within its source.

    With `initializers` the model holds its data, else its data are inputs. The same seed gives the same
    case, byte for byte. Raises InternalError if no number lies within the bounds of an input.
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
    """The one operator that a graph holds; "" if it holds several."""
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
    """Drawn, because recipes cannot draw what numpy has no type for."""
    wide = Recipe("uniform", "float32", shape, range_.low, range_.high, seed).draw().array()
    # Towards zero, by dropping bits: of a bound that bfloat16 holds, nothing gets beyond it.
    return Tensor("bfloat16", shape, (wide.view(np.uint32) >> 16).astype("<u2").tobytes())


def embed_inputs(graph: Graph, given: dict[int, Input]) -> Graph:
    """The graph with these inputs as initialisers."""
    constants = dict(graph.constants)
    for edge, value in given.items():
        tensor = value.draw() if isinstance(value, Recipe) else value
        assert isinstance(tensor, Tensor)
        constants[edge] = Constant(tensor.dtype, tensor.array())
    inputs = tuple(edge for edge in graph.inputs if edge not in given)
    return replace(graph, inputs=inputs, constants=constants)
