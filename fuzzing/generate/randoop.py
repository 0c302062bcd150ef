"""Randoop-like: a node at a time, drawn again until the model is accepted (a baseline of Isra's paper)."""

from __future__ import annotations

from fuzzing.draws import Draws
from fuzzing.errors import UsageError
from fuzzing.generate.generators import register_generator
from fuzzing.generate.isra.solver import Generated
from fuzzing.generate.syntax import Draft, Drafting
from fuzzing.graph.ir import Graph

#: Of one node (released baseline).
MOST_TRIES = 10_000


@register_generator("randoop")
class Randoop(Drafting):
    """Generates models under some settings; `tries` counts nodes."""

    def generate(self, seed: int) -> Generated:
        """The model of this seed; raises UsageError if a node is never accepted."""
        draws = Draws(seed)
        draft = self.begin(draws)
        graph = draft.graph()
        for _ in range(draws.between(*self.settings.nodes)):
            graph = self._with_node(draft)
        return draft.generated(graph)

    def _with_node(self, draft: Draft) -> Graph:
        mark = draft.mark()
        _, sound = mark
        for _ in range(MOST_TRIES):
            draft.node()
            graph = self.accepted(draft, sound)
            if graph is not None:
                return graph
            draft.back(mark)
        raise UsageError(
            f"Randoop: none of {MOST_TRIES} further nodes is valid; ask for other operators (--operators)"
        )
