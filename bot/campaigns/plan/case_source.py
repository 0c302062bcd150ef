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
    path         its catalog; exists once the part is complete
    options      further arguments for `python -m fuzzing.migrate`: seed and count of a generated source
    what         of the source it has, where that is no numbered part
    """

    source: str
    number: int
    of: int
    path: Path
    options: tuple[str, ...] = ()
    what: str = ""

    @property
    def name(self) -> str:
        """As in messages: "torch-opinfo, part 3 of 16"."""
        what = self.what or (f"part {self.number} of {self.of}" if self.of > 1 else "")
        return f"{self.source}, {what}" if what else self.source

    @property
    def partial(self) -> Path:
        """The file with the cases of an incomplete part."""
        return self.path.with_suffix(".partial")

    def read(self) -> tuple[Iterator[dict[str, Any]], bool]:
        """The lines, streamed, and whether the part is complete."""
        if self.path.exists():
            return _read_lines(self.path), True
        return (_read_lines(self.partial) if self.partial.exists() else iter(())), False

    def has_begun(self) -> bool:
        """Whether it is complete, or has a case: one that was cut off before its first has not begun."""
        lines, complete = self.read()
        return complete or any("id" in line for line in lines)

    def cut_after(self) -> float:
        """Seconds after which it was last cut off; 0 if never."""
        return max((float(line.get("cut_after", 0)) for line in _read_lines(self.partial)), default=0.0)


@dataclass(frozen=True)
class SourceReport:
    """How far one source is collected.

    library  the library whose tests it takes, such as "onnx 1.23.2"; "" if unknown
    cases    cases so far
    skipped  reason → tests that became no case
    whole    complete `parts`
    begun    incomplete parts with cases
    failed   why a part could not be migrated, "" if none failed
    search   the record of a source that searches, see `fuzzing.generate.graph_search.record`
    seed     what a generated source made its cases from; None for other sources
    drawn    cases of them in the campaign's sample; None where it has all
    """

    source: str
    library: str = ""
    cases: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    parts: int = 1
    whole: int = 1
    begun: int = 0
    failed: str = ""
    search: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    drawn: int | None = None

    @property
    def missing_parts(self) -> int:
        """Incomplete parts."""
        return self.parts - self.whole

    def to_json(self) -> dict[str, Any]:
        """As JSON; `search`, `seed` and `drawn` only for a source that has them."""
        optional = {
            "search": bool(self.search),
            "seed": self.seed is not None,
            "drawn": self.drawn is not None,
        }
        return {name: value for name, value in asdict(self).items() if optional.get(name, True)}

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> SourceReport:
        """The inverse of `to_json`."""
        return cls(**obj)


class CaseSource(Protocol):
    """A source of cases to plan."""

    def cases(self) -> Iterator[str]:
        """Case ids, in order, streamed."""

    def tests(self) -> Iterator[tuple[str, str]]:
        """(case id, name of its test), streamed; "" where only the case has the name."""

    def operators(self, wanted: Collection[str]) -> dict[str, str]:
        """Case → operator, for those `wanted` whose operator is known without reading the case."""

    def account(self) -> SourceReport:
        """How far it is collected, and what was skipped."""

    def parts(self) -> Sequence[CatalogPart]:
        """The parts to migrate; () if none."""

    def arguments(self) -> list[str]:
        """Command-line arguments for `python -m fuzzing.prioritize`."""


def distinct(ids: Iterable[str], known: Iterable[str] = ()) -> Iterator[str]:
    """The ids, without duplicates and those `known`; keeps 16 bytes of each, as there may be a million."""
    seen = set(map(short_id, known))
    for case_id in ids:
        key = short_id(case_id)
        if key not in seen:
            seen.add(key)
            yield case_id


def short_id(case_id: str) -> bytes:
    """The first 16 bytes of an id, unique enough in memory."""
    return bytes.fromhex(case_id)[:16]


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with open(path, encoding="utf-8") as file:
        yield from map(json.loads, file)
