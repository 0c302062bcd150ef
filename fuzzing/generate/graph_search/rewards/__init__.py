"""What a model of the search is worth, from 0 to 1: each strategy is one file here that registers a class.

The paper counts models whose comparison passes, which keeps away from combinations known to fail. The others
reward what is new: operator-level coverage, and beside it failures or parts of the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from fuzzing.generate.graph_search.search import SearchStep
from fuzzing.outcomes import Outcome, Phase, Verdict
from fuzzing.registry import Registry

#: The reward that needs no compiler.
COVERAGE = "coverage"


@dataclass(frozen=True)
class ModelRun:
    """What a compiler made of a model.

    notes  (kind, name), as asked for by the reward's instrumentation
    """

    outcome: Outcome
    notes: tuple[tuple[str, str], ...] = ()


class Reward(Protocol):
    """The worth of accepted models, one after another.

    instrumentation  arguments of `fuzzing.backends.base.Instrumentation` for the run of each model
    """

    instrumentation: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __call__(self, step: SearchStep, run: ModelRun) -> float:
        """The worth of a model."""
        ...


_REWARDS: Registry[Callable[[], Reward]] = Registry("reward", __name__)
register_reward = _REWARDS.register
get = _REWARDS.get


def names() -> tuple[str, ...]:
    """All rewards, `coverage` first."""
    return (COVERAGE, *_REWARDS.names())


def coverage_gain(step: SearchStep) -> float:
    """The share of new facts among all facts of operator-level coverage that a model shows."""
    return min(1.0, step.gain / step.shown)


def status(outcome: Outcome) -> str:
    """The paper's name of an outcome: failed conversion, inference or comparison, or passed comparison."""
    if outcome.verdict is Verdict.PASS:
        return "DCP"
    if outcome.verdict is Verdict.WRONG_RESULT:
        return "DCF"
    return "IF" if outcome.phase is Phase.RUN else "MCF"
