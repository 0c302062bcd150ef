"""Generators of operator graphs: each is one file, or one package, of this package that registers by name.

A generator is made for one set of settings and gives the graph of any seed, so that model 7 of a run can be
made alone, in any process: its seed is `fuzzing.rng.derive(run's seed, 7)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from fuzzing.registry import Registry

if TYPE_CHECKING:
    from fuzzing.generate.isra.settings import GeneratorSettings
    from fuzzing.generate.isra.solver import GeneratedGraph


class Generator(Protocol):
    """Makes graphs under one set of settings."""

    def generate(self, seed: int) -> GeneratedGraph:
        """The graph of this seed, and where the elements of its data come from."""
        ...


#: Makes a generator; raises UsageError for settings under which it can make no graph.
GeneratorFactory = Callable[["GeneratorSettings"], Generator]

_GENERATORS: Registry[GeneratorFactory] = Registry("generator", "fuzzing.generate")
M = TypeVar("M", bound=GeneratorFactory)


def register_generator(name: str) -> Callable[[M], M]:
    """Decorator: makes a class, or a function, known as the generator of this name.

    `get` imports no other file if that, or its package, has the name too.
    """

    def register(factory: M) -> M:
        _GENERATORS.add(factory, name)
        return factory

    return register


def list_names() -> tuple[str, ...]:
    """The names of all generators, sorted. Loads every part of `fuzzing.generate`."""
    return _GENERATORS.names()


def get(name: str) -> GeneratorFactory:
    """The generator `name`; raises UnknownNameError that lists those there are."""
    return _GENERATORS.get(name)
