"""EAGLE on graphs: pairs of ONNX models that are equal by rewrites (`fuzzing.equivalence.graphs`)."""

from __future__ import annotations

from collections.abc import Iterator

from fuzzing.cases import TestCase
from fuzzing.errors import InfrastructureError
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source

NAME = "eagle-graphs"
LIBRARY = "onnx"
SEED = 0
MODELS = 1000


@register_source(NAME, library=LIBRARY, needs="egglog")
def migrate(
    part: Selection | None = None, seed: int = SEED, count: int = MODELS
) -> Iterator[TestCase | Skip]:
    """The pairs of the seed, in order."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise InfrastructureError(f"{NAME} needs onnx: pip install onnx ({error})") from error
    from fuzzing.equivalence.graphs.models import make_pair

    for number in range(count):
        name = f"{seed}/{number}"
        if part is None or part.contains(name):
            yield make_pair(number, seed) or Skip(name, "no rewrite applies to the model")
