"""Functions of every form around a run: generators, recursion, decorators, default values, early returns."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import register_mutation
from fuzzing.mutate.programs.wrapping import Wrapping


@register_mutation("functions")
class Functions(Wrapping):
    """Sound: each function is called once where the run was, runs it once and returns what it binds;
    `is_movable` excludes names that are bound elsewhere too. Default values and arguments are the captured
    tensors themselves, which the run may write to but does not rebind.
    """

    forms = ("generator", "recursion", "decorator", "defaults", "arguments", "early", "partial")
    nested = True

    def text(self, number: int, form: str, names: str, captured: list[str]) -> str:
        """The function and its call."""
        function, given, wrapper = f"f{number}", ", ".join(captured), f"wrapped{number}"
        run = f"    RUN\n    return {names}\n"
        defaults = ", ".join(f"{name}={name}" for name in captured)
        head, call = {
            "generator": (f"def {function}():\n    RUN\n    yield {names}\n", f"next({function}())"),
            "recursion": (
                f"def {function}(n{number}):\n    if n{number} > 0:\n"
                f"        return {function}(n{number} - 1)\n{run}",
                f"{function}(2)",
            ),
            "decorator": (
                f"def decorate{number}(function):\n    def {wrapper}(*given, **named):\n"
                f"        return function(*given, **named)\n    return {wrapper}\n"
                f"@decorate{number}\ndef {function}():\n{run}",
                f"{function}()",
            ),
            "early": (
                f"def {function}(early=True):\n    RUN\n    if early:\n        return {names}\n"
                "    return None\n",
                f"{function}()",
            ),
            "defaults": (f"def {function}({'*, ' * bool(captured)}{defaults}):\n{run}", f"{function}()"),
            "partial": (
                f"from functools import partial\ndef {function}({given}):\n{run}",
                f"partial({', '.join([function, *captured])})()",
            ),
            "arguments": (f"def {function}({given}):\n{run}", f"{function}(*[{given}])"),
        }[form]
        return f"{head}{names} = {call}"
