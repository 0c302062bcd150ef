"""What cases did before, for one target and backend, and what that lets one expect of them.

One JSON object a line:
    {"id": case id, "operator": op, "runs": n, "findings": n, "last_finding_days": float | null, "seconds": s}

Few cases have run often, so what is expected of one is drawn towards its operator, an operator towards its
frontend, and a frontend towards all: each level counts as so many runs of what it says. A case that never ran
is expected to be like its operator.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fuzzing.errors import UsageError
from fuzzing.prioritize.instances import Instance

#: Days after which a finding counts half. Judged: a release of the compilers we know takes 4 to 12 weeks, and
#: what broke in the last one is likelier to be fixed than what broke last week.
HALF_LIFE = 30.0
#: How many runs of a case its operator's record counts for, and likewise upwards. Judged: findings are rare,
#: so some tens of runs are needed before a case's own record tells more than its operator's; seconds vary
#: little.
_RUNS_FINDINGS = 20.0
_RUNS_SECONDS = 3.0
#: Of what a run is taken to give and to cost before anything is known: of 1,884 ONNX node tests on four
#: compilers some 1 in 20 were bad outcomes, and most take far less than a second.
_FINDINGS_AT_FIRST = 0.05
_SECONDS_AT_FIRST = 0.2
_LEAST_SECONDS = 1e-4


@dataclass(frozen=True)
class Record:
    """What one case did: how often it ran, how many runs were findings, how long ago the last one was."""

    operator: str
    runs: float
    findings: float
    last_finding_days: float | None
    seconds: float

    def findings_now(self, half_life: float) -> float:
        """The findings with their age counted in; only the last one's age is known, and stands for all."""
        if self.last_finding_days is None:
            return 0.0
        age: float = 0.5 ** (self.last_finding_days / half_life)
        return min(self.findings, self.runs) * age


@dataclass(frozen=True)
class History:
    """Case id → what it did."""

    records: Mapping[str, Record]

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> History:
        """The history that JSON lines tell; raises UsageError. Cases that never ran are left out."""
        records = {}
        for number, line in enumerate(lines, 1):
            try:
                obj = json.loads(line)
                record = _record(obj)
            except (TypeError, KeyError, ValueError, AttributeError, RecursionError) as error:
                raise UsageError(f"line {number} of the history is no record: {error!r}") from None
            if record.runs > 0:
                records[str(obj["id"])] = record
        return cls(records)


def read(path: Path) -> History:
    """The history that a file holds; raises UsageError if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return History.from_lines(line for line in file if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the history {path}: {error}") from None


def _record(obj: Any) -> Record:
    days = obj["last_finding_days"]
    return Record(
        operator=str(obj["operator"]),
        runs=_number(obj["runs"]),
        findings=_number(obj["findings"]),
        last_finding_days=None if days is None else _number(days),
        seconds=_number(obj["seconds"]),
    )


def _number(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{value!r} is no count, age or duration")
    return number


@dataclass(frozen=True)
class Expected:
    """What a run of a case is expected to give and to cost.

    findings  relative to a run of any case: 1 is as many as the average
    seconds   busy time of the worker
    record    the case's own record, if it has one
    """

    findings: float
    seconds: float
    record: Record | None


@dataclass
class _Sums:
    runs: float = 0.0
    findings: float = 0.0
    busy: float = 0.0

    def add(self, record: Record, half_life: float) -> None:
        self.runs += record.runs
        self.findings += record.findings_now(half_life)
        self.busy += record.runs * record.seconds

    def shrunk_toward(self, findings: float, seconds: float) -> tuple[float, float]:
        """Findings and seconds of a run, drawn towards those of the level above."""
        return (
            (self.findings + _RUNS_FINDINGS * findings) / (self.runs + _RUNS_FINDINGS),
            (self.busy + _RUNS_SECONDS * seconds) / (self.runs + _RUNS_SECONDS),
        )


class Expectations:
    """What is expected of each of some instances, by a history."""

    def __init__(self, history: History, instances: Sequence[Instance], half_life: float = HALF_LIFE) -> None:
        self._history, self._half_life = history, half_life
        self._frontend_of = {one.operator: one.frontend for one in instances}

    def of(self, instance: Instance) -> Expected:
        """What a run of the instance is expected to give and cost."""
        record = self._history.records.get(instance.id)
        findings, seconds = self._levels["operator", instance.operator]
        if record is not None:
            own = _Sums()
            own.add(record, self._half_life)
            findings, seconds = own.shrunk_toward(findings, seconds)
        return Expected(findings / self._levels["all", ""][0], max(seconds, _LEAST_SECONDS), record)

    @cached_property
    def _levels(self) -> dict[tuple[str, str], tuple[float, float]]:
        """(findings, seconds) of a run, for everything, for each frontend and for each operator."""
        sums: dict[tuple[str, str], _Sums] = {("all", ""): _Sums()}
        for operator, frontend in self._frontend_of.items():
            sums.setdefault(("frontend", frontend), _Sums())
            sums.setdefault(("operator", operator), _Sums())
        for record in self._history.records.values():
            places = [("all", ""), ("operator", record.operator)]
            if record.operator in self._frontend_of:
                places.append(("frontend", self._frontend_of[record.operator]))
            for place in places:
                if place in sums:
                    sums[place].add(record, self._half_life)
        levels = {("all", ""): sums["all", ""].shrunk_toward(_FINDINGS_AT_FIRST, _SECONDS_AT_FIRST)}
        for operator, frontend in self._frontend_of.items():
            above = sums["frontend", frontend].shrunk_toward(*levels["all", ""])
            levels["frontend", frontend] = above
            levels["operator", operator] = sums["operator", operator].shrunk_toward(*above)
        return levels
