"""Parts of a source, migrated by several processes at once and assigned by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from fuzzing.cases import TestCase
from fuzzing.errors import UsageError
from fuzzing.migrate.sources import Skip, Source


@dataclass(frozen=True)
class Part:
    """The part `number` of `count`, counted from 1; together the parts contain each name once."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Part:
        """The part in "2/4"; raises UsageError."""
        found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
        part = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not 1 <= part.number <= part.count:
            raise UsageError(f"a part is a number and how many there are, such as 1/4 to 4/4, not {text!r}")
        return part

    def contains(self, name: str) -> bool:
        """Whether a name belongs to this part, independent of process and machine."""
        return crc32(name.encode()) % self.count == self.number - 1


def migrate_source(
    source: Source, part: Part | None, options: Mapping[str, int | str] | None = None
) -> Iterator[TestCase | Skip]:
    """The source's cases, or those of one part.

    A source whose function takes a `part` skips the others' work; any other builds all tests, filtered by
    name.

    options  of a generated source, such as seed and count; raises UsageError for one that it does not have
    """
    taken = inspect.signature(source.migrate).parameters
    given: dict[str, Any] = dict(options or {})
    unknown = sorted(given.keys() - taken.keys())
    if unknown:
        raise UsageError(f"{source.name} has no option {unknown[0]}; leave out --{unknown[0]}")
    if part is None or "part" in taken:
        return source.migrate(**given, **({} if part is None else {"part": part}))
    return (item for item in source.migrate(**given) if part.contains(_name(item)))


def _name(item: TestCase | Skip) -> str:
    return item.test if isinstance(item, Skip) else item.provenance.test
