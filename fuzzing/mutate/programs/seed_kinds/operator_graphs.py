"""Seeds from operator graphs that Isra's solver makes."""

from __future__ import annotations

from functools import cache

from fuzzing.backends.shared.torch_programs import to_torch
from fuzzing.cases import Recipe
from fuzzing.errors import UnwritableError
from fuzzing.generate.case_builder import make_recipe
from fuzzing.generate.isra import GeneratorSettings, Solver
from fuzzing.graph import operators
from fuzzing.graph.torch_writer import to_torch as write_program
from fuzzing.mutate.programs.seeds import Seed, register_seed_kind
from fuzzing.rng import Rng, derive_seed

#: Operators of a seed. The paper takes 20; each mutation adds some statements, and a campaign of minutes on
#: one core gets further with smaller programs.
_NODES = (3, 10)
_OPSET = 18
#: What jumps, so that a last bit becomes another result; and what only fills a program with constants.
_LEFT_OUT = frozenset(
    {"ArgMax", "ArgMin", "BlackmanWindow", "Cast", "CastLike", "Ceil", "CenterCropPad", "Col2Im", "Compress"}
    | {"Constant", "ConstantOfShape", "DFT", "Det", "Dropout", "Equal", "Floor", "GRU", "GridSample"}
    | {"HammingWindow", "HannWindow", "Hardmax", "IsInf", "IsNaN", "LSTM", "Mod", "NegativeLogLikelihoodLoss"}
    | {"NonZero", "OneHot", "QuantizeLinear", "RNN", "Range", "Resize", "Round", "STFT", "Shrink", "Sign"}
    | {"SoftmaxCrossEntropyLoss", "Tan", "ThresholdedRelu", "TopK", "Unique"}
)
_DTYPES = ("float32",) * 6 + ("float64", "int64", "int32", "float16")


@register_seed_kind("operator-graphs")
def make_graph_program(seed: int) -> Seed | None:
    """A solved graph, written in torch; None if the writer lacks an operator."""
    solver = _solver(Rng(derive_seed(seed, "settings")).choice(_DTYPES))
    generated = solver.generate(seed)
    graph = generated.graph
    try:
        text = write_program(graph)
    except UnwritableError:
        return None
    rng = Rng(derive_seed(seed, "data"))
    inputs = tuple(
        (f"v{edge}", make_recipe(graph.types[edge], generated.ranges[edge], rng.seed()))
        for edge in graph.inputs
    )
    tensors = tuple(to_torch(given.draw() if isinstance(given, Recipe) else given) for _, given in inputs)
    return Seed(text, inputs, tensors)


@cache
def _solver(dtype: str) -> Solver:
    known = operators.specifications(_OPSET).items()
    names = tuple(name for name, one in known if one.torch is not None and name not in _LEFT_OUT)
    return Solver(GeneratorSettings(nodes=_NODES, opset=_OPSET, operators=names, dtypes=(dtype,)))
