"""Runs draws in the library, in a worker that may crash, hang or run out of memory.

One worker process serves all draws (`execute.supervisor`); its end is attributed to the draw in progress
and costs one new process. An API that has ended CRASHES workers is not drawn from any more.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from random import Random
from typing import Literal

from fuzzing.cases import Provenance, TestCase
from fuzzing.errors import CaseFormatError
from fuzzing.execute.limits import Limits
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution
from fuzzing.generate.docter.call_generator import Mode, NoDrawError, draw
from fuzzing.generate.docter.extraction import LIBRARY, extract_constraints
from fuzzing.generate.docter.value_profiles import TAME, Profile

SOURCE = "docter"
#: DocTer's experiments give a call 10 s; memory is what a draw of the paper's sizes can need.
LIMITS = Limits(convert_s=10.0, compile_s=10.0, run_s=10.0, memory_bytes=4 << 30)
CRASHES = 2
_BACKEND = "torch_eager"
_MAX_DETAIL = 300

Ending = Literal["accepted", "unusable", "rejected", "crashed", "hung", "out of memory", "no draw"]
_ENDINGS: dict[str, Ending] = {
    "returned": "accepted",
    "raised": "rejected",
    "killed": "crashed",
    "hung": "hung",
    "out_of_memory": "out of memory",
    "out_of_disk": "out of memory",
    "out_of_processes": "out of memory",
}


@dataclass(frozen=True)
class Trial:
    """One draw and its result.

    name    of the draw: API/profile/mode/place
    ending  accepted: it ran; unusable: it ran, and a case cannot hold its output; rejected: it raised;
            no draw: no call satisfies the record
    detail  what was raised, or what ended the process
    """

    api: str
    name: str
    ending: Ending
    detail: str = ""
    case: TestCase | None = None


@dataclass(frozen=True)
class TrialPlan:
    """The draws to make: `count` calls of each API, the first with required parameters only.

    start  the first of them to make, of `count`
    """

    count: int = 10
    seed: int = 0
    mode: Mode = Mode.CONFORMING
    profile: Profile = TAME
    start: int = 0

    def draw_calls(self, api: str) -> Iterator[tuple[str, TestCase | Trial]]:
        """The draws of one API by name: a case, or a trial that already failed."""
        record = extract_constraints(api)
        for place in range(self.start, self.count):
            name = self.name(api, place)
            try:
                call = draw(record, self.make_rng(name), self.mode_of(place), self.profile)
                yield name, call.case(Provenance(SOURCE, name, api, LIBRARY, version(LIBRARY), self.seed))
            except (NoDrawError, CaseFormatError) as error:
                yield name, Trial(api, name, "no draw", str(error)[:_MAX_DETAIL])

    def name(self, api: str, place: int) -> str:
        """The name of a draw."""
        return f"{api}/{self.profile.name}/{self.mode_of(place).value}/{place}"

    def mode_of(self, place: int) -> Mode:
        """The mode of a draw; the first conforming call is minimal."""
        return Mode.MINIMAL if place == 0 and self.mode is Mode.CONFORMING else self.mode

    def make_rng(self, name: str) -> Random:
        """The generator of a draw, seeded by the plan's seed and the draw's name alone."""
        digest = hashlib.sha256(f"{self.seed}:{name}".encode()).digest()
        return Random(int.from_bytes(digest[:8], "little"))  # noqa: S311 - tests, no secrets


def run(apis: Iterable[str], plan: TrialPlan) -> Iterator[Trial]:
    """The trials of all APIs, in the order in which they end. Raises ToolchainError if no worker starts."""
    crashes: Counter[str] = Counter()
    settled: deque[Trial] = deque()

    def cases() -> Iterator[tuple[tuple[str, str, TestCase], TestCase]]:
        for api in apis:
            for name, drawn in plan.draw_calls(api):
                if crashes[api] >= CRASHES:
                    break
                if isinstance(drawn, Trial):
                    settled.append(drawn)
                else:
                    yield (api, name, drawn), drawn

    supervisor: Supervisor[tuple[str, str, TestCase]] = Supervisor(
        WorkerCommand(sys.executable, _BACKEND, limits=LIMITS)
    )
    for (api, name, case), execution in supervisor.run(cases()):
        trial = _trial(api, name, case, execution)
        crashes[api] += trial.ending in ("crashed", "hung", "out of memory")
        while settled:
            yield settled.popleft()
        yield trial
    yield from settled


def _trial(api: str, name: str, case: TestCase, execution: Execution) -> Trial:
    ending = _ENDINGS[execution.ending]
    if ending == "rejected" and execution.error.rpartition(".")[2] == "Unsupported":
        ending = "unusable"
    how = execution.error or execution.signal or ""
    return Trial(api, name, ending, f"{how}: {execution.message}".strip(": ")[:_MAX_DETAIL], case)
