"""A tensor becomes Python numbers and a tensor again, which breaks the graph."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.rewriting import Rewriting

#: A list of more numbers only makes guards slow.
_MOST_NUMBERS = 16


@register_mutation("scalar-round-trips")
class ScalarRoundTrips(Rewriting):
    """Sound: Python's int and float hold every number of these types, and no number of them is rounded on the
    way back. Views of an operand are left out: a later write would no longer reach it.
    """

    exact = False
    views = False
    forms = ("numbers", "item", "numpy")

    def fits(self, value: str, operands: Point, result: TensorFacts) -> bool:
        """Few real numbers."""
        del value, operands
        return 0 < result.values.numel() <= _MOST_NUMBERS and not result.dtype.is_complex

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The numbers, and the tensor made of them."""
        whole, target, dtype = f"w{number}", parameters["target"], parameters["dtype"]
        if parameters["form"] == "item" and not parameters["shape"]:
            made = f"torch.tensor({whole}.item(), dtype={dtype})"
        elif parameters["form"] == "numpy":
            made = f"torch.from_numpy({whole}.numpy().copy())"
        else:
            made = f"torch.tensor({whole}.tolist(), dtype={dtype})"
        return f"{whole} = {value}\n{target} = {made}"
