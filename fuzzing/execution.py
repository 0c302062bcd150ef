"""Execution: the evidence of one run of one case, before an oracle decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Literal, Optional, Tuple

from fuzzing.cases import TestCase
from fuzzing.cases.values import Value
from fuzzing.outcomes import Phase

Ending = Literal["returned", "raised", "killed", "hung", "out_of_memory", "out_of_disk", "out_of_processes"]


@dataclass(frozen=True)
class Execution:
    """The evidence of one run of one case.

    ending          returned: every phase ended; raised: an exception ended the last phase; killed: the
                    process exited or died of a signal; hung: a phase exceeded its time; out_of_memory: the
                    supervisor or the kernel killed it for its memory; out_of_disk, out_of_processes: the
                    supervisor killed it for its files or the number of its processes
    phase           the last phase entered
    durations       seconds spent in each phase entered
    outputs         by name, in the program's order; empty unless it returned
    error           class of the exception, "" if none was raised; `message` is its text
    traceback       Python frames of the compiler only, as "file:function", outermost first
    signal          name of the signal that ended the process, such as SIGSEGV
    exit_code       of the process, if it exited
    native          faulthandler's stack of a native crash
    log             the end of what the process printed during the case
    peak_bytes      the largest resident set of the worker and its child processes during the case; 0 if not
                    sampled
    missing_inputs  inputs of the case that the compiled program did not take
    notes           of an instrumented case (`fuzzing.backends.base.Instrumentation`)
    """

    ending: Ending
    phase: Phase
    durations: Dict[str, float] = field(default_factory=dict)
    outputs: Tuple[Tuple[str, Value], ...] = ()
    error: str = ""
    message: str = ""
    traceback: Tuple[str, ...] = ()
    signal: str = ""
    exit_code: Optional[int] = None
    native: str = ""
    log: str = ""
    peak_bytes: int = 0
    missing_inputs: Tuple[str, ...] = ()
    notes: Tuple[Tuple[str, str], ...] = ()

    @property
    def exhausted(self) -> bool:
        """Whether it was ended for its time, memory, files or processes, so that other limits may suffice."""
        return self.ending in ("hung", "out_of_memory", "out_of_disk", "out_of_processes")

    @property
    def matches_expected(self) -> bool:
        """Whether the outputs equal the expected ones byte for byte."""
        return False

    @property
    def count(self) -> int:
        """Number of outputs."""
        return len(self.outputs)


class MatchingExecution(Execution):
    """An execution with the expected outputs, which are read on first access."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Execution:  # type: ignore[misc]
        """Returns an Execution: `dataclasses.replace` calls this."""
        return Execution(*args, **kwargs)

    @classmethod
    def of(cls, case: TestCase, count: int, given: Dict[str, Any]) -> MatchingExecution:
        """An execution with the `count` outputs that `case` expects.

        given  fields of Execution; the dictionary is not copied
        """
        execution = object.__new__(cls)
        given["ending"], given["phase"], given["_case"], given["_count"] = "returned", Phase.RUN, case, count
        object.__setattr__(execution, "__dict__", given)
        return execution

    @property
    def outputs(self) -> Tuple[Tuple[str, Value], ...]:
        """The expected outputs of the case."""
        return vars(self)["_case"].expected or ()

    @property
    def matches_expected(self) -> bool:
        """See Execution."""
        return True

    @property
    def count(self) -> int:
        """See Execution."""
        return int(vars(self)["_count"])
