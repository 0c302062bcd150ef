"""Mutations of programs: each file registers one, which keeps the program's result.

A mutation first proposes where and how, from the program and a profile of it; then it applies the proposal,
which needs the text alone. A recorded step can so be left out and the others applied again, without running
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from fuzzing.mutate.programs.profile import Profile
from fuzzing.mutate.programs.program_tree import ProgramTree
from fuzzing.registry import Registry
from fuzzing.rng import Rng

#: How a mutation is applied; JSON.
Parameters: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Proposal:
    """What a mutation may draw from.

    number  of the step: names that the mutation adds end with it, so no two steps add the same
    """

    program: ProgramTree
    profile: Profile
    rng: Rng
    number: int


class Mutation(Protocol):
    """A change of a program that keeps its result; the class docstring says why."""

    #: Whether results stay equal bit by bit; else up to rounding.
    exact: bool

    def propose(self, proposal: Proposal) -> Parameters | None:
        """Where and how to apply it, drawn at random; None if the program has no place for it."""
        ...

    def apply(self, program: ProgramTree, number: int, parameters: Parameters) -> ProgramTree | None:
        """The program after the mutation; None if it no longer has the place."""
        ...


_MUTATIONS: Registry[Mutation] = Registry("mutation", "fuzzing.mutate.programs.mutations")
M = TypeVar("M", bound=type[Any])


def register_mutation(name: str) -> Callable[[M], M]:
    """Class decorator: registers an instance of the class as the mutation `name`."""

    def register(cls: M) -> M:
        _MUTATIONS.add(cls(), name)
        return cls

    return register


names = _MUTATIONS.names
get = _MUTATIONS.get
