"""A shard: a batch of cases for one runner, as a JSON file that `python -m fuzzing.execute` reads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from fuzzing.errors import UsageError
from fuzzing.execute.limits import Limits


@dataclass(frozen=True)
class Shard:
    """Cases, toolchain and bounds of one run.

    corpus     folder of the cases
    cases      their ids, in the order of execution
    toolchain  digest, copied into the outcomes
    python     interpreter with the compiler
    fresh      a new process for every single run: evidence instead of speed. The first repeat of a case has
               an interpreter of its own; others are forked, each repeat by another one
    forked     with `fresh`: the first repeat is forked too, by an interpreter that ran no case
    unforked   with `forked`: the cases whose first repeat has an interpreter of its own all the same
    repeats    how often each case is run
    budget_s   stop drawing cases after so many seconds; None for no bound
    ablate     find the failing component by the backend's ablation, for the first repeat of a case only
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
    forked: bool = False
    unforked: tuple[str, ...] = ()
    repeats: int = 1
    limits: Limits = field(default_factory=Limits)
    budget_s: float | None = None
    ablate: bool = False

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
            *self.unforked,
        )
        if not all(isinstance(text, str) for text in texts):
            raise UsageError("a shard's corpus, cases, backend and the like must be texts")
        if self.budget_s is not None and not self.budget_s > 0:
            raise UsageError(f"a shard's budget must be above 0 seconds, not {self.budget_s}")

    def to_json(self) -> dict[str, Any]:
        """The shard as JSON."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        lists = {"cases": list(self.cases), "unforked": list(self.unforked)}
        return plain | lists | {"limits": self.limits.to_json()}

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> Shard:
        """The inverse of `to_json`; raises UsageError."""
        try:
            given = dict(obj)
            limits = Limits.from_json(given.pop("limits"))
            cases, unforked = tuple(given.pop("cases")), tuple(given.pop("unforked", ()))
            return cls(cases=cases, unforked=unforked, limits=limits, **given)
        except (TypeError, KeyError, ValueError) as error:
            raise UsageError(f"this is not a shard: {error}") from None

    @classmethod
    def read(cls, path: Path) -> Shard:
        """The shard in a file; raises UsageError."""
        try:
            return cls.from_json(json.loads(path.read_bytes()))
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read the shard {path}: {error}") from None

    @property
    def case(self) -> str:
        """The id of the one case, for programs that take one. Raises UsageError if there are more or none."""
        if len(self.cases) != 1:
            raise UsageError(f"this takes a shard of one case, not of {len(self.cases)}")
        return self.cases[0]
