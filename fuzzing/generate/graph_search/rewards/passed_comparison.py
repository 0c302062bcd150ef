"""The reward `pass`, the paper's: 1 for a passed comparison."""

from __future__ import annotations

from fuzzing.generate.graph_search.rewards import ModelRun, Reward, register_reward, status
from fuzzing.generate.graph_search.search import SearchStep


@register_reward("pass")
class PassedComparison(Reward):
    """1 for a model that the compiler runs like the reference, else 0."""

    def __call__(self, step: SearchStep, run: ModelRun) -> float:
        """The worth of a model."""
        del step
        return float(status(run.outcome) == "DCP")
