"""Isra: small graphs of every specified operator, valid by construction.

Each model has its own opset and element type, so that the source covers old and new forms of every operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import version

from fuzzing.cases import TestCase
from fuzzing.errors import InfrastructureError
from fuzzing.generate.isra import GeneratorSettings, Solver
from fuzzing.graph.types import ANY
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source
from fuzzing.rng import Rng, derive_seed

NAME = "isra"
LIBRARY = "onnx"
SEED = 0
MODELS = 1000
#: The paper's bounds for finding bugs.
NODES = (1, 10)
#: The oldest that specifications are written for, and the newest that onnxruntime, OpenVINO, TVM and IREE
#: all read in their releases of 2026 (onnxruntime refuses 27).
OPSETS = (13, 26)
#: What compilers mostly compute in comes up mostly: what one of them lacks costs it the whole model.
DTYPES = ("float32",) * 8 + (
    "float64",
    "float64",
    "int64",
    "int64",
    "float16",
    "int32",
    "int8",
    "uint8",
    "bool",
)
#: 0.42 - 0.5 + 0.08 is 0 in theory and a rounding to either side of it in practice: where such a window
#: begins, Ceil, Shrink, comparisons and OneHot behind it step one way or the other, in every compiler. It has
#: no input that could be moved to show it.
SPECIAL_DIMENSIONS = ("BlackmanWindow",)


@register_source(NAME, library=LIBRARY)
def migrate(
    part: Selection | None = None, seed: int = SEED, count: int = MODELS
) -> Iterator[TestCase | Skip]:
    """The models of the seed, in order."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise InfrastructureError(f"{NAME} needs onnx: pip install onnx ({error})") from error
    for number in range(count):
        if part is None or part.contains(test_name(number, seed)):
            yield make_model(number, seed)


def test_name(number: int, seed: int) -> str:
    """The name of a model."""
    return f"{seed}/{number}"


def make_model(number: int, seed: int = SEED) -> TestCase:
    """One model as a case."""
    from fuzzing.generate import case_builder

    own = derive_seed(seed, NAME, number)
    rng = Rng(derive_seed(own, "settings"))
    generated = _solver(rng.between(*OPSETS), rng.choice(DTYPES)).generate(own)
    return case_builder.build_case(
        generated, own, case_builder.CaseOrigin(NAME, version(LIBRARY), LIBRARY), test_name(number, seed)
    )


@cache
def _solver(opset: int, dtype: str) -> Solver:
    left_out = tuple((name, ANY) for name in SPECIAL_DIMENSIONS)
    return Solver(GeneratorSettings(nodes=NODES, opset=opset, dtypes=(dtype,), mixed=True, left_out=left_out))
