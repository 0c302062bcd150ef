"""The reward `new-failure`: coverage gain, and 1 for a failure unlike those before."""

from __future__ import annotations

from fuzzing.compiler_messages import normalize_message
from fuzzing.generate.graph_search.rewards import ModelRun, Reward, coverage_gain, register_reward, status
from fuzzing.generate.graph_search.search import SearchStep


@register_reward("new-failure")
class NewFailure(Reward):
    """Coverage gain, and 1 for a failure whose status and message were not seen before."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, step: SearchStep, run: ModelRun) -> float:
        """The worth of a model."""
        outcome = run.outcome
        key = status(outcome), normalize_message(outcome.summary)
        if not outcome.verdict.is_failure or key in self._seen:
            return coverage_gain(step)
        self._seen.add(key)
        return 1.0
