"""What of the frontend took the program's operators to the compiler's own."""

from __future__ import annotations

from fuzzing.cases import OnnxModel
from fuzzing.errors import UnreadableError
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.localise.facts import Fact
from fuzzing.localise.failure import Failure
from fuzzing.localise.ways.base import register_way
from fuzzing.outcomes import Phase

#: Names that are told; a program with more operators is to be reduced first.
_MOST = 8


@register_way("converter")
def converter(failure: Failure) -> Fact | None:
    """The frontend's converters that the case went through; of one that raises the last one."""
    noted = failure.noted("converter")
    if not noted:
        return _translators(failure)
    if failure.outcome.phase is Phase.CONVERT:
        return Fact("converter", noted[-1:], "the last converter that began before the conversion failed")
    more = f", and {len(noted) - _MOST} more" if len(noted) > _MOST else ""
    return Fact("converter", noted[:_MOST], f"noted while the program was converted{more}")


def _translators(failure: Failure) -> Fact | None:
    """For a frontend of native code, whose translators have the operators' names: those of the model."""
    program = failure.case.program
    if not failure.backend.translates or not isinstance(program, OnnxModel):
        return None
    try:
        graph = from_onnx(program.model)
    except UnreadableError:
        return None
    found = tuple(dict.fromkeys(node.op for node in graph.nodes))
    how = f"the frontend has a translator for each operator (here of opset {graph.opset}); those of the model"
    return Fact("converter", found[:_MOST], how)
