"""Statements that never run: an `if` or a loop whose condition is false for every input."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import register_mutation
from fuzzing.mutate.programs.wrapping import Wrapping


@register_mutation("dead-branches")
class DeadBranches(Wrapping):
    """Sound: no tensor has an axis of negative length or a negative rank, and a loop over nothing does not
    turn; what stands there is not run. A function that is not called does nothing. The variable of such a
    loop is bound before, since a function around the loop returns it.
    """

    forms = ("rank", "empty", "uncalled", "after")

    def text(self, number: int, form: str, names: str, captured: list[str]) -> str:
        """The run, and dead statements that would write to what it reads."""
        del names
        if not captured:
            return f"n{number} = None\nfor n{number} in ():\n    raise ValueError\nRUN"
        tensor = captured[0]
        return {
            "rank": f"if {tensor}.dim() < 0:\n    {tensor}.zero_()\n    raise RuntimeError\nRUN",
            "empty": f"n{number} = None\nfor n{number} in [][:{tensor}.dim()]:\n    {tensor}.add_(1)\nRUN",
            "uncalled": f"def f{number}():\n    {tensor}.zero_()\n    return {tensor}\nRUN",
            "after": f"RUN\nwhile {tensor}.numel() < 0:\n    {tensor}.resize_(0)\n    break",
        }[form]
