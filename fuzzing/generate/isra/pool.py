"""The edges that a new node may use, found by element type, rank and shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from fuzzing.draws import Draws
from fuzzing.graph.intervals import Interval
from fuzzing.graph.types import Shape, TensorType

#: An edge, its type, and the bounds on its elements.
Found: TypeAlias = tuple[int, TensorType, Interval]


class Pool:
    """Edges with their types and bounds; not the placeholders made for one node's sake (released `g.py`)."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._types: list[TensorType] = []
        self._edges: list[int] = []
        self._ranges: list[Interval] = []
        self._by_kind: dict[tuple[str, int], list[int]] = {}
        self._by_type: dict[TensorType, list[int]] = {}

    def add(self, edge: int, type_: TensorType, range_: Interval) -> None:
        """Makes an edge available."""
        place = len(self._edges)
        self._edges.append(edge)
        self._types.append(type_)
        self._ranges.append(range_)
        self._by_kind.setdefault((type_.dtype, type_.rank), []).append(place)
        self._by_type.setdefault(type_, []).append(place)

    def lead(
        self,
        dtypes: Iterable[str],
        ranks: Iterable[int],
        within: Callable[[TensorType], Interval],
        takes: Callable[[TensorType], bool],
    ) -> Found | None:
        """An edge of these element types and ranks whose values and type are allowed, all alike likely."""
        by_kind = self._by_kind
        places = [place for dtype in dtypes for rank in ranks for place in by_kind.get((dtype, rank), ())]

        def fits(place: int) -> bool:
            type_ = self._types[place]
            return takes(type_) and within(type_).holds(self._ranges[place])

        return self._one(places, fits)

    def match(self, dtype: str, shape: Shape, allowed: Interval) -> Found | None:
        """A static edge of this type, with any length where the shape has None, whose values are allowed."""
        if None not in shape:
            places = self._by_type.get(TensorType(dtype, shape), [])
        else:
            places = [
                place
                for place in self._by_kind.get((dtype, len(shape)), ())
                if all(
                    found is not None and (found == dim or dim is None)
                    for found, dim in zip(self._types[place].shape or (), shape, strict=True)
                )
            ]
        return self._one(places, lambda place: allowed.holds(self._ranges[place]))

    def _one(self, places: list[int], fits: Callable[[int], bool]) -> Found | None:
        """One of those that fit. Most do, so one is tried before all are looked at: the odds are the same."""
        if not places:
            return None
        place = self._draws.choice(places)
        if not fits(place):
            fitting = [place for place in places if fits(place)]
            if not fitting:
                return None
            place = self._draws.choice(fitting)
        return self._edges[place], self._types[place], self._ranges[place]
