"""A value is computed by a module, or by an autograd function, that stands before `forward`."""

from __future__ import annotations

import ast

from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.rewriting import Rewriting


@register_mutation("modules")
class Modules(Rewriting):
    """Sound: all compute the value from the same operands. The counter's buffer counts its calls and is not
    read; torch.export refuses that write, as the module is a global of the program, so there is a module
    without it. The autograd function's backward is not called, as cases run without gradients.

    A value that names a global of the program or is one of its operands is left out: an autograd function
    must not return its input.
    """

    views = False
    forms = ("module", "counter", "function")

    def fits(self, value: str, operands: Point, result: TensorFacts) -> bool:
        """The value is computed and names nothing that `forward` defines."""
        del result
        named = {node.id for node in ast.walk(ast.parse(value)) if isinstance(node, ast.Name)}
        outside = named <= {"torch", "range", "float", "tuple", *operands}
        return outside and "torch." in value

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The call."""
        del value
        call = f"Function{number}.apply" if parameters["form"] == "function" else f"part{number}"
        return f"{parameters['target']} = {call}({', '.join(parameters['operands'])})"

    def outer_text(self, number: int, value: str, parameters: Parameters) -> str:
        """The class."""
        given = ", ".join(parameters["operands"])
        if parameters["form"] == "module":
            return (
                f"class Part{number}(torch.nn.Module):\n    def forward(self, {given}):\n"
                f"        return {value}\n\n\npart{number} = Part{number}()\n"
            )
        if parameters["form"] == "counter":
            return (
                f"class Part{number}(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                f"        self.register_buffer('calls', torch.zeros((), dtype=torch.int64))\n\n"
                f"    def forward(self, {given}):\n        self.calls += 1\n        return {value}\n\n\n"
                f"part{number} = Part{number}()\n"
            )
        return (
            f"class Function{number}(torch.autograd.Function):\n    @staticmethod\n"
            f"    def forward(ctx, {given}):\n        return {value}\n\n    @staticmethod\n"
            f"    def backward(ctx, *gradients):\n        return gradients\n"
        )
