"""Seeds: straight-line programs in which every variable is assigned once, from operator graphs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from fuzzing.backends.shared.torch_programs import to_torch
from fuzzing.cases import Input, Recipe
from fuzzing.errors import InternalError, UnwritableError
from fuzzing.generate.case_builder import make_recipe
from fuzzing.generate.isra import GeneratorSettings, Solver
from fuzzing.graph import operators
from fuzzing.graph.torch_writer import to_torch as write_program
from fuzzing.mutate.programs.profile import Profile, profile
from fuzzing.mutate.programs.program_tree import ProgramTree
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
#: Graphs to try until one can be written in torch and has finite values; half of them do.
_ATTEMPTS = 64


@dataclass(frozen=True)
class Seed:
    """A program that is to be mutated.

    text     defines `forward`
    inputs   by the names of its parameters
    tensors  the inputs as torch's; never written to
    """

    text: str
    inputs: tuple[tuple[str, Input], ...]
    tensors: tuple[Any, ...]


def make_seed(seed: int) -> Seed:
    """The seed program of a number. Its eager run raises nothing and all its values are finite."""
    rng = Rng(derive_seed(seed, "settings"))
    solver = _solver(rng.choice(_DTYPES))
    for attempt in range(_ATTEMPTS):
        found = _try_seed(solver, derive_seed(seed, "graph", attempt))
        if found is not None:
            return found
    raise InternalError(f"none of {_ATTEMPTS} graphs of seed {seed} is a valid program")


@cache
def _solver(dtype: str) -> Solver:
    known = operators.specifications(_OPSET).items()
    names = tuple(name for name, one in known if one.torch is not None and name not in _LEFT_OUT)
    return Solver(GeneratorSettings(nodes=_NODES, opset=_OPSET, operators=names, dtypes=(dtype,)))


def _try_seed(solver: Solver, seed: int) -> Seed | None:
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
    if "lambda" in text or not inputs:
        return None
    try:
        recorded = profile(ProgramTree.parse(text), tensors)
    except (
        RuntimeError,
        ValueError,
        IndexError,
        TypeError,
    ):  # an operator that this torch lacks for the type
        return None
    return Seed(text, inputs, tensors) if _is_finite(recorded) else None


def _is_finite(recorded: Profile) -> bool:
    """Validity as the paper has it: no NaN and no infinity anywhere."""
    return all(bool(torch.isfinite(facts.values).all()) for facts in recorded.tensors())
