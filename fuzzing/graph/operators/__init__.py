"""Operator specifications, one entry for each operator, in files by kind.

An entry registers itself; a new file in this package needs no edit elsewhere.
"""

from __future__ import annotations

from functools import cache

from fuzzing.errors import UnknownNameError
from fuzzing.graph.operator_spec import OperatorSpec
from fuzzing.registry import import_submodules

#: The oldest opset that specifications are written for.
OLDEST = 13

_KNOWN: dict[str, list[OperatorSpec]] = {}
_PATTERNS: dict[str, list[OperatorSpec]] = {}


def register(*operators: OperatorSpec) -> None:
    """Registers specifications. Those of one name each hold from their `since` on."""
    for operator in operators:
        _KNOWN.setdefault(operator.name, []).append(operator)


def register_pattern(*patterns: OperatorSpec) -> None:
    """Registers patterns: groups of operators named `pattern.…`, each with `expand`."""
    for pattern in patterns:
        _PATTERNS.setdefault(pattern.name, []).append(pattern)


@cache
def specifications(opset: int) -> dict[str, OperatorSpec]:
    """The specifications that hold at an opset, by name, in alphabetical order."""
    return _select_by_opset(_KNOWN, opset)


@cache
def pattern_specifications(opset: int) -> dict[str, OperatorSpec]:
    """The patterns that hold at an opset, by name, in alphabetical order."""
    return _select_by_opset(_PATTERNS, opset)


def _select_by_opset(known: dict[str, list[OperatorSpec]], opset: int) -> dict[str, OperatorSpec]:
    import_submodules(__name__)
    found = {}
    for name in sorted(known):
        fitting = [operator for operator in known[name] if operator.since <= opset]
        if fitting:
            found[name] = max(fitting, key=lambda operator: operator.since)
    return found


def get_specification(name: str, opset: int) -> OperatorSpec:
    """The specification of one operator; raises UnknownNameError."""
    try:
        return specifications(opset)[name]
    except KeyError:
        raise UnknownNameError(f"no specification of {name} holds at opset {opset}") from None
