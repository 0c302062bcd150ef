"""Maps the parameters of one API to those of another: the assignment of the greatest similarity.

The similarity of two parameters is that of their names, plus the share of common types, plus the nearness of
their positions (DeepREL's classes/argdef.py), each in [0, 1]. Parameters without a common type are never
matched; DeepREL matches them as a last resort and lets the library refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from fuzzing.generate.deeprel.signatures import ANY, Parameter, Signature

_IMPOSSIBLE = -1e6  # any assignment with one such pair fewer is better


@dataclass(frozen=True)
class ParameterMapping:
    """How one signature's arguments become another's.

    pairs       (parameter of the source, parameter of the target), in the order of the target
    similarity  the sum over the pairs
    """

    source: Signature
    target: Signature
    pairs: tuple[tuple[str, str], ...]
    similarity: float


@cache
def map_parameters(
    source: Signature, target: Signature, *, positions: bool = True
) -> ParameterMapping | None:
    """The best mapping; None where a required parameter on either side is left over.

    positions  whether positions count; not where one side is a method, whose tensor has none
    """
    scores = [
        [
            _similarity(one, other, place, positions)
            for other, place in _position_similarities(row, source, target)
        ]
        for row, one in enumerate(source.parameters)
    ]
    found = [(row, column) for row, column in assign(scores) if scores[row][column] > _IMPOSSIBLE / 2]
    rows, columns = {row for row, _ in found}, {column for _, column in found}
    if _lacks_required(source, rows) or _lacks_required(target, columns):
        return None
    pairs = tuple(
        (source.parameters[row].name, target.parameters[column].name)
        for row, column in sorted(found, key=lambda pair: pair[1])
    )
    return ParameterMapping(source, target, pairs, sum(scores[row][column] for row, column in found))


def _position_similarities(row: int, source: Signature, target: Signature) -> list[tuple[Parameter, float]]:
    longest = max(len(source.parameters), len(target.parameters))
    return [(other, 1 - abs(row - column) / longest) for column, other in enumerate(target.parameters)]


def _lacks_required(signature: Signature, matched: set[int]) -> bool:
    return any(
        place not in matched and not parameter.optional
        for place, parameter in enumerate(signature.parameters)
    )


def _similarity(one: Parameter, other: Parameter, place: float, positions: bool) -> float:
    if "self" in (one.name, other.name) and "tensor" not in one.types & other.types:
        return _IMPOSSIBLE  # a method needs its tensor
    types = _type_similarity(one, other)
    return (_name_similarity(one.name, other.name) + types + place * positions) if types else _IMPOSSIBLE


def _type_similarity(one: Parameter, other: Parameter) -> float:
    """The share of the first one's types that the other has; 0.5 if one of them is unknown."""
    if ANY in one.types or ANY in other.types:
        return 0.5
    return len(one.types & other.types) / len(one.types) if (one.types & other.types) - {"none"} else 0.0


@cache
def _name_similarity(one: str, other: str) -> float:
    """1 - the edit distance over the longer's length; a method's tensor is called input."""
    one, other = ("input" if name == "self" else name for name in (one, other))
    return 1 - edit_distance(one, other) / max(len(one), len(other), 1)


def edit_distance(one: str, other: str) -> int:
    """The Levenshtein distance: insertions, deletions and substitutions of letters."""
    before = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        after = [row]
        for column, mine in enumerate(other, 1):
            after.append(min(before[column] + 1, after[-1] + 1, before[column - 1] + (letter != mine)))
        before = after
    return before[-1]


def assign(scores: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """As many pairs (row, column) as possible, no row or column twice, of the greatest sum.

    The Hungarian method with potentials, O(rows²·columns) (Kuhn 1955, Munkres 1957).
    """
    if not scores or not scores[0]:
        return []
    if len(scores) > len(scores[0]):
        turned = assign(list(zip(*scores, strict=True)))
        return sorted((row, column) for column, row in turned)
    columns = len(scores[0])
    rows_at = [0.0] * (len(scores) + 1)
    columns_at = [0.0] * (columns + 1)
    owner = [0] * (columns + 1)  # the row, from 1, that has a column; column 0 is where a search begins
    for row in range(1, len(scores) + 1):
        owner[0] = row
        path = _augment(scores, rows_at, columns_at, owner)
        column = path.pop(0)
        for before in path:
            owner[column] = owner[before]
            column = before
    return sorted((owner[column] - 1, column - 1) for column in range(1, columns + 1) if owner[column])


def _augment(
    scores: Sequence[Sequence[float]], rows_at: list[float], columns_at: list[float], owner: list[int]
) -> list[int]:
    """The shortest augmenting path to a free column, from the end back to 0; updates the potentials."""
    columns = len(columns_at) - 1
    least = [float("inf")] * (columns + 1)
    came = [0] * (columns + 1)
    done = [False] * (columns + 1)
    at = 0
    while owner[at]:
        done[at] = True
        row = owner[at]
        for column in range(1, columns + 1):
            if not done[column]:
                cost = -scores[row - 1][column - 1] - rows_at[row] - columns_at[column]
                if cost < least[column]:
                    least[column], came[column] = cost, at
        nearest = min((c for c in range(1, columns + 1) if not done[c]), key=least.__getitem__)
        step = least[nearest]
        for column in range(columns + 1):
            if done[column]:
                rows_at[owner[column]] += step
                columns_at[column] -= step
            else:
                least[column] -= step
        at = nearest
    path = [at]
    while at:
        at = came[at]
        path.append(at)
    return path
