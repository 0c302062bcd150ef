"""Generators of operator graphs: each is one file, or one package, of this package that registers by name.

A generator is made for one set of settings and gives the graph of any seed, so that model 7 of a run can be
made alone, in any process: its seed is `fuzzing.draws.derive(run's seed, 7)`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

import fuzzing.generate
from fuzzing.errors import UnknownNameError

if TYPE_CHECKING:
    from fuzzing.generate.isra.settings import Settings
    from fuzzing.generate.isra.solver import Generated


class Generator(Protocol):
    """Makes graphs under one set of settings."""

    def generate(self, seed: int) -> Generated:
        """The graph of this seed, and where the elements of its data come from."""
        ...


#: Makes a generator; raises UsageError for settings under which it can make no graph.
Make = Callable[["Settings"], Generator]

_GENERATORS: dict[str, Make] = {}
M = TypeVar("M", bound=Make)


def register_generator(name: str) -> Callable[[M], M]:
    """Decorator: makes a class, or a function, known as the generator of this name.

    The file, or the package, must have that name too: `get` imports no other.
    """

    def register(make: M) -> M:
        _GENERATORS[name] = make
        return make

    return register


def names() -> tuple[str, ...]:
    """The names of all generators, sorted. Loads every part of `fuzzing.generate`."""
    for module in pkgutil.iter_modules(fuzzing.generate.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"fuzzing.generate.{module.name}")
    return tuple(sorted(_GENERATORS))


def get(name: str) -> Make:
    """The generator `name`; raises UnknownNameError that lists those there are."""
    if name not in _GENERATORS and name in {
        one.name for one in pkgutil.iter_modules(fuzzing.generate.__path__)
    }:
        importlib.import_module(f"fuzzing.generate.{name}")
    if name not in _GENERATORS:
        raise UnknownNameError(f"no generator is called {name!r}; there are: {', '.join(names())}")
    return _GENERATORS[name]
