"""Cost of the shards of one step of a campaign, from their end events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class StepCost:
    """The sum over the shards of one step.

    runs        number of outcomes
    seconds     wall time of the shards, with the compilers' import
    busy        seconds in which workers had a case, summed over workers
    workers     worker processes at a time
    respawns    workers that were replaced
    phases      phase → seconds, summed over workers
    references  expected outputs that were not computed again
    """

    runs: int = 0
    seconds: float = 0.0
    busy: float = 0.0
    workers: int = 1
    respawns: int = 0
    phases: Mapping[str, float] = field(default_factory=dict)
    references: int = 0

    @property
    def overhead(self) -> float | None:
        """Wall time of all workers divided by their busy time: 1.0 is a harness without cost."""
        return self.seconds * self.workers / self.busy if self.busy else None

    @property
    def rate(self) -> float | None:
        """Runs per second."""
        return self.runs / self.seconds if self.seconds else None

    @classmethod
    def of_event(cls, event: Mapping[str, Any], workers: int) -> StepCost:
        """Parses a shard's end event; missing fields count as zero."""
        return cls(
            runs=int(event.get("outcomes", 0)),
            seconds=float(event.get("seconds", 0.0)),
            busy=float(event.get("busy", 0.0)),
            workers=workers,
            respawns=int(event.get("respawns", 0)),
            phases={str(name): float(spent) for name, spent in dict(event.get("phases", {})).items()},
            references=int(dict(event.get("cached", {})).get("references", 0)),
        )

    def __add__(self, other: StepCost) -> StepCost:
        phases = dict(self.phases)
        for name, spent in other.phases.items():
            phases[name] = phases.get(name, 0.0) + spent
        return StepCost(
            self.runs + other.runs,
            self.seconds + other.seconds,
            self.busy + other.busy,
            max(self.workers, other.workers),
            self.respawns + other.respawns,
            phases,
            self.references + other.references,
        )

    def to_json(self) -> dict[str, Any]:
        """The work as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> StepCost:
        """The inverse of `to_json`."""
        return cls(**obj)
