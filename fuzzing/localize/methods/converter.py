"""What of the frontend took the program's operators to the compiler's own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fuzzing.cases import OnnxModel
from fuzzing.errors import UnreadableError
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.localize.facts import Fact
from fuzzing.localize.failing_case import FailingCase
from fuzzing.localize.methods.base import register_method
from fuzzing.outcomes import Phase

#: Names that a fact lists; a program with more operators should be reduced first.
_MAX_NAMES = 8


@register_method("converter", after="subgraph")
def converter(failure: FailingCase) -> Fact | None:
    """The frontend's converters that the case went through: of one that raises the last one, else those of
    the operators that the first differing part of the graph has, if that is known."""
    noted_names = failure.noted_names("converter")
    if failure.outcome.phase is Phase.CONVERT and noted_names:
        return Fact(
            "converter", noted_names[-1:], "the last converter that began before the conversion failed"
        )
    how = "noted while the program was converted"
    if not noted_names:
        noted_names, how = _list_translators(failure)
    if not noted_names:
        return None
    blamed = failure.facts["subgraph"].found if "subgraph" in failure.facts else ()
    if of_blamed := _matching_names(noted_names, blamed):
        return Fact("converter", of_blamed, f"{how}; those of the part of the graph that differs")
    more = f", and {len(noted_names) - _MAX_NAMES} more" if len(noted_names) > _MAX_NAMES else ""
    return Fact("converter", noted_names[:_MAX_NAMES], f"{how}{more}")


def _matching_names(names: Sequence[str], operators: Sequence[str]) -> tuple[str, ...]:
    """The names that begin with an operator's name: `Pad`, `Pad._impl_v18`."""
    return tuple(name for name in names if re.split(r"\W", name, maxsplit=1)[0] in operators)


def _list_translators(failure: FailingCase) -> tuple[tuple[str, ...], str]:
    """For a frontend of native code, whose translators have the operators' names: those of the model."""
    program = failure.case.program
    if not failure.backend.has_native_translators or not isinstance(program, OnnxModel):
        return (), ""
    try:
        graph = from_onnx(program.model)
    except UnreadableError:
        return (), ""
    found = tuple(dict.fromkeys(node.op for node in graph.nodes))
    return found, f"the frontend has a translator for each operator (here of opset {graph.opset})"
