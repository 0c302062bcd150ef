"""A tensor is taken apart along its first axis and put together again."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.rewriting import Rewriting

#: Unrolled loops of more slices make compilers slow without making them do anything else.
_MOST_SLICES = 6


@register_mutation("tensor-iteration")
class TensorIteration(Rewriting):
    """Sound: the parts hold all elements, in order; none is computed. The result is contiguous, so later sums
    may add in another order. Views of an operand are left out: a later write would no longer reach it.
    """

    exact = False
    views = False
    forms = ("iterate", "generator", "unbind", "chunk", "index")

    def fits(self, value: str, operands: Point, result: TensorFacts) -> bool:
        """A short first axis."""
        del value, operands
        return len(result.shape) >= 1 and 0 < result.shape[0] <= _MOST_SLICES

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The parts, and the tensor made of them."""
        whole, row = f"w{number}", f"row{number}"
        made = {
            "iterate": f"torch.stack([{row} for {row} in {whole}])",
            "generator": f"torch.stack(list({row} for {row} in {whole}))",
            "unbind": f"torch.stack({whole}.unbind(0))",
            "chunk": f"torch.cat({whole}.chunk(2))",
            "index": f"torch.stack([{whole}[{row}] for {row} in range(len({whole}))])",
        }[parameters["form"]]
        return f"{whole} = {value}\n{parameters['target']} = {made}"
