"""Lengths of inputs, made shorter: those that are alike together first, since they often have to agree."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

from fuzzing.reduce.inputs import lengths_below

K = TypeVar("K", bound=Hashable)


def shortenings(shapes: Mapping[K, Sequence[int]]) -> Iterator[tuple[list[tuple[K, int]], int]]:
    """What to shorten together, as names and axes, and to what; the longest first, to the shortest first.

    Which lengths have to agree is what the library's refusal tells, so all that are alike are tried
    together, then all but one, then each.
    """
    for length in sorted({length for shape in shapes.values() for length in shape}, reverse=True):
        places = [
            (name, axis) for name, shape in shapes.items() for axis, n in enumerate(shape) if n == length
        ]
        for new in lengths_below(length):
            for group in _groups(places):
                yield group, new


def _groups(places: list[tuple[K, int]]) -> list[list[tuple[K, int]]]:
    all_but_one = [[other for other in places if other != place] for place in places]
    groups = [places, *all_but_one, *([place] for place in places)]
    return [group for n, group in enumerate(groups) if group and group not in groups[:n]]
