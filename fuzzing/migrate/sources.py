"""Case sources: each is one file of this package that registers a function by decorator.

A source yields, for every test its library ships, the case it became or the reason why it became none;
nothing is dropped in silence.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import fuzzing.migrate
from fuzzing.cases import TestCase
from fuzzing.errors import UnknownNameError


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
    """A named way to get cases.

    library  the distribution whose tests are taken, as its package index knows it
    migrate  gives the cases, in the library's order
    needs    further distributions that must be installed, separated by spaces
    """

    name: str
    library: str
    migrate: Migrate
    needs: str = ""


_SOURCES: dict[str, Source] = {}
M = TypeVar("M", bound=Migrate)


def register_source(name: str, *, library: str, needs: str = "") -> Callable[[M], M]:
    """Decorator: makes a function known as the source `name`; its words must be plain text (see Source)."""

    def register(function: M) -> M:
        _SOURCES[name] = Source(name, library, function, needs)
        return function

    return register


def names() -> tuple[str, ...]:
    """The names of all sources, sorted. Loads every file of this package, none of the libraries."""
    for module in pkgutil.iter_modules(fuzzing.migrate.__path__):
        if module.name != "__main__":
            importlib.import_module(f"fuzzing.migrate.{module.name}")
    return tuple(sorted(_SOURCES))


def get(name: str) -> Source:
    """The source `name`; raises UnknownNameError that lists those there are."""
    if name not in names():
        raise UnknownNameError(f"no case source is called {name!r}; there are: {', '.join(names())}")
    return _SOURCES[name]
