"""What a model of the search is worth, from 0 to 1: strategies by name.

The paper counts models whose comparison passes, which keeps away from combinations known to fail. The others
reward what is new: coverage, or coverage and a failure unlike those before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from fuzzing.compiler_messages import normalize_message
from fuzzing.generate.graph_search.search import SearchStep
from fuzzing.outcomes import Outcome, Phase, Verdict

#: The worth of an accepted model, by what the compiler made of it.
Reward: TypeAlias = Callable[[SearchStep, Outcome], float]

#: The reward that needs no compiler.
COVERAGE = "coverage"


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


def _passes(step: SearchStep, outcome: Outcome) -> float:
    """The paper's: 1 for a passed comparison."""
    del step
    return float(status(outcome) == "DCP")


class _NewFailures:
    """Coverage gain, and 1 for a failure whose status and message were not seen before."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, step: SearchStep, outcome: Outcome) -> float:
        key = status(outcome), normalize_message(outcome.summary)
        if not outcome.verdict.is_failure or key in self._seen:
            return coverage_gain(step)
        self._seen.add(key)
        return 1.0


#: The rewards that ask a compiler, by name; each call makes one for a search.
REWARDS: Mapping[str, Callable[[], Reward]] = MappingProxyType(
    {"pass": lambda: _passes, "new-failure": _NewFailures}
)
