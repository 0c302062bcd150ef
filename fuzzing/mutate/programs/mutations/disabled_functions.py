"""A run in a nested function that torch does not compile, or compiles by other rules."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import register_mutation
from fuzzing.mutate.programs.wrapping import Wrapping


@register_mutation("disabled-functions")
class DisabledFunctions(Wrapping):
    """Sound: the decorators tell torch.compile what to do and leave an eager function as it is; a checkpoint
    without gradients only calls its function. `is_movable` excludes names that are bound elsewhere too.
    """

    forms = ("disable", "not_recursive", "checkpoint", "cached")
    nested = True

    def text(self, number: int, form: str, names: str, captured: list[str]) -> str:
        """The function and its call."""
        del captured
        function = f"f{number}"
        head, call = {
            "disable": ("@torch.compiler.disable\n", f"{function}()"),
            "not_recursive": ("@torch.compiler.disable(recursive=False)\n", f"{function}()"),
            "checkpoint": (
                "from torch.utils.checkpoint import checkpoint\n",
                f"checkpoint({function}, use_reentrant=False)",
            ),
            "cached": ("from functools import lru_cache\n@lru_cache(maxsize=None)\n", f"{function}()"),
        }[form]
        return f"{head}def {function}():\n    RUN\n    return {names}\n{names} = {call}"
