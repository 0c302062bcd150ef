"""The edges that a new node may use, by element type, rank and shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fuzzing.graph.intervals import Interval
from fuzzing.graph.types import Shape, TensorType
from fuzzing.rng import Rng

#: An edge, its type, and the bounds on its elements.
PooledEdge: TypeAlias = tuple[int, TensorType, Interval]
#: An element type and a rank.
Kind: TypeAlias = tuple[str, int]

_TRIES = 4


class EdgePool:
    """Edges with their types and bounds; without placeholders made for a single node (released `g.py`)."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._by_kind: dict[Kind, list[PooledEdge]] = {}
        self._by_type: dict[TensorType, list[PooledEdge]] = {}

    def add(self, edge: int, type_: TensorType, range_: Interval) -> None:
        """Makes an edge available."""
        found = edge, type_, range_
        self._by_kind.setdefault((type_.dtype, type_.rank), []).append(found)
        self._by_type.setdefault(type_, []).append(found)

    def pick_primary(
        self, kinds: frozenset[Kind], fits: Callable[[TensorType, Interval], bool]
    ) -> PooledEdge | None:
        """A fitting edge of one of these kinds, all equally likely."""
        groups = [found for kind, found in self._by_kind.items() if kind in kinds]
        return self._pick_fitting(groups, lambda found: fits(found[1], found[2]))

    def pick_matching(self, dtype: str, shape: Shape, allowed: Interval) -> PooledEdge | None:
        """A static edge of this type, with any length where the shape has None, whose values are allowed."""
        if None not in shape:
            group = self._by_type.get(TensorType(dtype, shape))
            return self._pick_fitting([group] if group else [], lambda found: allowed.contains(found[2]))
        group = self._by_kind.get((dtype, len(shape)))

        def fits(found: PooledEdge) -> bool:
            lengths = found[1].shape or ()
            for length, dim in zip(lengths, shape, strict=True):
                if length is None or (length != dim and dim is not None):
                    return False
            return allowed.contains(found[2])

        return self._pick_fitting([group] if group else [], fits)

    def _pick_fitting(
        self, groups: list[list[PooledEdge]], fits: Callable[[PooledEdge], bool]
    ) -> PooledEdge | None:
        """Most edges fit, so a few are tried before all are filtered: the odds stay equal."""
        total = sum(map(len, groups))
        if not total:
            return None
        for _ in range(_TRIES):
            place = self._rng.below(total)
            for group in groups:
                if place < len(group):
                    break
                place -= len(group)
            found = group[place]
            if fits(found):
                return found
        fitting = [found for group in groups for found in group if fits(found)]
        return self._rng.choice(fitting) if fitting else None
