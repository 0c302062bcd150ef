"""The searches: which of many switches cures a failure, and from which place on something is wrong.

Nothing here knows what is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fuzzing.reduce.engine import CLEAN, SAME, Format, Pass, cut, reduce, seek

Names = tuple[str, ...]


def smallest_cure(parts: Sequence[str], cures: Callable[[Names], bool]) -> Names | None:
    """The smallest set found whose absence cures, none of which can be kept; None if none was found.

    Asks first of all parts together, and where that does not cure, since a compiler without that much may
    fail otherwise, of their halves, quarters, … and of each alone. What cures is made smaller by bisection
    and delta debugging (`fuzzing.reduce.engine`), so that what is left is 1-minimal.
    """
    known: dict[Names, bool] = {}

    def asked(names: Names) -> bool:
        if names not in known:
            known[names] = cures(names)
        return known[names]

    block = next((block for block in _blocks(tuple(parts)) if asked(block)), None)
    if block is None:
        return None
    return reduce(block, _FORMAT, lambda sets: [SAME if asked(names) else CLEAN for names in sets]).best


def _blocks(parts: Names) -> Iterator[Names]:
    """All, halves, quarters, … each alone; no block twice."""
    length = len(parts)
    while length:
        yield from (parts[start : start + length] for start in range(0, len(parts), length))
        length = (length + 1) // 2 if length > 1 else 0


def _kept(names: Names, places: Sequence[int]) -> Names:
    return tuple(names[place] for place in places)


def _without(names: Names, gone: Sequence[int]) -> Names:
    return tuple(name for place, name in enumerate(names) if place not in gone)


_FORMAT = Format[Names](
    size=lambda names: (len(names),),
    key="\n".join,
    passes=(
        Pass("single", lambda attempt: seek(attempt, lambda names: range(len(names)), _kept)),
        Pass("cut", lambda attempt: cut(attempt, lambda names: range(len(names)), _without)),
    ),
)


def first_place(count: int, wrong: Callable[[int], bool]) -> int:
    """The first of `count` places at which something is wrong, by bisection; `count` if it is at none.

    What is wrong at one place is taken to be wrong at all later ones; where that does not hold, the place
    found is still one that is wrong, with one before it that is not.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if wrong(middle):
            high = middle
        else:
            low = middle + 1
    return low
