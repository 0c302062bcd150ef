"""A value becomes the body of a lambda that is called at once."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.rewriting import Rewriting


@register_mutation("lambdas")
class Lambdas(Rewriting):
    """Sound: the operands are handed over as they are, and nothing happens between definition and call."""

    forms = ("called", "defaults", "captured", "map", "reduce")

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The lambda and its call."""
        target, operands = parameters["target"], parameters["operands"]
        given, defaults = ", ".join(operands), ", ".join(f"{name}={name}" for name in operands)
        return {
            "called": f"{target} = (lambda {given}: {value})({given})",
            "defaults": f"{target} = (lambda {defaults}: {value})()",
            "captured": f"f{number} = lambda: {value}\n{target} = f{number}()",
            "map": f"({target},) = map(lambda {operands[0]}: {value}, [{operands[0]}])",
            "reduce": f"from functools import reduce\n"
            f"{target} = reduce(lambda {operands[0]}, _{number}: {value}, [None], {operands[0]})",
        }[parameters["form"]]
