"""EAGLE: pairs of programs that must agree (`fuzzing.equivalence`), for calls drawn from documentation."""

from __future__ import annotations

from collections.abc import Iterator

from fuzzing.cases import TestCase
from fuzzing.errors import InfrastructureError
from fuzzing.migrate.docter import REASONS
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source

NAME = "eagle"
LIBRARY = "torch"
SEED = 0
#: EAGLE's argument sets for each pair.
PER_PAIR = 400


@register_source(NAME, library=LIBRARY)
def migrate(
    part: Selection | None = None, seed: int = SEED, count: int = PER_PAIR, rules: str = "all"
) -> Iterator[TestCase | Skip]:
    """Pairs of the named rules, by commas; a part has whole APIs."""
    try:
        import torch
    except ImportError as error:
        raise InfrastructureError(f"{NAME} needs torch: pip install torch ({error})") from error
    from fuzzing.equivalence import rule as registry
    from fuzzing.equivalence.sampling import Plan, iterate_pairs

    torch.set_num_threads(1)
    contains = (lambda _api: True) if part is None else part.contains
    for item in iterate_pairs(Plan(registry.select(rules), count, seed, contains)):
        if isinstance(item, TestCase):
            yield item
        else:
            yield Skip(item.name, REASONS[item.ending], item.detail)
