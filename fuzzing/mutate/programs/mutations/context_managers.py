"""Context managers that change nothing: torch's own, and one of the program."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import register_mutation
from fuzzing.mutate.programs.wrapping import Wrapping


@register_mutation("context-managers")
class ContextManagers(Wrapping):
    """Sound: cases are run without gradients and without autocast, which is what torch's managers set; the
    program's own does nothing, and swallows no exception.
    """

    forms = ("no_grad", "set_grad", "autocast", "own", "nested")

    def text(self, number: int, form: str, names: str, captured: list[str]) -> str:
        """The with statement."""
        del names, captured
        if form == "own":
            return (
                f"class Manager{number}:\n    def __enter__(self):\n        return self\n"
                f"    def __exit__(self, *error):\n        return None\n"
                f"with Manager{number}() as manager{number}:\n    RUN"
            )
        manager = {
            "no_grad": "torch.no_grad()",
            "set_grad": "torch.set_grad_enabled(False)",
            "autocast": 'torch.autocast("cpu", enabled=False)',
            "nested": 'torch.no_grad(), torch.autocast("cpu", enabled=False)',
        }[form]
        return f"with {manager}:\n    RUN"
