"""torch.func's transforms of gradients, of whose results only the value is used."""

from __future__ import annotations

from fuzzing.mutate.programs.elementwise import elementwise_operands
from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.rewriting import Rewriting


@register_mutation("gradient-transforms")
class GradientTransforms(Rewriting):
    """Sound: jvp and vjp give the function's own value beside its derivative, computed by the same kernels.
    Only element-wise values of floats, for which torch has both derivatives.
    """

    exact = False
    views = False
    forms = ("jvp", "vjp")

    def fits(self, value: str, operands: Point, result: TensorFacts) -> bool:
        """An element-wise value of floats."""
        return (
            elementwise_operands(value) == frozenset(operands)
            and not any(name in value for name in (">", "<", "==", "!=", ".pow", "logical", "where"))
            and all(facts.dtype == result.dtype for facts in operands.values())
            and result.dtype.is_floating_point
        )

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The transformed lambda and its call."""
        given = ", ".join(parameters["operands"])
        if parameters["form"] == "vjp":
            return f"{parameters['target']}, _{number} = torch.func.vjp(lambda {given}: {value}, {given})"
        ones = ", ".join(f"torch.ones_like({name})" for name in parameters["operands"])
        transformed = f"torch.func.jvp(lambda {given}: {value}, ({given},), ({ones},))"
        return f"{parameters['target']}, _{number} = {transformed}"
