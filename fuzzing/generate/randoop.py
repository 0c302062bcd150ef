"""Randoop-like: one node at a time, redrawn until the model is accepted (a baseline of Isra's paper)."""

from __future__ import annotations

from fuzzing.errors import UsageError
from fuzzing.generate.generators import GeneratedGraph, register_generator
from fuzzing.generate.model_drafts import DraftGenerator, ModelDraft
from fuzzing.graph.ir import Graph
from fuzzing.rng import Rng

#: Of one node (released baseline).
MAX_ATTEMPTS = 10_000


@register_generator("randoop")
class Randoop(DraftGenerator):
    """Generates models under some settings; `tries` counts nodes."""

    def generate(self, seed: int) -> GeneratedGraph:
        """The model of this seed; raises UsageError if a node is never accepted."""
        rng = Rng(seed)
        draft = self.new_draft(rng)
        graph = draft.graph()
        for _ in range(rng.between(*self.settings.nodes)):
            graph = self._append_node(draft)
        return draft.to_generated(graph)

    def _append_node(self, draft: ModelDraft) -> Graph:
        mark = draft.mark()
        _, sound = mark
        for _ in range(MAX_ATTEMPTS):
            draft.node()
            graph = self.accepted(draft, sound)
            if graph is not None:
                return graph
            draft.undo_to(mark)
        raise UsageError(
            f"Randoop: none of {MAX_ATTEMPTS} further nodes is valid; ask for other operators (--operators)"
        )
