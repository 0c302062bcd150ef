"""The generator `graph-search`: each model continues the search of those before it."""

from __future__ import annotations

from fuzzing.errors import UsageError
from fuzzing.generate.generators import GeneratedGraph, register_generator
from fuzzing.generate.graph_search.blocks import FUSION, PAPER, load_corpus
from fuzzing.generate.graph_search.rewards import coverage_gain
from fuzzing.generate.graph_search.search import Search, SearchSettings
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.graph import operators


@register_generator("graph-search")
class GraphSearch:
    """Tree search for operator-level coverage under some settings; `nodes` counts blocks.

    Its corpus is that of the blocks whose operators are asked for; raises UsageError if there is none. The
    settings of Isra's edges (picking rate, ranks, mixed types, patterns) do not apply.
    """

    sequential = True

    def __init__(self, settings: GeneratorSettings) -> None:
        known = operators.specifications(settings.opset)
        refused = {name for name, dtypes in settings.left_out if "float32" in dtypes}
        wanted = set(settings.operators or known) - refused
        corpus = load_corpus(PAPER, FUSION).restricted_to(wanted & known.keys())
        if not corpus.blocks:
            raise UsageError(
                "graph-search has no block of these operators alone; ask for more of them with --operators"
            )
        if "float32" not in settings.dtypes:
            raise UsageError("graph-search begins its models with float32; add it to --dtypes")
        self.search = Search(SearchSettings(settings.nodes), settings.opset, settings.limits, corpus)

    def generate(self, seed: int) -> GeneratedGraph:
        """The next model of the search; its reward is the share of new facts among those that it shows."""
        step = self.search.advance(seed)
        self.search.reward(step, coverage_gain(step))
        return step.model.generated
