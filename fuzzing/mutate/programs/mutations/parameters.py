"""A value goes through a module that multiplies it by ones: a parameter, a buffer, or one of a list."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.rewriting import Rewriting

_MAKE = "torch.nn.Parameter(torch.ones({shape}, dtype={dtype}), requires_grad=False)"
#: What `__init__` keeps, and the factor in `forward`.
_FORMS = {
    "parameter": ("self.scale = {ones}", "self.scale"),
    "buffer": ("self.register_buffer('scale', {ones}.detach(), persistent=False)", "self.scale"),
    "list": ("self.scales = torch.nn.ParameterList([{ones}, {ones}])", "self.scales[-1]"),
    "dict": ("self.scales = torch.nn.ParameterDict({{'one': {ones}}})", "self.scales['one']"),
    "nested": (
        "self.inner = torch.nn.Module()\nself.inner.scale = {ones}",
        "self.get_parameter('inner.scale')",
    ),
    "replaced": ("self.scale = {ones}", "torch.ones_like(self.scale)"),
    "hook": (
        "self.scale = {ones}\n"
        "self.register_forward_pre_hook(lambda part, given: (given[0] * part.scale,))\n"
        "self.register_forward_hook(lambda part, given, made: made * part.scale)",
        "self.scale",
    ),
    "sequence": (
        "self.scale = {ones}\nself.parts = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Dropout(0.0))",
        "self.parts(self.scale)",
    ),
}


@register_mutation("parameters")
class ModuleParameters(Rewriting):
    """Sound: a factor of one changes no real number, and a parameter of the result's type promotes nothing.

    The product is contiguous where the value was not dense, so later sums may add in another order. Complex
    numbers are left out, whose zeros may change their sign; so are bools, and views of an operand, which a
    later write would no longer reach.
    """

    exact = False
    views = False
    forms = tuple(_FORMS)

    def fits(self, value: str, operands: Point, result: TensorFacts) -> bool:
        """Real numbers."""
        del value, operands
        return not result.dtype.is_complex and str(result.dtype) != "torch.bool"

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The call."""
        return f"{parameters['target']} = scaled{number}({value})"

    def outer_text(self, number: int, value: str, parameters: Parameters) -> str:
        """The module; its parameter has the result's last axis, if there is one."""
        del value
        shape = tuple(parameters["shape"][-1:])
        keep, factor = _FORMS[parameters["form"]]
        ones = _MAKE.format(shape=shape, dtype=parameters["dtype"])
        body = "\n".join(f"        {line}" for line in keep.format(ones=ones).split("\n"))
        return (
            f"class Scaled{number}(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            f"{body}\n\n    def forward(self, item):\n        return item * {factor}\n\n\n"
            f"scaled{number} = Scaled{number}().eval()\n"
        )
