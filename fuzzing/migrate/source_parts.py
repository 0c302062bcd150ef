"""Parts of a source, assigned by name: several processes migrate them at once, or one those of a change."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from zlib import crc32

from fuzzing.cases import TestCase
from fuzzing.errors import UsageError
from fuzzing.migrate.sources import Skip, Source
from fuzzing.prioritize.change import Change, spelled_operators
from fuzzing.prioritize.change.operator_names import name as operator_name


class Selection(Protocol):
    """The tests of a source that are migrated."""

    def contains(self, name: str) -> bool:
        """Whether it has the tests of this name: of an operator, an API or a file of tests."""


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


@dataclass(frozen=True)
class OperatorsOfChange:
    """The tests of the operators that the changed code names; `names` are `OperatorName.bare`."""

    names: frozenset[str]

    @classmethod
    def of(cls, change: Change) -> OperatorsOfChange:
        """Those of a change; without names if its code is every operator's, or none's."""
        return cls(frozenset(operator_name(spelling).bare for spelling in spelled_operators(change)))

    def contains(self, name: str) -> bool:
        """Whether a test is of such an operator; `layers/conv_test.py` is conv's, `fft.rfft` is torch's."""
        last = name.rpartition("/")[2].removesuffix(".py")
        return any(operator_name(spelling).bare in self.names for spelling in (last, f"torch.{last}"))


def migrate_source(
    source: Source, part: Selection | None, options: Mapping[str, int | str] | None = None
) -> Iterator[TestCase | Skip]:
    """The source's cases, or those of one part or of some operators.

    A source whose function takes a `part` skips the others' work; any other builds all tests, filtered by
    name.

    options  of a generated source, such as seed and count; raises UsageError for one that it does not have
    """
    if isinstance(part, OperatorsOfChange) and not part.names:
        return iter(())  # before the library is imported
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
