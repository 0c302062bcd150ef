"""Case sources: each is one file of this package that registers a function by decorator.

A source yields, for every test of its library, the case it became or the reason why it became none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from fuzzing.cases import TestCase
from fuzzing.registry import Registry


@dataclass(frozen=True)
class Skip:
    """A test that did not become a case.

    reason  a sentence without particulars of the test, so that skips can be counted by it
    detail  the particulars
    """

    test: str
    reason: str
    detail: str = ""


Migrate = Callable[[], Iterator[TestCase | Skip]]


@dataclass(frozen=True)
class Source:
    """A named source of cases.

    library  the distribution whose tests are taken, by its name in the package index
    migrate  yields the cases, in the library's order
    needs    further distributions that must be installed, separated by spaces
    """

    name: str
    library: str
    migrate: Migrate
    needs: str = ""


_SOURCES: Registry[Source] = Registry("case source", "fuzzing.migrate")
M = TypeVar("M", bound=Migrate)


def register_source(name: str, *, library: str, needs: str = "") -> Callable[[M], M]:
    """Decorator: registers a function as the source `name`; arguments must be literals (see Source)."""

    def register(function: M) -> M:
        _SOURCES.add(Source(name, library, function, needs), name)
        return function

    return register


names = _SOURCES.names
get = _SOURCES.get
