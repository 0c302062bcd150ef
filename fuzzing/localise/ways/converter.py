"""What of the frontend took the program's operators to the compiler's own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fuzzing.cases import OnnxModel
from fuzzing.errors import UnreadableError
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.localise.facts import Fact
from fuzzing.localise.failure import Failure
from fuzzing.localise.ways.base import register_way
from fuzzing.outcomes import Phase

#: Names that are told; a program with more operators is to be reduced first.
_MOST = 8


@register_way("converter", after="subgraph")
def converter(failure: Failure) -> Fact | None:
    """The frontend's converters that the case went through: of one that raises the last one, else those of
    the operators that the first differing part of the graph has, if that is known."""
    noted = failure.noted("converter")
    if failure.outcome.phase is Phase.CONVERT and noted:
        return Fact("converter", noted[-1:], "the last converter that began before the conversion failed")
    how = "noted while the program was converted"
    if not noted:
        noted, how = _translators(failure)
    if not noted:
        return None
    blamed = failure.facts["subgraph"].found if "subgraph" in failure.facts else ()
    if of_blamed := _of(noted, blamed):
        return Fact("converter", of_blamed, f"{how}; those of the part of the graph that differs")
    more = f", and {len(noted) - _MOST} more" if len(noted) > _MOST else ""
    return Fact("converter", noted[:_MOST], f"{how}{more}")


def _of(names: Sequence[str], operators: Sequence[str]) -> tuple[str, ...]:
    """The names that begin with an operator's name: `Pad`, `Pad._impl_v18`."""
    return tuple(name for name in names if re.split(r"\W", name, maxsplit=1)[0] in operators)


def _translators(failure: Failure) -> tuple[tuple[str, ...], str]:
    """For a frontend of native code, whose translators have the operators' names: those of the model."""
    program = failure.case.program
    if not failure.backend.translates or not isinstance(program, OnnxModel):
        return (), ""
    try:
        graph = from_onnx(program.model)
    except UnreadableError:
        return (), ""
    found = tuple(dict.fromkeys(node.op for node in graph.nodes))
    return found, f"the frontend has a translator for each operator (here of opset {graph.opset})"
