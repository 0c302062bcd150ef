"""The names of mutants within their source, from which they can be made again."""

from __future__ import annotations

import re
from typing import NamedTuple

from fuzzing.cases import Provenance

#: The case source of mutants.
SOURCE = "torchprobe"
#: Mutants of one seed. Making a seed takes as long as three mutations; fewer seeds have fewer operators.
MUTANTS_OF_SEED = 2
_NAME = re.compile(r"(?P<seed>\d{1,18})/(?P<number>\d{1,18})(?P<extensions>(?:\+\d{1,9}){0,16})")


class MutantName(NamedTuple):
    """What a mutant is made from.

    extensions  of mutant `number`: each adds a mutation, which it selects and seeds
    """

    number: int
    seed: int
    extensions: tuple[int, ...] = ()

    def format(self) -> str:
        """Its name within the source."""
        return f"{self.seed}/{self.number}" + "".join(f"+{one}" for one in self.extensions)

    def extend(self, extension: int) -> MutantName:
        """The name of this mutant with one more mutation."""
        return self._replace(extensions=(*self.extensions, extension))


def format_seed_name(number: int, seed: int) -> str:
    """The name of a mutant's seed program: those of one seed are made in one part of the source."""
    return f"{seed}/seed/{number // MUTANTS_OF_SEED}"


def parse_test_name(provenance: Provenance) -> MutantName | None:
    """The name of a mutant; None if the case is from another source."""
    found = _NAME.fullmatch(provenance.test) if provenance.source == SOURCE else None
    if found is None:
        return None
    extensions = tuple(map(int, found["extensions"].split("+")[1:]))
    return MutantName(int(found["number"]), int(found["seed"]), extensions)
