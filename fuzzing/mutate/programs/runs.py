"""Runs: consecutive statements of one block that mutations wrap or move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fuzzing.mutate.programs.program_tree import Block, ProgramTree, Statement, count_bindings
from fuzzing.rng import Rng


@dataclass(frozen=True)
class Run:
    """The statements `start` to `end` (exclusive) of a block."""

    program: ProgramTree
    block: Block
    start: int
    end: int

    @property
    def statements(self) -> Sequence[Statement]:
        """Its statements."""
        return self.block.statements[self.start : self.end]

    @property
    def binds(self) -> list[str]:
        """The names that it binds, in a fixed order."""
        return list(
            dict.fromkeys(
                name
                for statement in self.statements
                for name in sorted(self.program.names(statement).binds, key=_natural)
            )
        )

    @property
    def leaves(self) -> bool:
        """Whether one of its statements may leave the block, or declares names of other scopes."""
        return any(self.program.names(statement).leaves for statement in self.statements)

    def rewrite(self, statements: Sequence[Statement]) -> ProgramTree:
        """The program with other statements in its place."""
        before, after = self.block.statements[: self.start], self.block.statements[self.end :]
        return self.program.replace(self.block, [*before, *statements, *after])

    def place(self) -> dict[str, str]:
        """The names of its first and last statement, for the parameters of a mutation."""
        first, last = self.statements[0], self.statements[-1]
        return {"first": self.program.name(first), "last": self.program.name(last)}


def draw_run(program: ProgramTree, rng: Rng) -> Run | None:
    """A run that can be moved into another block, of 1 to 4 statements; None if the one drawn cannot."""
    block = rng.choice(program.blocks)
    start = rng.below(len(block.statements))
    run = Run(program, block, start, min(len(block.statements), start + rng.between(1, 4)))
    found = None if run.leaves else find_run(program, **run.place())
    return found if found is not None and (found.start, found.end) == (run.start, run.end) else None


def find_run(program: ProgramTree, first: str, last: str) -> Run | None:
    """The run from one named statement to another; None if they are not in one block, in this order."""
    begin, end = program.find(first), program.find(last)
    if begin is None or end is None or begin[0].number != end[0].number or begin[1] > end[1]:
        return None
    run = Run(program, begin[0], begin[1], end[1] + 1)
    return None if run.leaves else run


def is_movable(run: Run) -> bool:
    """Whether the run may become the body of a nested function that returns what it binds.

    Its function binds each of these names nowhere else, so that none is read before, and no function assigns
    one in its scope. No function that is
    defined outside the run and used in it reads one, since it would find the outer variable, not yet bound.
    """
    program, own = run.program, set(run.binds)
    inside = sum((count_bindings(program.code(statement)) for statement in run.statements), Counter())
    body = program.blocks[run.block.function].statements
    everywhere = sum((count_bindings(program.code(statement)) for statement in body), Counter())
    used = {name for statement in run.statements for name in program.names(statement).reads}
    outer = (used & program.functions.keys()) - own
    return (
        not own & (run.block.parameters | program.nonlocals)
        and all(inside[name] == everywhere[name] for name in own)
        and not any(program.functions[name] & own for name in outer)
    )


def _natural(name: str) -> tuple[str, int]:
    digits = name.rstrip("0123456789")
    return digits, int(name[len(digits) :] or 0)
