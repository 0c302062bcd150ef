"""Strategies of triage: each says of failures which are one bug. Ours, and those of the papers.

A file of this package registers a function by decorator:

    @register_strategy("mine")
    def mine(failures: Sequence[Failure]) -> list[str]:
        ...

It gives a label for each failure, in their order; equal labels are one bug.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import fuzzing.deduplicate.strategies
from fuzzing.cases import TestCase
from fuzzing.errors import UnknownNameError
from fuzzing.outcomes import Outcome
from fuzzing.triage.signature import Signature, compute_signature
from fuzzing.triage.traits import Traits, read_traits

DEFAULT = "signature"

#: How frontends are called in titles.
FRONTENDS = {"onnx": "ONNX", "torch": "PyTorch", "keras": "Keras"}


@dataclass(frozen=True)
class Failure:
    """A case and what it did; `reduced` if it is what a reduction left, `traits` what that tells of it."""

    case: TestCase
    outcome: Outcome
    reduced: bool = False
    traits: Traits | None = None

    @property
    def frontend(self) -> str:
        """The part of the compiler that loads the case, as titles call it."""
        frontend = self.case.program.frontend
        return FRONTENDS.get(frontend, frontend)

    def signature(self) -> Signature:
        """Our signature."""
        traits = (self.traits or read_traits(self.case)) if self.reduced else None
        return compute_signature(self.outcome, self.case.provenance.operator, self.frontend, traits)


Strategy = Callable[[Sequence[Failure]], list[str]]
_STRATEGIES: dict[str, Strategy] = {}


def register_strategy(name: str) -> Callable[[Strategy], Strategy]:
    """Decorator: makes a function known as the strategy of this name."""

    def register(function: Strategy) -> Strategy:
        _STRATEGIES[name] = function
        return function

    return register


def get_strategy(name: str) -> Strategy:
    """The strategy of this name; raises UnknownNameError."""
    if name not in names():
        raise UnknownNameError(f"no strategy of triage is called {name!r}; there are {', '.join(names())}")
    return _STRATEGIES[name]


def names() -> list[str]:
    """Every strategy's name, sorted."""
    for module in pkgutil.iter_modules(fuzzing.deduplicate.strategies.__path__):
        importlib.import_module(f"fuzzing.deduplicate.strategies.{module.name}")
    return sorted(_STRATEGIES)
