"""EAGLE for Keras 3 on its torch backend: pairs of programs that must agree, for layers found by trial."""

from __future__ import annotations

from collections.abc import Iterator

from fuzzing.cases import TestCase
from fuzzing.errors import InfrastructureError
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source

NAME = "eagle-keras"
#: Of the programs, which run Keras on torch.
LIBRARY = "torch"
SEED = 0
#: EAGLE's argument sets for each pair.
PER_PAIR = 400


@register_source(NAME, library=LIBRARY, needs="keras")
def migrate(
    part: Selection | None = None, seed: int = SEED, count: int = PER_PAIR, rules: str = "all"
) -> Iterator[TestCase | Skip]:
    """Pairs of the named rules, by commas; a part has whole layers."""
    from fuzzing.equivalence import layers
    from fuzzing.equivalence import rule as registry
    from fuzzing.equivalence.sampling import Plan, iterate_pairs

    try:
        layers.installed()
        import torch
    except ImportError as error:
        raise InfrastructureError(
            f"{NAME} needs keras and torch: pip install keras torch ({error})"
        ) from error
    torch.set_num_threads(1)
    contains = (lambda _api: True) if part is None else part.contains
    for item in iterate_pairs(Plan(registry.select(rules, "keras"), count, seed, contains)):
        if isinstance(item, TestCase):
            yield item
