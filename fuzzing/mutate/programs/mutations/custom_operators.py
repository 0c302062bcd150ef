"""A value is computed by an operator that the program registers."""

from __future__ import annotations

import ast

from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.rewriting import Rewriting


@register_mutation("custom-operators")
class CustomOperators(Rewriting):
    """Sound: the operator computes the value from the same operands. Its result is a contiguous copy, as its
    fake kernel says, so later sums may add in another order; it writes to nothing and returns no operand.
    Transforms of torch.func are left out: torch has none below the kernels of an operator.
    """

    exact = False
    forms = ("custom_op",)

    def fits(self, value: str, operands: Point, result: TensorFacts) -> bool:
        """The value names nothing that `forward` defines, and no transform."""
        del result
        named = {node.id for node in ast.walk(ast.parse(value)) if isinstance(node, ast.Name)}
        return (
            "torch.vmap" not in value
            and "torch.func." not in value
            and named <= {"torch", "range", "float", "tuple", *operands}
        )

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The call."""
        del value
        return f"{parameters['target']} = operator{number}({', '.join(parameters['operands'])})"

    def outer_text(self, number: int, value: str, parameters: Parameters) -> str:
        """The operator and its fake kernel, which gives the profiled shape only for the profiled operands."""
        given = ", ".join(f"{name}: torch.Tensor" for name in parameters["operands"])
        names = ", ".join(parameters["operands"])
        copy = ".clone(memory_format=torch.contiguous_format)"
        return (
            f"@torch.library.custom_op('assay_mutant::operator{number}', mutates_args=())\n"
            f"def operator{number}({given}) -> torch.Tensor:\n    return ({value}){copy}\n\n\n"
            f"@operator{number}.register_fake\ndef fake{number}({names}):\n    return ({value}){copy}\n"
        )
