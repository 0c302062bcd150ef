"""Other ways to bind a variable: walrus, match, del, a global, a chain of targets."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.rewriting import Rewriting


@register_mutation("bindings")
class Bindings(Rewriting):
    """Sound: each form binds the same tensor once; what a form binds beside it is not read again."""

    forms = ("walrus", "match", "delete", "chain", "subscript", "swap")

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The binding."""
        target, other, operand = parameters["target"], f"w{number}", parameters["operands"][0]
        return {
            "walrus": f"if ({other} := {value}) is not None:\n    {target} = {other}",
            "match": f"match ({value}, {number}):\n"
            f"    case ({other}, {number}):\n        {target} = {other}\n"
            "    case _:\n        raise ValueError",
            "delete": f"{other} = {value}\n{target} = {other}\ndel {other}",
            "chain": f"{other} = {target} = {value}",
            "subscript": f"{other} = [None, {operand}]\n{other}[0], {target} = {other}[1], {value}",
            "swap": f"{other}, {target} = {value}, {operand}\n{other}, {target} = {target}, {other}",
        }[parameters["form"]]
