"""Strategies of triage: each groups failures into bugs. Ours, and those of the papers.

A file of this package registers a function by decorator:

    @register_strategy("mine")
    def mine(failures: Sequence[Failure]) -> list[str]:
        ...

It gives a label for each failure, in their order; equal labels are one bug.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fuzzing.cases import EquivalentModels, TestCase
from fuzzing.outcomes import Outcome
from fuzzing.registry import Registry
from fuzzing.triage.signature import Signature, compute_signature
from fuzzing.triage.traits import Traits, read_traits

DEFAULT = "signature"

#: How frontends are called in titles.
FRONTENDS = {"onnx": "ONNX", "torch": "PyTorch", "keras": "Keras"}


@dataclass(frozen=True)
class Failure:
    """A case and what it did; `reduced` if it is what a reduction left, `traits` what that shows."""

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
        rewritten = isinstance(self.case.program, EquivalentModels)  # its operators are names of rewrites
        operator = "" if rewritten else self.case.provenance.operator
        return compute_signature(self.outcome, operator, self.frontend, traits)


Strategy = Callable[[Sequence[Failure]], list[str]]
_STRATEGIES: Registry[Strategy] = Registry("strategy of triage", "fuzzing.deduplicate.strategies")
register_strategy = _STRATEGIES.register
get_strategy = _STRATEGIES.get
names = _STRATEGIES.names
