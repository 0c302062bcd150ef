"""TorchProbe: torch programs, mutated without changing their results (APLAS 2023)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import version

from fuzzing.cases import Provenance, TestCase, TorchProgram
from fuzzing.migrate.source_parts import Part
from fuzzing.migrate.sources import Skip, register_source

NAME = "torchprobe"
LIBRARY = "torch"
SEED = 0
MUTANTS = 2000


@register_source(NAME, library=LIBRARY, needs="libcst expecttest")
def migrate(part: Part | None = None, seed: int = SEED, count: int = MUTANTS) -> Iterator[TestCase | Skip]:
    """The mutants of the seed, in order."""
    import torch

    from fuzzing.mutate.programs.mutant_names import format_seed_name

    torch.set_num_threads(1)
    for number in range(count):
        if part is None or part.contains(format_seed_name(number, seed)):
            yield make_case(number, seed)


def make_case(number: int, seed: int = SEED) -> TestCase | Skip:
    """One mutant as a case; a Skip if it is not equal to its seed, which is a bug of a mutation."""
    from fuzzing.mutate.programs.mutant_names import format_test_name
    from fuzzing.mutate.programs.mutants import make_mutant
    from fuzzing.mutate.programs.soundness import find_difference

    mutant, test = make_mutant(number, seed), format_test_name(number, seed)
    difference = find_difference(mutant)
    if difference:
        steps = ", ".join(step.mutation for step in mutant.steps)
        return Skip(test, "a mutation changed the program's result: a bug of Assay", f"{steps}: {difference}")
    provenance = Provenance(NAME, test, "", LIBRARY, _release(), seed)
    return TestCase(TorchProgram(mutant.text), mutant.seed.inputs, provenance)


@cache
def _release() -> str:
    return version(LIBRARY)  # which reads and parses a file
