"""Functionalization: a run of statements becomes a nested function, defined at the call or before it."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import Parameters, Proposal, register_mutation
from fuzzing.mutate.programs.program_tree import ProgramTree, parse_statements
from fuzzing.mutate.programs.runs import draw_run, find_run, is_movable


@register_mutation("functionalization")
class Functionalization:
    """The function returns everything that the run binds; the call unpacks it (seed paper, M3).

    Sound: a closure finds the variables that it captures when it is called, not when it is defined, so the
    definition may stand anywhere before the call in the same block. `is_movable` excludes names that are
    bound elsewhere too.

    parameters: `first` and `last` of the run; `before`, the statement before which the function is defined.
    """

    exact = True

    def propose(self, proposal: Proposal) -> Parameters | None:
        """A run, and any statement before it."""
        run = draw_run(proposal.program, proposal.rng)
        # What never runs may bind what nobody has bound before: a function around it could not return it.
        if run is None or not is_movable(run) or proposal.profile.before(run.block, run.start) is None:
            return None
        program = proposal.program
        before = program.name(run.block.statements[proposal.rng.between(0, run.start)])
        return None if program.find(before) is None else {**run.place(), "before": before}

    def apply(self, program: ProgramTree, number: int, parameters: Parameters) -> ProgramTree | None:
        """The function before one statement, and its call in place of the run."""
        run = find_run(program, parameters["first"], parameters["last"])
        before = program.find(parameters["before"])
        if run is None or not is_movable(run) or before is None or before[0].number != run.block.number:
            return None
        at, statements, names = before[1], run.block.statements, ", ".join(run.binds)
        if at > run.start:
            return None
        returned = [f"    return {names}"] if names else []
        text = "\n".join([f"def f{number}():", "    RUN", *returned])
        call = f"{names} = f{number}()" if names else f"f{number}()"
        return program.replace(
            run.block,
            [
                *statements[:at],
                *parse_statements(text, RUN=run.statements),
                *statements[at : run.start],
                *parse_statements(call),
                *statements[run.end :],
            ],
        )
