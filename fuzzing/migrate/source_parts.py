"""Parts of a source, migrated by several processes at once and assigned by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
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
    source: Source, part: Part | None, seed: int | None = None, count: int | None = None
) -> Iterator[TestCase | Skip]:
    """The source's cases, or those of one part.

    A source whose function takes a `part` skips the others' work; any other builds all tests, filtered by
    name.

    seed, count  of a generated source, None for its defaults; raises UsageError for any other source
    """
    taken = inspect.signature(source.migrate).parameters
    given = (("seed", seed), ("count", count))
    options: dict[str, Any] = {name: value for name, value in given if value is not None}
    if not options.keys() <= taken.keys():
        raise UsageError(f"{source.name} is not generated, so it has no seed and no count; omit both")
    if part is None or "part" in taken:
        return source.migrate(**options, **({} if part is None else {"part": part}))
    return (item for item in source.migrate(**options) if part.contains(_name(item)))


def _name(item: TestCase | Skip) -> str:
    return item.test if isinstance(item, Skip) else item.provenance.test
