"""Loops of one pass: `for`, `while`, `while True` with `break`, each with its `else`."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import register_mutation
from fuzzing.mutate.programs.wrapping import Wrapping


@register_mutation("loops")
class Loops(Wrapping):
    """Sound: each form runs the run exactly once, in the same scope; a run never leaves its block."""

    forms = ("for", "while", "break", "enumerate")

    def text(self, number: int, form: str, names: str, captured: list[str]) -> str:
        """The loop."""
        del names
        turn = f"n{number}"
        if form == "for":
            return f"for {turn} in range(1):\n    RUN\nelse:\n    {turn} = None"
        if form == "while":
            return f"{turn} = 1\nwhile {turn}:\n    {turn} -= 1\n    RUN\nelse:\n    pass"
        if form == "break":
            return f"while True:\n    RUN\n    break\nelse:\n    {turn} = None"
        items = ", ".join([*captured, "None"][:1])
        return f"for {turn}, each{number} in enumerate(({items},)):\n    RUN"
