"""A graph break before a statement: Dynamo compiles the rest of the function as another."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import register_mutation
from fuzzing.mutate.programs.wrapping import Wrapping


@register_mutation("graph-breaks")
class GraphBreaks(Wrapping):
    """Sound: in eager torch each form does nothing to the program's values; text and ids go unused."""

    forms = ("break", "text", "identity", "both")

    def text(self, number: int, form: str, names: str, captured: list[str]) -> str:
        """The break, before the run or on both sides of it."""
        del names
        seen = captured[0] if captured else "None"
        return {
            "break": "torch._dynamo.graph_break()\nRUN",
            "text": f"shown{number} = str(id({seen}))\nRUN",
            "identity": f"kept{number} = {{id({seen}): {seen}}}\nRUN\ndel kept{number}",
            "both": "torch._dynamo.graph_break()\nRUN\ntorch._dynamo.graph_break()",
        }[form]
