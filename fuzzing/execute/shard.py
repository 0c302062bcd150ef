"""A shard: cases for one toolchain, run and judged in a process of their own.

`python -m fuzzing.execute.shard SHARD.json` prints what happens as JSON lines on stdout:

    {"event": "start", "cases": N}
    {"event": "outcome", "repeat": R, "outcome": {…}}            in the order in which cases end
    {"event": "end", "outcomes": N, "respawns": R, "seconds": S, "busy": B, "stopped": "" | "budget",
     "versions": {…}}
    {"event": "error", "kind": "toolchain" | "usage", "message": "…"}

Exit codes: 0 after "end", 2 for a bad shard or case, 3 if the toolchain cannot be started.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from fuzzing import backends
from fuzzing.cases import Corpus, TestCase
from fuzzing.errors import InfrastructureError, UsageError
from fuzzing.execute.execution import Execution
from fuzzing.execute.limits import Limits
from fuzzing.execute.process import Command
from fuzzing.execute.references import References
from fuzzing.execute.supervisor import Supervisor
from fuzzing.oracles import judge
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict

Key = tuple[str, int]  # case id, repeat
_CHUNK = 64  # cases looked up at a time; what is held of a corpus of any size


@dataclass(frozen=True)
class Shard:
    """What to run, on what, and within which bounds.

    corpus     folder of the cases
    cases      their ids, in the order in which to run them
    toolchain  digest, copied into the outcomes
    python     interpreter that holds the compiler
    fresh      a new process for every single run: evidence rather than speed
    repeats    how often each case is run
    budget_s   stop drawing cases after so many seconds; None for no bound
    """

    corpus: str
    cases: tuple[str, ...]
    backend: str
    toolchain: str
    python: str
    device: str = "CPU"
    options: dict[str, Any] = field(default_factory=dict)
    profile: str = "default"
    workers: int = 1
    fresh: bool = False
    repeats: int = 1
    limits: Limits = field(default_factory=Limits)
    budget_s: float | None = None

    def __post_init__(self) -> None:
        if self.workers < 1 or self.repeats < 1:
            raise UsageError("a shard needs at least one worker and one repeat")
        texts = (
            self.corpus,
            self.backend,
            self.toolchain,
            self.python,
            self.device,
            self.profile,
            *self.cases,
        )
        if not all(isinstance(text, str) for text in texts):
            raise UsageError("a shard's corpus, cases, backend and the like must be texts")
        if self.budget_s is not None and not self.budget_s > 0:
            raise UsageError(f"a shard's budget must be above 0 seconds, not {self.budget_s}")

    def to_json(self) -> dict[str, Any]:
        """The shard as JSON."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        return plain | {"cases": list(self.cases), "limits": self.limits.to_json()}

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> Shard:
        """The inverse of `to_json`; raises UsageError."""
        try:
            given = dict(obj)
            limits = Limits.from_json(given.pop("limits"))
            return cls(cases=tuple(given.pop("cases")), limits=limits, **given)
        except (TypeError, KeyError, ValueError) as error:
            raise UsageError(f"this is not a shard: {error}") from None


class Run:
    """One execution of a shard."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._corpus = Corpus(shard.corpus)
        self._backend = backends.get(shard.backend)
        if shard.device not in self._backend.devices:
            allowed = ", ".join(self._backend.devices)
            raise UsageError(f"{shard.backend} has no device {shard.device!r}; it has {allowed}")
        command = Command(shard.python, shard.backend, shard.device, shard.options, shard.limits)
        self.supervisor: Supervisor[Key] = Supervisor(command, workers=shard.workers, fresh=shard.fresh)
        self._references = References(self._corpus.root, shard.limits)
        self._running: dict[Key, TestCase] = {}
        self._invalid: list[Outcome] = []
        self._deadline = float("inf")
        self.stopped = ""

    def outcomes(self) -> Iterator[tuple[int, Outcome]]:
        """(repeat, outcome) of each run, as they end."""
        if self._shard.budget_s is not None:
            self._deadline = time.monotonic() + self._shard.budget_s
        for key, execution in self.supervisor.run(self._draw()):
            yield from self._take_invalid()
            yield key[1], self._judge(key, execution)
        yield from self._take_invalid()

    def _judge(self, key: Key, execution: Execution) -> Outcome:
        shard, case = self._shard, self._running.pop(key)
        outcome = judge(case, execution, self._backend, shard.toolchain, shard.device, shard.profile)
        return replace(outcome, case=key[0])  # a case that got its reference here has another id

    def _draw(self) -> Iterator[tuple[Key, TestCase]]:
        """The cases with their references; those that have none are set aside as invalid."""
        for case_id, case, error in self._completed():
            if error:
                self._invalid.append(self._invalid_outcome(case_id, error))
                continue
            for repeat in range(self._shard.repeats):
                if time.monotonic() > self._deadline:
                    self.stopped = "budget"
                    return
                self._running[case_id, repeat] = case
                yield (case_id, repeat), case

    def _completed(self) -> Iterator[tuple[str, TestCase, str]]:
        ids = iter(self._shard.cases)
        while chunk := list(islice(ids, _CHUNK)):
            cases = [self._corpus.get(case_id) for case_id in chunk]
            for case_id, (case, error) in zip(chunk, self._references.complete(cases), strict=True):
                yield case_id, case, error

    def _invalid_outcome(self, case_id: str, error: str) -> Outcome:
        shard = self._shard
        return Outcome(
            case=case_id,
            backend=shard.backend,
            toolchain=shard.toolchain,
            device=shard.device,
            verdict=Verdict.INVALID,
            phase=Phase.IMPORT,
            summary=error.splitlines()[0][:200],
            evidence=Evidence(message=error),
        )

    def _take_invalid(self) -> Iterator[tuple[int, Outcome]]:
        while self._invalid:
            outcome = self._invalid.pop()
            yield from ((repeat, outcome) for repeat in range(self._shard.repeats))


def execute(shard: Shard, out: TextIO) -> None:
    """Runs `shard` and prints its events to `out`."""

    def say(event: str, **facts: Any) -> None:
        print(json.dumps({"event": event} | facts), file=out, flush=True)

    run = Run(shard)
    say("start", cases=len(shard.cases))
    begin = time.monotonic()
    count = 0
    for repeat, outcome in run.outcomes():
        say("outcome", repeat=repeat, outcome=outcome.to_json())
        count += 1
    say(
        "end",
        outcomes=count,
        respawns=run.supervisor.respawns,
        seconds=time.monotonic() - begin,
        busy=run.supervisor.busy_s,
        stopped=run.stopped,
        versions=run.supervisor.versions,
    )


def main(argv: list[str]) -> int:
    """The command line of the module; see above."""
    out = sys.stdout
    try:
        if len(argv) != 1:
            raise UsageError("usage: python -m fuzzing.execute.shard SHARD.json")
        try:
            spec = json.loads(Path(argv[0]).read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read the shard {argv[0]}: {error}") from None
        execute(Shard.from_json(spec), out)
    except UsageError as error:
        print(json.dumps({"event": "error", "kind": "usage", "message": str(error)}), file=out)
        return 2
    except InfrastructureError as error:
        print(json.dumps({"event": "error", "kind": "toolchain", "message": str(error)}), file=out)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
