"""Generated graphs for property tests, and handwritten models for what generators never make."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
from hypothesis import strategies as st

from fuzzing.generate.generators import GeneratedGraph
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.graph import Graph, operators
from fuzzing.rng import Rng, derive_seed
from tests.support.operators import Array, fill

DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "bool")


@cache
def solver(
    opset: int, dtypes: tuple[str, ...] = DTYPES, names: tuple[str, ...] = (), most: int = 20
) -> Solver:
    """A solver for graphs of 1 to `most` nodes."""
    return Solver(GeneratorSettings(nodes=(1, most), opset=opset, dtypes=dtypes, operators=names))


def seeds() -> st.SearchStrategy[int]:
    """Seeds of graphs."""
    return st.integers(0, (1 << 53) - 1)


def generated(dtypes: tuple[str, ...] = DTYPES, most: int = 20) -> st.SearchStrategy[GeneratedGraph]:
    """Graphs of all specified operators, at any opset."""

    def make(opset: int, seed: int) -> GeneratedGraph:
        return solver(opset, dtypes, (), most).generate(seed)

    return st.builds(make, st.sampled_from((13, 18, 21, onnx.defs.onnx_opset_version())), seeds())


@cache
def runnable(opset: int = 18, most: int = 12) -> Solver:
    """A solver of operators that onnxruntime implements for these types deterministically."""
    left_out = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli"}
    names = tuple(
        name for name in operators.specifications(opset) if name not in left_out | {"Multinomial", "Dropout"}
    )
    return solver(opset, ("float32", "int64"), names, most)


def feeds(made: GeneratedGraph, seed: int) -> dict[int, Array]:
    """Elements for each input of a generated graph, from its ranges."""
    rng = Rng(derive_seed(seed, "feeds"))
    return {edge: fill(made.graph.types[edge], made.ranges[edge], rng) for edge in made.graph.inputs}


def repeats_captures(graph: Graph) -> bool:
    """Whether a body captures one edge twice: a model has one name for it, so it is read as captured once."""
    subgraphs = [body for node in graph.nodes for body in node.subgraphs()]
    return any(
        len(set(body.captures)) < len(body.captures) or repeats_captures(body.graph) for body in subgraphs
    )


def model(text: str) -> onnx.ModelProto:
    """A model in ONNX's textual syntax, checked; IR 10, opset 21."""
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}')
    onnx.checker.check_model(made, full_check=True)
    return made


BRANCHES = """
branches (float[2] x, bool c) => (float[2] y, float[2] z) {
    y = Relu(x)
    z = If(c) <
        then_branch = left () => (float[2] t) {
            inner = If(c) <
                then_branch = deep () => (float[2] d) { d = Add(y, x) },
                else_branch = flat () => (float[2] f) { f = Neg(x) }
            >
            t = Mul(inner, y)
        },
        else_branch = right () => (float[2] e) { e = Identity(x) }
    >
}
"""

#: Counts to three and returns the intermediate values.
LOOP = """
loop (float[2] x) => (float[2] last, float[3,2] all)
<int64 three = {3}, bool go = {1}>
{
    last, all = Loop(three, go, x) <
        body = turn (int64 i, bool going, float[2] v) => (bool on, float[2] w, float[2] kept) {
            on = Identity(going)
            w = Add(v, x)
            kept = Neg(w)
        }
    >
}
"""

X = np.array([1.5, -2.0], np.float32)
