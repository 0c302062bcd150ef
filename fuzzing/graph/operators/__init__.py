"""The specifications, one small entry for each operator, in files by kind.

An entry registers itself; a further file of this package needs no edit elsewhere.
"""

from __future__ import annotations

from functools import cache

from fuzzing.errors import UnknownNameError
from fuzzing.graph.operator import Operator
from fuzzing.registry import load

#: The oldest opset that specifications are written for.
OLDEST = 13

_KNOWN: dict[str, list[Operator]] = {}
_PATTERNS: dict[str, list[Operator]] = {}


def register(*operators: Operator) -> None:
    """Makes operators known. Those of one name stand for that operator from their `since` on."""
    for operator in operators:
        _KNOWN.setdefault(operator.name, []).append(operator)


def register_pattern(*patterns: Operator) -> None:
    """Makes patterns known: what several operators do together, named `pattern.…`, each with `expand`."""
    for pattern in patterns:
        _PATTERNS.setdefault(pattern.name, []).append(pattern)


@cache
def at(opset: int) -> dict[str, Operator]:
    """The specifications that hold at an opset, by name, in alphabetical order."""
    return _holding(_KNOWN, opset)


@cache
def patterns(opset: int) -> dict[str, Operator]:
    """The patterns that hold at an opset, by name, in alphabetical order."""
    return _holding(_PATTERNS, opset)


def _holding(known: dict[str, list[Operator]], opset: int) -> dict[str, Operator]:
    load(__name__)
    found = {}
    for name in sorted(known):
        fitting = [operator for operator in known[name] if operator.since <= opset]
        if fitting:
            found[name] = max(fitting, key=lambda operator: operator.since)
    return found


def named(name: str, opset: int) -> Operator:
    """The specification of one operator; raises UnknownNameError."""
    try:
        return at(opset)[name]
    except KeyError:
        raise UnknownNameError(f"no specification of {name} holds at opset {opset}") from None
