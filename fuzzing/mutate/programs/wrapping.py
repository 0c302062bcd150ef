"""The base of mutations that wrap a run of statements."""

from __future__ import annotations

from typing import ClassVar

from fuzzing.mutate.programs.mutations import Parameters, Proposal
from fuzzing.mutate.programs.program_tree import ProgramTree, parse_statements
from fuzzing.mutate.programs.runs import Run, draw_run, find_run, is_movable
from fuzzing.rng import Rng


class Wrapping:
    """A mutation whose result is a text around the run.

    forms   one is drawn and handed to `text`
    nested  whether the run becomes the body of a nested function, which returns what the run binds

    parameters: `first` and `last` of the run; `form`; `captured`, the tensors that the run reads.
    """

    exact: ClassVar[bool] = True
    forms: ClassVar[tuple[str, ...]] = ("",)
    nested: ClassVar[bool] = False

    def text(self, number: int, form: str, names: str, captured: list[str]) -> str:
        """The text, with a line RUN where the run goes; `names` are those that the run binds, "v7, v8"."""
        raise NotImplementedError

    def propose(self, proposal: Proposal) -> Parameters | None:
        """A run and a form."""
        rng: Rng = proposal.rng
        run = draw_run(proposal.program, rng)
        point = None if run is None else proposal.profile.before(run.block, run.start)
        if run is None or point is None or not self._fits(run):
            return None
        if proposal.profile.before(run.block, run.end) is None:
            return None  # it raises what a statement around it is to catch, not the wrapping
        read = {name for statement in run.statements for name in proposal.program.reads_deep(statement)}
        captured = sorted((read & point.keys()) - set(run.binds) - proposal.program.nonlocals)
        return {**run.place(), "form": rng.choice(self.forms), "captured": captured}

    def apply(self, program: ProgramTree, number: int, parameters: Parameters) -> ProgramTree | None:
        """The text in place of the run."""
        run = find_run(program, parameters["first"], parameters["last"])
        if run is None or not self._fits(run):
            return None
        text = self.text(number, parameters["form"], ", ".join(run.binds), parameters["captured"])
        return run.rewrite(parse_statements(text, RUN=run.statements))

    def _fits(self, run: Run) -> bool:
        return not self.nested or (bool(run.binds) and is_movable(run))
