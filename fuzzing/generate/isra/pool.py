"""The edges that a new node may use, found by element type, rank and shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fuzzing.draws import Draws
from fuzzing.graph.intervals import Interval
from fuzzing.graph.types import Shape, TensorType

#: An edge, its type, and the bounds on its elements.
Found: TypeAlias = tuple[int, TensorType, Interval]
#: An element type and a rank.
Kind: TypeAlias = tuple[str, int]

_TRIES = 4


class Pool:
    """Edges with their types and bounds; not the placeholders made for one node's sake (released `g.py`)."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._by_kind: dict[Kind, list[Found]] = {}
        self._by_type: dict[TensorType, list[Found]] = {}

    def add(self, edge: int, type_: TensorType, range_: Interval) -> None:
        """Makes an edge available."""
        found = edge, type_, range_
        self._by_kind.setdefault((type_.dtype, type_.rank), []).append(found)
        self._by_type.setdefault(type_, []).append(found)

    def lead(self, kinds: frozenset[Kind], fits: Callable[[TensorType, Interval], bool]) -> Found | None:
        """An edge of one of these kinds that fits, all alike likely."""
        shelves = [found for kind, found in self._by_kind.items() if kind in kinds]
        return self._one(shelves, lambda found: fits(found[1], found[2]))

    def match(self, dtype: str, shape: Shape, allowed: Interval) -> Found | None:
        """A static edge of this type, with any length where the shape has None, whose values are allowed."""
        if None not in shape:
            shelf = self._by_type.get(TensorType(dtype, shape))
            return self._one([shelf] if shelf else [], lambda found: allowed.holds(found[2]))
        shelf = self._by_kind.get((dtype, len(shape)))

        def fits(found: Found) -> bool:
            lengths = found[1].shape or ()
            for length, dim in zip(lengths, shape, strict=True):
                if length is None or (length != dim and dim is not None):
                    return False
            return allowed.holds(found[2])

        return self._one([shelf] if shelf else [], fits)

    def _one(self, shelves: list[list[Found]], fits: Callable[[Found], bool]) -> Found | None:
        """One of those that fit. Most do, so a few are tried before all are looked at: equal odds."""
        total = sum(map(len, shelves))
        if not total:
            return None
        for _ in range(_TRIES):
            place = self._draws.below(total)
            for shelf in shelves:
                if place < len(shelf):
                    break
                place -= len(shelf)
            found = shelf[place]
            if fits(found):
                return found
        fitting = [found for shelf in shelves for found in shelf if fits(found)]
        return self._draws.choice(fitting) if fitting else None
