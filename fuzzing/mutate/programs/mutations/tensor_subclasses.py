"""A value is computed by a subclass of torch.Tensor."""

from __future__ import annotations

from fuzzing.mutate.programs.expressions import replace_variables
from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.rewriting import Rewriting


@register_mutation("tensor-subclasses")
class TensorSubclasses(Rewriting):
    """Sound: the subclass has no behaviour of its own. Only the value reads it, as no variable holds it."""

    views = False
    forms = ("plain", "function")

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The operand as the subclass, and the value as a plain tensor."""
        operand = parameters["operands"][0]
        marked = replace_variables(value, {operand: f"{operand}.as_subclass(Marked{number})"})
        return f"{parameters['target']} = ({marked}).as_subclass(torch.Tensor)"

    def outer_text(self, number: int, value: str, parameters: Parameters) -> str:
        """The subclass."""
        del value
        own = (
            "    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
            "        return super().__torch_function__(func, types, args, kwargs or {})\n"
        )
        body = own if parameters["form"] == "function" else "    pass\n"
        return f"class Marked{number}(torch.Tensor):\n{body}"
