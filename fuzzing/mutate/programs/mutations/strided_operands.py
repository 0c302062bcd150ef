"""An operand with the same elements in another memory layout: permuted, sliced out, or of higher rank."""

from __future__ import annotations

from fuzzing.mutate.programs.expressions import replace_variables
from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.rewriting import Rewriting


@register_mutation("strided-operands")
class StridedOperands(Rewriting):
    """Sound: the operand has equal elements, and no operator's result depends on strides but by the order in
    which it adds. Values that use `view`, which asks for certain strides, and views, to which a later step
    may write, are left out.
    """

    exact = False
    views = False
    forms = ("transposed", "sliced", "offset", "flipped")

    def fits(self, value: str, operands: Point, result: TensorFacts) -> bool:
        """The first operand has axes."""
        del result
        first = next(iter(operands.values()))
        return len(first.shape) >= 1 and "view" not in value and "strided" not in value

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The operand in another layout, and the value of it."""
        operand, other = parameters["operands"][0], f"w{number}"
        layout = {
            "transposed": f"{operand}.transpose(0, -1).contiguous().transpose(0, -1)",
            "sliced": f"torch.stack([{operand}, {operand}], dim=-1)[..., 0]",
            "offset": f"torch.cat([{operand}, {operand}])[{operand}.shape[0]:]",
            "flipped": f"{operand}.flip(0).flip(0).unsqueeze(-1).expand(*{operand}.shape, 2)[..., 1]",
        }[parameters["form"]]
        replaced = replace_variables(value, {operand: other})
        return f"{other} = {layout}\n{parameters['target']} = {replaced}"
