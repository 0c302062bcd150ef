"""The names of mutants within their source, from which they can be made again."""

from __future__ import annotations

import re

from fuzzing.cases import Provenance

#: The case source of mutants.
SOURCE = "torchprobe"
#: Mutants of one seed. Making a seed takes as long as three mutations; fewer seeds have fewer operators.
MUTANTS_OF_SEED = 2


def format_test_name(number: int, seed: int) -> str:
    """The name of a mutant within its source."""
    return f"{seed}/{number}"


def format_seed_name(number: int, seed: int) -> str:
    """The name of a mutant's seed program: those of one seed are made in one part of the source."""
    return f"{seed}/seed/{number // MUTANTS_OF_SEED}"


def parse_test_name(provenance: Provenance) -> tuple[int, int] | None:
    """The number and seed of a mutant; None if the case is from another source."""
    found = re.fullmatch(r"(\d{1,18})/(\d{1,18})", provenance.test)
    return (int(found[2]), int(found[1])) if found and provenance.source == SOURCE else None
