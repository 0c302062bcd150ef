"""A value is written into a tensor that exists before: by out=, copy_, an index, or through a view."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.rewriting import Rewriting

_OUT = ("torch.add(", "torch.sub(", "torch.mul(", "torch.div(", "torch.abs(", "torch.exp(", "torch.sin(")


@register_mutation("preallocated-results")
class PreallocatedResults(Rewriting):
    """Sound: the tensor has the profiled shape and element type, so that writing converts nothing, and no
    other variable. Its strides may differ from the value's, so later sums may add in another order. A value
    that shares memory with an operand is left out: a later write would no longer reach the operand.
    """

    exact = False
    forms = ("out", "copy", "index", "view", "zeros")

    def fits(self, value: str, operands: Point, result: TensorFacts) -> bool:
        """The value has memory of its own."""
        del value
        return all(result.storage != facts.storage for facts in operands.values()) and not result.overlapping

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The tensor, and the write."""
        del number
        target, form = parameters["target"], parameters["form"]
        shape, device = tuple(parameters["shape"]), parameters["operands"][0]
        empty = f"{target} = torch.empty({shape}, dtype={parameters['dtype']}, device={device}.device)\n"
        plain = value.startswith(_OUT) and value.count("(") == 1
        if form == "out" and plain:
            return f"{empty}{value[:-1]}, out={target})"
        if form == "index":
            return f"{empty}{target}[...] = {value}"
        if form == "view":
            return f"{empty}{target}.view(-1)[:] = ({value}).reshape(-1)"
        if form == "zeros":
            return (
                f"{empty}{target}.zero_()\n{target} |= {value}"
                if _is_bool(parameters)
                else _added(empty, target, value)
            )
        return f"{empty}{target}.copy_({value})"


def _is_bool(parameters: Parameters) -> bool:
    return bool(parameters["dtype"] == "torch.bool")


def _added(empty: str, target: str, value: str) -> str:
    """By addition to zeros, which changes no number but the sign of a zero."""
    return f"{empty}{target}.zero_()\n{target} += {value}"
