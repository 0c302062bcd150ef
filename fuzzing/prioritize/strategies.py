"""Strategies: each file of this package may register one by decorator.

A strategy returns each instance once, in order, with an explanation of its rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Protocol

from fuzzing.prioritize.instances import Instance
from fuzzing.registry import Registry

#: The seed of OPERA's released code.
SEED = 1


class Suite(Protocol):
    """What the compiler's own tests of one frontend cover.

    operators  number of tests of each operator
    instances  the tests themselves, if recorded; else empty
    """

    @property
    def operators(self) -> Mapping[str, int]:
        """Operator → number of tests."""
        ...

    @property
    def instances(self) -> Sequence[Instance]:
        """The tests."""
        ...


#: The lines that each case covers: (file, line).
Coverage = Mapping[str, frozenset[tuple[str, int]]]


@dataclass(frozen=True)
class Context:
    """Inputs of a strategy beside the instances.

    suites    the compiler's own tests by frontend, "" for all others; uncounted ones are missing
    change    a `fuzzing.prioritize.change.Change`; None if there is none
    history   a `fuzzing.prioritize.change.history.History`; None if there is none
    coverage  case id → lines of the frontend's files that it runs; None if it was not measured
    seed      of every random choice
    backend   the compiler, "" for none in particular
    options   a strategy's own settings, by name
    explain   whether `Ranked.why` should be complete, which takes time
    """

    suites: Mapping[str, Suite] = field(default_factory=dict)
    change: Any = None
    history: Any = None
    coverage: Coverage | None = None
    seed: int = SEED
    backend: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    explain: bool = False

    def suite(self, frontend: str) -> Suite | None:
        """The compiler's own tests of a frontend; None if they were not counted."""
        return self.suites.get(frontend, self.suites.get(""))


@dataclass(frozen=True)
class Ranked:
    """One rank of an order: the instance, and the explanation (plain JSON)."""

    instance_index: int
    why: Mapping[str, Any] = field(default_factory=dict)


Rank = Callable[[Sequence[Instance], Context], Iterator[Ranked]]
_STRATEGIES: Registry[Rank] = Registry("strategy", "fuzzing.prioritize", deep=True)


register_strategy = _STRATEGIES.register
names = _STRATEGIES.names
get = _STRATEGIES.get


def shuffle(indices: Sequence[int], instances: Sequence[Instance], seed: int) -> list[int]:
    """The indices in a random order that depends only on the seed and the cases' ids."""
    key = seed.to_bytes(16, "little", signed=True)

    def draw(at: int) -> bytes:
        return blake2b(instances[at].id.encode(), digest_size=16, key=key).digest()

    return sorted(sorted(indices), key=draw)
