"""Python objects beside a run: they are made before it, and what became of them is tested after it."""

from __future__ import annotations

import re

from fuzzing.mutate.programs.mutations import Parameters, Proposal, register_mutation
from fuzzing.mutate.programs.program_tree import ProgramTree, parse_statements
from fuzzing.mutate.programs.python_states import STATES
from fuzzing.mutate.programs.runs import find_run
from fuzzing.mutate.programs.wrapping import Wrapping

#: How often the graph breaks before the test, so that the objects are made again between two graphs.
_BROKEN = 0.3
#: A name that the step's number ends.
_NAME = re.compile(r"\b([A-Za-z]+)_\b")


@register_mutation("python-state")
class PythonState(Wrapping):
    """Sound: the run reads none of these objects, and what is asserted holds in Python whatever the run does.
    The write below its negation is not run. It shows a compiler that takes it for false; a failed assertion
    would not, since Dynamo leaves a frame that raises to Python.

    parameters: those of `Wrapping`; `result`, a tensor that the run binds; `broken`, whether the graph breaks
    before the test.
    """

    forms = tuple(STATES)

    def propose(self, proposal: Proposal) -> Parameters | None:
        """A run that binds a tensor, and a form."""
        parameters = super().propose(proposal)
        run = (
            None
            if parameters is None
            else find_run(proposal.program, parameters["first"], parameters["last"])
        )
        after = None if run is None else proposal.profile.before(run.block, run.end)
        if parameters is None or run is None or after is None:
            return None
        tensors = [name for name in run.binds if name in after and after[name].values.numel()]
        broken = proposal.rng.chance(_BROKEN)
        return {**parameters, "result": tensors[-1], "broken": broken} if tensors else None

    def apply(self, program: ProgramTree, number: int, parameters: Parameters) -> ProgramTree | None:
        """The objects, the run and the expression."""
        run = find_run(program, parameters["first"], parameters["last"])
        if run is None or parameters["result"] not in run.binds:
            return None
        state = _NAME.sub(rf"\g<1>{number}", STATES[parameters["form"]])
        before, _, after = state.rpartition("assert ")
        broken = "torch._dynamo.graph_break()\n" if parameters["broken"] else ""
        text = f"{before}RUN\n{broken}if not ({after}):\n    {parameters['result']}.fill_(3)"
        return run.rewrite(parse_statements(text, RUN=run.statements))
