"""Graph-based fuzzing: models found by tree search for operator-level coverage (ICSE 2021).

The search decides each model by those before it, so the source has no parts. Where its reward asks a
compiler, each model runs in that compiler's sandbox while it is made.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import version
from typing import TYPE_CHECKING

from fuzzing.cases import TestCase
from fuzzing.entry_point import emit_event, note
from fuzzing.errors import InfrastructureError, UsageError
from fuzzing.migrate.sources import Skip, register_source
from fuzzing.rng import derive_seed

if TYPE_CHECKING:
    from fuzzing.generate.graph_search.search import SearchStep

NAME = "graph-search"
LIBRARY = "onnx"
SEED = 0
#: Models of a campaign, the paper's 400.
MODELS = 400
#: The least and the most blocks of a model where none are asked for; the paper's campaigns have 5, 10 and 15.
BLOCKS = (1, 10)
OPSET = 21


@register_source(NAME, library=LIBRARY)
def migrate(
    seed: int = SEED,
    count: int = MODELS,
    blocks: int = 0,
    reward: str = "coverage",
    feedback: str = "",
    ablation: int = 0,
) -> Iterator[TestCase | Skip]:
    """The models of the search, in order; then prints the event `search`, its record.

    blocks    of every model; 0 for 1 to 10
    reward    what the search rewards: `coverage`, or a name of `fuzzing.generate.graph_search.rewards`
    feedback  the backend that other rewards use; its package must be installed here
    ablation  1 to search again with less of the method, without a compiler, for the record
    """
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise InfrastructureError(f"{NAME} needs onnx: pip install onnx ({error})") from error
    from fuzzing.generate import case_builder
    from fuzzing.generate.graph_search.record import run_ablation, to_json
    from fuzzing.generate.graph_search.search import Search, SearchSettings
    from fuzzing.graph.operator_spec import GraphLimits

    if blocks < 0:
        raise UsageError(f"--blocks {blocks}: a model has at least one block")
    settings = SearchSettings((blocks, blocks) if blocks else BLOCKS)
    search, curve = Search(settings, OPSET, GraphLimits()), []
    origin = case_builder.CaseOrigin(NAME, version(LIBRARY), LIBRARY)
    seeds = [derive_seed(seed, NAME, number) for number in range(count)]
    with ExitStack() as opened:
        scores = _Scores(reward, feedback, opened)
        for number, own in enumerate(seeds):
            step = search.advance(own)
            curve.append(search.coverage.of_set()["OLC"])
            case = case_builder.build_case(step.model.generated, own, origin, f"{seed}/{number}")
            search.reward(step, scores.of(step, case))
            yield case
    shares = ", ".join(f"{name} {share:.1%}" for name, share in search.coverage.of_set().items())
    note(f"{NAME}: {shares}; the chooser took {search.choosing_s:.2f} s")
    without = run_ablation(settings, OPSET, seeds) if ablation else {}
    emit_event(event="search", **to_json(search, curve, without))


class _Scores:
    """Computes rewards; runs models on a backend where the reward is about its outcomes."""

    def __init__(self, reward: str, backend: str, opened: ExitStack) -> None:
        from fuzzing.execute.evaluator import Evaluator
        from fuzzing.execute.shard import Shard
        from fuzzing.generate.graph_search import rewards

        if reward not in rewards.names():
            raise UsageError(f"--reward {reward}: there are {', '.join(rewards.names())}")
        self._reward = rewards.get(reward)() if reward != rewards.COVERAGE else None
        if self._reward is not None and not backend:
            raise UsageError(f"--reward {reward} needs a compiler; name one with --feedback")
        if self._reward is not None:
            self._evaluator = opened.enter_context(Evaluator(Shard("", (), backend, "", sys.executable)))

    def of(self, step: SearchStep, case: TestCase) -> float:
        """The worth of a step's model, from 0 to 1."""
        from fuzzing.generate.graph_search.rewards import ModelRun, coverage_gain

        if self._reward is None:
            return coverage_gain(step)
        [run] = self._evaluator.instrumented([case], dict(self._reward.instrumentation))
        return self._reward(step, ModelRun(*run))
