"""Sources of cases: what planning, ranking and reports need of one, whatever it is."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class CatalogPart:
    """A share of a source's tests, migrated by one process into one catalog.

    number, of   "3 of 16", counted from 1
    path         its catalog, there once the part is migrated to its end
    options      further words for `python -m fuzzing.migrate`: seed and count of a generated source
    """

    source: str
    number: int
    of: int
    path: Path
    options: tuple[str, ...] = ()

    @property
    def partial(self) -> Path:
        """What it had given when it was cut off."""
        return self.path.with_suffix(".partial")

    def read(self) -> tuple[Iterator[dict[str, Any]], bool]:
        """The lines there are, streamed, and whether they are all."""
        if self.path.exists():
            return _read_lines(self.path), True
        return (_read_lines(self.partial) if self.partial.exists() else iter(())), False

    def cut_after(self) -> float:
        """Seconds it was given when it was cut off, 0 if it never was."""
        return max((float(line.get("cut_after", 0)) for line in _read_lines(self.partial)), default=0.0)


@dataclass(frozen=True)
class SourceReport:
    """What came of one source, as a report tells it.

    library  where its tests are from, such as "onnx 1.23.2", "" if it does not say
    cases    how many it gave
    skipped  reason → tests that became no case
    whole    how many of its `parts` were migrated to their end
    begun    how many more were cut off; the cases they had given by then count
    failed   why a part could not be migrated, "" if none failed
    """

    source: str
    library: str = ""
    cases: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    parts: int = 1
    whole: int = 1
    begun: int = 0
    failed: str = ""

    @property
    def missing_parts(self) -> int:
        """Parts that are not yet migrated to their end."""
        return self.parts - self.whole

    def to_json(self) -> dict[str, Any]:
        """The account as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> SourceReport:
        """The inverse of `to_json`."""
        return cls(**obj)


class CaseSource(Protocol):
    """Cases to be planned, from one place."""

    def cases(self) -> Iterator[str]:
        """Their ids, in order, streamed."""

    def operators(self, wanted: Collection[str]) -> dict[str, str]:
        """Case → operator, for those of the `wanted` cases of which it is known without reading the case."""

    def account(self) -> SourceReport:
        """Where they come from, and what was left out."""

    def parts(self) -> Sequence[CatalogPart]:
        """What is migrated to get them; () where nothing is."""

    def arguments(self) -> list[str]:
        """How `python -m fuzzing.prioritize` is told of them."""


def distinct(ids: Iterable[str], known: Iterable[str] = ()) -> Iterator[str]:
    """The ids without those met before or `known`; 16 bytes of each are kept, as a million cases may come."""
    seen = set(map(short_id, known))
    for case_id in ids:
        key = short_id(case_id)
        if key not in seen:
            seen.add(key)
            yield case_id


def short_id(case_id: str) -> bytes:
    """The first half of an id: enough to tell cases apart in memory."""
    return bytes.fromhex(case_id)[:16]


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with open(path, encoding="utf-8") as file:
        yield from map(json.loads, file)
