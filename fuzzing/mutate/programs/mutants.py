"""Mutants: a seed program and the steps that were applied to it, each of which can be left out again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from fuzzing.mutate.programs import mutations
from fuzzing.mutate.programs.mutant_names import MUTANTS_OF_SEED
from fuzzing.mutate.programs.mutations import Parameters, Proposal
from fuzzing.mutate.programs.profile import profile, run_program
from fuzzing.mutate.programs.program_tree import ProgramTree
from fuzzing.mutate.programs.seeds import Seed, make_seed
from fuzzing.rng import Rng, derive_seed

#: Applied mutations of a mutant.
_STEPS = (1, 5)
#: Proposals until one fits: a mutation that finds no place draws another, or another mutation does.
_PROPOSALS = 24


@dataclass(frozen=True)
class Step:
    """An applied mutation.

    number  ends the names that it added
    """

    mutation: str
    number: int
    parameters: Parameters


@dataclass(frozen=True)
class Mutant:
    """A program whose result is its seed's.

    exact  whether bit by bit; else up to rounding
    """

    seed: Seed
    steps: tuple[Step, ...]
    text: str

    @property
    def exact(self) -> bool:
        """Whether the result equals the seed's bit by bit."""
        return all(mutations.get(step.mutation).exact for step in self.steps)


@lru_cache(maxsize=64)
def make_mutant(number: int, seed: int, extensions: tuple[int, ...] = ()) -> Mutant:
    """A mutant by its name's parts (`MutantName`); equal for equal arguments, in any process.

    An extension that finds no place in the program leaves it as it is.
    """
    if extensions:
        return _extend(make_mutant(number, seed, extensions[:-1]), number, seed, extensions)
    start = _make_start(derive_seed(seed, "torchprobe", number // MUTANTS_OF_SEED))
    rng = Rng(derive_seed(seed, "mutations", number))
    program, recorded, steps = start.program, start.recorded, list[Step]()
    for left in reversed(range(rng.between(*_STEPS))):
        proposal = Proposal(program, recorded, rng, len(steps) + 1)
        found = _mutate(proposal, start.seed, mutations.names())
        if found is None:
            break
        program, step = found
        steps.append(step)
        if left:
            try:
                recorded = profile(program, start.seed.tensors)
            except Exception:  # noqa: BLE001 - the step was unsound, which `find_difference` reports
                break
    return Mutant(start.seed, tuple(steps), program.text)


def _extend(parent: Mutant, number: int, seed: int, extensions: tuple[int, ...]) -> Mutant:
    program, names = ProgramTree.parse(parent.text), mutations.names()
    rng = Rng(derive_seed(seed, "extension", number, *extensions))
    try:
        recorded = profile(program, parent.seed.tensors)
    except Exception:  # noqa: BLE001 - a step was unsound, which `find_difference` reports
        return parent
    wanted = names[extensions[-1] % len(names)]
    found = _mutate(Proposal(program, recorded, rng, len(parent.steps) + 1), parent.seed, (wanted,))
    if found is None:
        return parent
    return Mutant(parent.seed, (*parent.steps, found[1]), found[0].text)


#: Mutants of a seed are made one after the other.
_make_start = lru_cache(maxsize=4)(make_seed)


def apply_steps(text: str, steps: Sequence[Step]) -> tuple[str, tuple[Step, ...]]:
    """The program after these steps, and those that still find their place; nothing is run."""
    program, applied = ProgramTree.parse(text), []
    for step in steps:
        changed = mutations.get(step.mutation).apply(program, step.number, step.parameters)
        if changed is not None:
            program = changed
            applied.append(step)
    return program.text, tuple(applied)


def _mutate(proposal: Proposal, seed: Seed, names: Sequence[str]) -> tuple[ProgramTree, Step] | None:
    """The program after one of these mutations; None if none drawn finds a place."""
    for _ in range(_PROPOSALS):
        name = proposal.rng.choice(names)
        parameters = mutations.get(name).propose(proposal)
        if parameters is None:
            continue
        changed = mutations.get(name).apply(proposal.program, proposal.number, parameters)
        if changed is not None and (mutations.get(name).exact or _is_accepted(changed, seed)):
            return changed, Step(name, proposal.number, parameters)
    return None


def _is_accepted(program: ProgramTree, seed: Seed) -> bool:
    """Whether eager torch takes the operands, to which an inexact mutation gives other strides or kernels.

    Some kernels view an operand, or ask for a contiguous one.
    """
    try:
        run_program(program.text, seed.tensors)
    except RuntimeError:
        return False
    except Exception:  # noqa: BLE001 - the step is unsound, which `find_difference` reports
        return True
    return True
