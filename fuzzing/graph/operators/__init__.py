"""The specifications, one small entry for each operator, in files by kind.

An entry registers itself; a further file of this package needs no edit elsewhere.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import fuzzing.graph.operators
from fuzzing.errors import UnknownNameError
from fuzzing.graph.operator import Operator

#: The oldest opset that specifications are written for.
OLDEST = 13

_KNOWN: dict[str, list[Operator]] = {}


def register(*operators: Operator) -> None:
    """Makes operators known. Those of one name stand for that operator from their `since` on."""
    for operator in operators:
        _KNOWN.setdefault(operator.name, []).append(operator)


@cache
def at(opset: int) -> dict[str, Operator]:
    """The specifications that hold at an opset, by name, in alphabetical order."""
    for module in pkgutil.iter_modules(fuzzing.graph.operators.__path__):
        importlib.import_module(f"fuzzing.graph.operators.{module.name}")
    found = {}
    for name in sorted(_KNOWN):
        fitting = [operator for operator in _KNOWN[name] if operator.since <= opset]
        if fitting:
            found[name] = max(fitting, key=lambda operator: operator.since)
    return found


def named(name: str, opset: int) -> Operator:
    """The specification of one operator; raises UnknownNameError."""
    try:
        return at(opset)[name]
    except KeyError:
        raise UnknownNameError(f"no specification of {name} holds at opset {opset}") from None
