"""The order in which parameters are drawn: dependencies first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from fuzzing.generate.docter.expressions import names_in
from fuzzing.generate.docter.record import Parameter, Record

_MULTIPLE = re.compile(r"(?P<of>\w+) % \(?(?P<by>[^=]+?)\)? == 0")
_QUOTIENT = re.compile(r"\(?(?P<of>[A-Za-z_]\w*)\)? ?/ ?\(?(?P<by>\w+)\)?")


@cache
def order_parameters(record: Record) -> tuple[Parameter, ...]:
    """The parameters to draw, each after its dependencies; otherwise numbers before tensors."""
    drawn = [item for item in record.parameters if not item.left_out]
    drawn.sort(key=lambda item: (item.place == "call", item.is_tensor))
    edges = _dependencies(record, drawn)
    found: list[Parameter] = []
    waiting = [item.name for item in drawn]
    while waiting:
        ready = next((name for name in waiting if not edges[name] & set(waiting) - {name}), waiting[0])
        waiting.remove(ready)  # in a circle the first goes first, and the checker sees to the rest
        found.append(record.by_name[ready])
    return tuple(found)


def _dependencies(record: Record, drawn: list[Parameter]) -> Mapping[str, set[str]]:
    known = {item.name for item in drawn}
    meanings = {item.symbol: item.expression for item in record.definitions}
    edges: dict[str, set[str]] = {item.name: set() for item in drawn}
    for item in drawn:
        for text in item.expressions():
            for name in names_in(text):
                edges[item.name] |= {name, meanings.get(name, name)} & known
    for symbol, divisors in find_multiples(record).items():
        name = meanings.get(symbol, symbol)
        if name in edges:
            edges[name] |= {other for text in divisors for other in names_in(text)} & known - {name}
    return edges


@cache
def find_multiples(record: Record) -> Mapping[str, tuple[str, ...]]:
    """The divisors of parameters and symbols, from relations `a % b == 0` and lengths `a / b`."""
    found: dict[str, list[str]] = {}
    for relation in record.relations:
        if match := _MULTIPLE.fullmatch(relation.holds):
            found.setdefault(match["of"], []).append(match["by"])
    for item in record.parameters:
        for pattern in item.shape.patterns if item.shape else ():
            for token in pattern:
                if match := _QUOTIENT.search(token):
                    found.setdefault(match["of"], []).append(match["by"])
    return {name: tuple(dict.fromkeys(texts)) for name, texts in found.items()}
