"""A nested function that assigns its caller's variables."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import register_mutation
from fuzzing.mutate.programs.wrapping import Wrapping


@register_mutation("nonlocal-writes")
class NonlocalWrites(Wrapping):
    """Sound: the variables exist in the caller before the function is defined, and are bound nowhere else;
    the function is called once, where the run was. Such variables are never moved into another function.
    """

    nested = True

    def text(self, number: int, form: str, names: str, captured: list[str]) -> str:
        """The variables, the function and its call."""
        del form, captured
        start = " = ".join(names.split(", "))
        return f"{start} = None\ndef f{number}():\n    nonlocal {names}\n    RUN\nf{number}()"
