"""Un-applies the mutations of mutated programs, before anything else is removed from them.

A mutant is made again from the seed and number in its provenance, and without some of its steps. The case's
own text is not run here: if it is not the mutant of that name, it is left to the other passes.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fuzzing.cases import TorchProgram
from fuzzing.mutate.programs.mutant_names import parse_test_name
from fuzzing.reduce.engine import Attempt, ddmin
from fuzzing.reduce.script import Script

if TYPE_CHECKING:  # it imports torch, which reductions of other programs do without
    from fuzzing.mutate.programs.mutants import Mutant, Step


def unapply_mutations(attempt: Attempt[Script]) -> None:
    """Fewer mutations: halves, then ever fewer, down to single ones."""
    mutant = find_mutant(attempt.best)
    if mutant is None:
        return
    from fuzzing.mutate.programs.mutants import apply_steps

    steps_by_text = {attempt.best.text: mutant.steps}

    def steps(script: Script) -> Sequence[Step]:
        return steps_by_text.get(script.text, ())

    def without(script: Script, gone: Sequence[Step]) -> Script:
        kept = [step for step in steps(script) if step not in gone]
        text, applied = apply_steps(mutant.seed.text, kept)
        text = _normalize(text)
        steps_by_text[text] = applied
        return replace(script, text=text)

    ddmin(attempt, steps, without)


def find_mutant(script: Script) -> Mutant | None:
    """The mutant that a case's provenance names; None if the script is another program."""
    name = parse_test_name(script.origin.provenance)
    if name is None or not isinstance(script.origin.program, TorchProgram):
        return None
    from fuzzing.mutate.programs.mutants import make_mutant

    mutant = make_mutant(*name)
    return mutant if _normalize(mutant.text) == script.text else None


def _normalize(text: str) -> str:
    return ast.unparse(ast.parse(text))
