"""DeclGen: draws syntactically correct models until one is accepted (a baseline of Isra's paper)."""

from __future__ import annotations

from fuzzing.errors import UsageError
from fuzzing.generate.generators import GeneratedGraph, register_generator
from fuzzing.generate.model_drafts import DraftGenerator
from fuzzing.rng import Rng

#: After so many models thrown away there will be none. The paper's runs took about a hundred each: the mean
#: of 2.88 nodes left of 1 to 200 means that a node is right two times in three.
MAX_ATTEMPTS = 100_000


@register_generator("declgen")
class DeclGen(DraftGenerator):
    """Generates models under some settings; `tries` counts models.

    The number of nodes is redrawn with each model, as in the release, so mostly small models are accepted.
    """

    def generate(self, seed: int) -> GeneratedGraph:
        """The model of this seed; raises UsageError if none is accepted."""
        rng = Rng(seed)
        for _ in range(MAX_ATTEMPTS):
            draft = self.new_draft(rng)
            for _ in range(rng.between(*self.settings.nodes)):
                draft.node()
            graph = self.accepted(draft)
            if graph is not None:
                return draft.to_generated(graph)
        low, _ = self.settings.nodes
        raise UsageError(
            f"DeclGen: none of {MAX_ATTEMPTS} models of {low} and more nodes is valid; "
            "ask for fewer nodes (--nodes) or for other operators (--operators)"
        )
