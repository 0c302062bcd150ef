"""Seeds: straight-line programs that assign every variable once; each kind is a file of `seed_kinds`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from fuzzing.cases import Input
from fuzzing.errors import InternalError
from fuzzing.mutate.programs.profile import Profile, profile
from fuzzing.mutate.programs.program_tree import ProgramTree
from fuzzing.registry import Registry
from fuzzing.rng import Rng, derive_seed

#: Programs to try until one is valid; half of them are.
_ATTEMPTS = 64
#: What an eager run raises for an operator that this torch lacks for a type, or that refuses its operands.
REFUSALS = (RuntimeError, ValueError, IndexError, TypeError, AssertionError, AttributeError)


@dataclass(frozen=True)
class Seed:
    """A program that is to be mutated.

    text     defines `forward`
    inputs   by the names of its parameters
    tensors  the inputs as torch's; never written to
    """

    text: str
    inputs: tuple[tuple[str, Input], ...]
    tensors: tuple[Any, ...]


@dataclass(frozen=True)
class ProfiledSeed:
    """A valid seed with its syntax tree and its profile."""

    seed: Seed
    program: ProgramTree
    recorded: Profile


#: A program from a number; None if what was drawn is none.
SeedKind: TypeAlias = Callable[[int], Seed | None]

_KINDS: Registry[SeedKind] = Registry("seed kind", "fuzzing.mutate.programs.seed_kinds")
register_seed_kind = _KINDS.register
seed_kinds = _KINDS.names
get_seed_kind = _KINDS.get


def make_seed(seed: int) -> ProfiledSeed:
    """The seed program of a number. Its eager run raises nothing and all its values are finite."""
    kind = get_seed_kind(Rng(derive_seed(seed, "kind")).choice(seed_kinds()))
    for attempt in range(_ATTEMPTS):
        made = kind(derive_seed(seed, "program", attempt))
        found = None if made is None else _validate(made)
        if found is not None:
            return found
    raise InternalError(f"none of {_ATTEMPTS} programs of seed {seed} is valid")


def format_program(parameters: Iterable[str], lines: Iterable[str], results: Iterable[str]) -> str:
    """The text of a program."""
    body = "".join(f"    {line}\n" for line in lines)
    head = f"import torch\n\n\ndef forward({', '.join(parameters)}):\n"
    return f"{head}{body}    return {', '.join(results)}\n"


def _validate(seed: Seed) -> ProfiledSeed | None:
    """Validity as the paper has it: it runs, with no NaN and no infinity anywhere; None if it does not."""
    if not seed.inputs or "lambda" in seed.text:
        return None
    program = ProgramTree.parse(seed.text)
    try:
        recorded = profile(program, seed.tensors)
    except REFUSALS:
        return None
    return ProfiledSeed(seed, program, recorded) if _is_finite(recorded) else None


def _is_finite(recorded: Profile) -> bool:
    return all(bool(torch.isfinite(facts.values).all()) for facts in recorded.tensors())
