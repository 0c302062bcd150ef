"""A bench: cases given a few at a time, judged in workers that wait for the next ones.

A shard runs thousands of cases and ends; a minimiser asks about a handful, thinks, and asks again, some
hundred times. What it asks about lies in no corpus, and what the library says of it is kept in a folder of
its own, which the bench removes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from fuzzing import backends
from fuzzing.backends.base import SEEN
from fuzzing.cases import TestCase
from fuzzing.cases.values import Value
from fuzzing.execute.appeals import Appeal, Appeals
from fuzzing.execute.execution import Execution
from fuzzing.execute.library import Libraries
from fuzzing.execute.process import Command
from fuzzing.execute.references import References
from fuzzing.execute.shard import Shard
from fuzzing.execute.supervisor import Supervisor
from fuzzing.oracles import configuration, judge
from fuzzing.oracles.referee import appealable
from fuzzing.oracles.reference import reference_needed
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict

Outputs = tuple[tuple[str, Value], ...]
Seen = tuple[tuple[str, str], ...]


class Bench:
    """Judges cases as a shard of these settings does; `shard.corpus` and `shard.cases` do not matter.

    A context manager: its workers end with it.

    beside         a bench of the same toolchain that is open for as long: the library is imported, and asked
                   about a case, once for both
    configuration  that of its outcomes: options and profile that are not the default
    """

    def __init__(self, shard: Shard, beside: Bench | None = None) -> None:
        self._shard = shard
        self._backend = backends.get(shard.backend)
        options = self._backend.settle(shard.options)
        self.configuration = configuration(self._backend.unusual(shard.options), shard.profile)
        command = Command(shard.python, shard.backend, shard.device, dict(options), shard.limits)
        self._supervisor: Supervisor[int] = Supervisor(command, workers=shard.workers, fresh=shard.fresh)
        self._own = ExitStack()
        self._own.callback(self._supervisor.close)
        self._libraries: Libraries = self._asked(shard) if beside is None else beside._libraries
        self._references = References(self._libraries)
        self._appeals = Appeals(self._libraries)

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._own.close()

    def _asked(self, shard: Shard) -> Libraries:
        """Libraries of its own; what they say is kept in a folder that ends with it."""
        folder = Path(tempfile.mkdtemp(prefix="assay-bench-"))
        self._own.callback(shutil.rmtree, folder, ignore_errors=True)
        made = Libraries(folder, shard.python, shard.limits, lasting=True)
        self._own.callback(made.close)
        return made

    def outcomes(self, cases: Sequence[TestCase]) -> list[Outcome]:
        """The outcome of each case, in their order."""
        return [outcome for outcome, _ in self.watched(cases, None)]

    def watched(
        self, cases: Sequence[TestCase], watch: Mapping[str, Any] | None
    ) -> list[tuple[Outcome, Seen]]:
        """The outcome of each case, and what it went through.

        watch  how the backend is to take them: arguments of `fuzzing.backends.base.Watch`; None: as ever
        """
        found: dict[int, Outcome] = {}
        seen: dict[int, Seen] = {}
        runnable: dict[int, TestCase] = {}
        for place, (case, error) in enumerate(self._references.complete(cases)):
            if error:
                found[place] = self._invalid(cases[place], error)
            else:
                runnable[place] = case
        appeals: dict[int, Appeal] = {}
        for place, execution in self._supervisor.serve(runnable.items(), watch):
            if watch:
                noted, log = told(execution.log)
                seen[place] = execution.seen or noted
                execution = replace(execution, log=log)  # noqa: PLW2901 - without what we have put there
            outcome = self._judged(runnable[place], execution)
            found[place] = outcome
            if appealable(outcome, self._shard.profile):
                computed = reference_needed(cases[place])
                appeals[place] = Appeal(runnable[place], computed, execution.outputs, outcome)
        found.update(zip(appeals, self._appeals.hear(list(appeals.values())), strict=True))
        return [
            (replace(found[place], case=case.id), seen.get(place, ())) for place, case in enumerate(cases)
        ]

    def reference(self, case: TestCase) -> Outputs | None:
        """What the library gives for a case that ships no outputs; None if it fails."""
        [(completed, error)] = self._references.complete([case])
        return None if error else completed.expected

    def _judged(self, case: TestCase, execution: Execution) -> Outcome:
        shard = self._shard
        return judge(
            case,
            execution,
            self._backend,
            shard.toolchain,
            shard.device,
            shard.profile,
            configuration=self.configuration,
        )

    def _invalid(self, case: TestCase, why: str) -> Outcome:
        return Outcome(
            case=case.id,
            backend=self._backend.name,
            toolchain=self._shard.toolchain,
            device=self._shard.device,
            verdict=Verdict.INVALID,
            phase=Phase.IMPORT,
            summary=why.splitlines()[0][:200],
            evidence=Evidence(message=why),
            configuration=self.configuration,
        )


def told(log: str) -> tuple[Seen, str]:
    """What a watched process has written into its log of what the case went through, and the rest of it."""
    lines = log.splitlines(keepends=True)
    noted = [line[len(SEEN) :].strip().partition(" ") for line in lines if line.startswith(SEEN)]
    rest = "".join(line for line in lines if not line.startswith(SEEN))
    return tuple((what, name) for what, _, name in noted), rest
