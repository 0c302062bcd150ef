"""Past results of cases, for one target and backend, and the expectations from them.

One JSON object a line:

    {"id": case id, "operator": op, "runs": n, "findings": n, "last_finding_days": float | null, "seconds": s}

Few cases have run often, so a case's estimate is shrunk towards its operator's, an operator's towards its
frontend's, and a frontend's towards all: each level counts as a number of runs. A case that never ran has its
operator's estimate.
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

#: Days after which a finding counts half. An estimate: the compilers release every 4 to 12 weeks, and what
#: broke in the last release is more likely to be fixed than what broke last week.
HALF_LIFE = 30.0
#: Number of runs that an operator's record counts for, and likewise upwards. Estimates: findings are rare, so
#: a case's own record needs some tens of runs to be more informative than its operator's; seconds vary
#: little.
_RUNS_FINDINGS = 20.0
_RUNS_SECONDS = 3.0
#: Findings and seconds of a run without any record: of 1,884 ONNX node tests on four compilers some 1 in 20
#: were bad outcomes, and most take far less than a second.
_FINDINGS_AT_FIRST = 0.05
_SECONDS_AT_FIRST = 0.2
_LEAST_SECONDS = 1e-4


@dataclass(frozen=True)
class Record:
    """Results of one case: number of runs and of findings, and the age of the last finding."""

    operator: str
    runs: float
    findings: float
    last_finding_days: float | None
    seconds: float

    def findings_now(self, half_life: float) -> float:
        """The findings weighted by age; only the last one's age is known, and is used for all."""
        if self.last_finding_days is None:
            return 0.0
        age: float = 0.5 ** (self.last_finding_days / half_life)
        return min(self.findings, self.runs) * age


@dataclass(frozen=True)
class History:
    """Case id → its record."""

    records: Mapping[str, Record]

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> History:
        """The history in JSON lines; raises UsageError. Cases that never ran are left out."""
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
    """The history in a file; raises UsageError if it cannot be read."""
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
    """Expected findings and cost of a run of a case.

    findings  relative to the average over all cases, which is 1
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
        """Findings and seconds of a run, shrunk towards those of the level above."""
        return (
            (self.findings + _RUNS_FINDINGS * findings) / (self.runs + _RUNS_FINDINGS),
            (self.busy + _RUNS_SECONDS * seconds) / (self.runs + _RUNS_SECONDS),
        )


class Expectations:
    """The expectations for some instances, by a history."""

    def __init__(self, history: History, instances: Sequence[Instance], half_life: float = HALF_LIFE) -> None:
        self._history, self._half_life = history, half_life
        self._frontend_of = {one.operator: one.frontend for one in instances}

    def of(self, instance: Instance) -> Expected:
        """Expected findings and cost of a run of the instance."""
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
