"""try, except, else and finally around a run."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import register_mutation
from fuzzing.mutate.programs.wrapping import Wrapping


@register_mutation("exceptions")
class Exceptions(Wrapping):
    """Sound: the run raises nothing, as its seed is valid. It runs once; what else is raised is caught."""

    forms = ("finally", "raise", "else", "lookup")

    def text(self, number: int, form: str, names: str, captured: list[str]) -> str:
        """The try statement."""
        del names, captured
        done = f"done{number}"
        return {
            "finally": f"{done} = 0\ntry:\n    RUN\nfinally:\n    {done} += 1",
            "raise": f"try:\n    RUN\n    raise ValueError('{done}')\n"
            f"except ValueError as error{number}:\n    {done} = 1",
            "else": f"try:\n    {done} = 1\nexcept RuntimeError:\n    {done} = 0\nelse:\n    RUN",
            "lookup": f"try:\n    {{}}['{done}']\nexcept KeyError:\n    RUN",
        }[form]
