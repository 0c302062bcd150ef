"""Generators of operator graphs: each is a file or package of this package that registers by name.

A generator is made for one set of settings and makes the graph of any seed, so that model 7 of a run can be
made alone, in any process: its seed is `fuzzing.rng.derive_seed(run's seed, 7)`. A generator that searches
has the attribute `sequential = True`: it is given the seeds of a run in order, all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Graph
from fuzzing.registry import Registry

if TYPE_CHECKING:
    from fuzzing.generate.isra.settings import GeneratorSettings


@dataclass(frozen=True)
class GeneratedGraph:
    """A graph, and the ranges of its data for which the outputs stay finite.

    ranges  of every edge of the graph that a placeholder or an operator gives
    """

    graph: Graph
    ranges: dict[int, Interval]


class Generator(Protocol):
    """Makes graphs under one set of settings."""

    def generate(self, seed: int) -> GeneratedGraph:
        """The graph of this seed, with the ranges of its data."""
        ...


#: Makes a generator; raises UsageError for settings under which it can make no graph.
GeneratorFactory = Callable[["GeneratorSettings"], Generator]

_GENERATORS: Registry[GeneratorFactory] = Registry("generator", "fuzzing.generate")
M = TypeVar("M", bound=GeneratorFactory)


def register_generator(name: str) -> Callable[[M], M]:
    """Decorator: registers a class or function as the generator `name`.

    `get` imports no other file if the file, or its package, has that name.
    """

    def register(factory: M) -> M:
        _GENERATORS.add(factory, name)
        return factory

    return register


def is_sequential(name: str) -> bool:
    """Whether a model of this generator depends on those that it made before, as in a search."""
    return bool(getattr(_GENERATORS.get(name), "sequential", False))


list_names = _GENERATORS.names
get = _GENERATORS.get
