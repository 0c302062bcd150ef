"""Mutants from their numbers: equal each time, equal to their seeds, and reduced by leaving out mutations."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fuzzing.cases import TestCase
from fuzzing.migrate import sources
from fuzzing.migrate.source_parts import Part, migrate_source
from fuzzing.migrate.torchprobe import make_case
from fuzzing.mutate.programs.mutants import Mutant, apply_steps, make_mutant
from fuzzing.mutate.programs.soundness import find_difference
from fuzzing.reduce.engine import CLEAN, SAME, reduce
from fuzzing.reduce.programs import SPEC, Script

SEED = 5


def script(number: int) -> Script:
    case = make_case(number, SEED)
    assert isinstance(case, TestCase)
    return Script(ast.unparse(ast.parse(make_mutant(number, SEED).text)), case.inputs, {}, case)


@pytest.mark.parametrize("number", range(8))
def test_a_mutant_equals_its_seed_and_itself(number: int) -> None:
    mutant = make_mutant(number, SEED)
    assert mutant.steps
    assert find_difference(mutant) == ""
    make_mutant.cache_clear()
    assert make_mutant(number, SEED).text == mutant.text
    assert apply_steps(mutant.seed.text, mutant.steps) == (mutant.text, mutant.steps)


def test_the_source_has_equal_cases_in_parts_and_whole() -> None:
    source = sources.get("torchprobe")
    whole = [
        case.id
        for case in migrate_source(source, None, {"seed": 3, "count": 4})
        if isinstance(case, TestCase)
    ]
    parts = [
        case.id
        for part in (Part(1, 2), Part(2, 2))
        for case in migrate_source(source, part, {"seed": 3, "count": 4})
        if isinstance(case, TestCase)
    ]
    assert len(whole) == 4
    assert sorted(whole) == sorted(parts)


def test_reduction_leaves_out_the_mutations_that_the_bug_does_not_need() -> None:
    """A bug that needs one mutation of several: the first pass keeps it and no other."""
    number = next(number for number in range(200) if _needs_one_step(make_mutant(number, SEED)))
    start, steps = script(number), make_mutant(number, SEED).steps

    def classify(candidates: Sequence[Script]) -> list[str]:
        return [SAME if "if " in candidate.text else CLEAN for candidate in candidates]

    first = reduce(start, replace(SPEC, passes=SPEC.passes[:1]), classify)
    seed = make_mutant(number, SEED).seed.text
    assert first.best.text in [ast.unparse(ast.parse(apply_steps(seed, [one])[0])) for one in steps]
    assert reduce(start, SPEC, classify).best.text.count("\n") <= 6


def _needs_one_step(mutant: Mutant) -> bool:
    """Whether it has an always-true block that needs no other mutation, and no other `if`."""
    alone = [apply_steps(mutant.seed.text, [step])[0] for step in mutant.steps]
    branching = [step.mutation for step, text in zip(mutant.steps, alone, strict=True) if "if " in text]
    return len({step.mutation for step in mutant.steps}) >= 3 and branching == ["always-true-block"]
