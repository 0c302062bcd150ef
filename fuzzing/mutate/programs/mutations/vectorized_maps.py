"""vmap: an element-wise value is computed slice by slice, by torch's own transformation."""

from __future__ import annotations

from fuzzing.mutate.programs.elementwise import elementwise_operands
from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.rewriting import Rewriting


@register_mutation("vectorized-maps")
class VectorizedMaps(Rewriting):
    """Sound: an element of the result depends on the elements at its own position only, and all operands have
    the result's shape, so that the axis is the same in each; their element types are equal, because torch
    promotes a slice of rank 0 as its whole tensor or as a number, by version.
    """

    exact = False
    forms = ("0", "-1")

    def fits(self, value: str, operands: Point, result: TensorFacts) -> bool:
        """An element-wise value whose operands all have its shape."""
        return (
            elementwise_operands(value) == frozenset(operands)
            and result.values.numel() > 0
            and len(result.shape) >= 1
            and all(facts.shape == result.shape for facts in operands.values())
            and len({facts.dtype for facts in operands.values()}) == 1
        )

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The mapped lambda and its call."""
        del number
        given, axis = ", ".join(parameters["operands"]), parameters["form"]
        mapped = f"torch.vmap(lambda {given}: {value}, in_dims={axis}, out_dims={axis})"
        return f"{parameters['target']} = {mapped}({given})"
