"""The searches: which of many switches cures a failure, and from which place on something is wrong.

Nothing here knows what is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from fuzzing.reduce.engine import CLEAN, SAME, Pass, ReductionSpec, ddmin, find_single, reduce

Names = tuple[str, ...]


class Effect(Enum):
    """What it does to a failure when some parts are left out."""

    CURED = "cured"
    NONE = "none"
    OTHER = "other"  # it fails otherwise: the compiler cannot do without so much


def find_smallest_cure(parts: Sequence[str], without: Callable[[Names], Effect]) -> Names | None:
    """The smallest set found whose absence cures, none of which can be kept; None if none was found.

    Tests all parts together first. Of a block without which the compiler fails otherwise the halves are
    asked; one without which the failure stays as it was is done with. What cures is made smaller by bisection
    and delta debugging (`fuzzing.reduce.engine`), so that what is left is 1-minimal.
    """
    known: dict[Names, Effect] = {}

    def test(names: Names) -> Effect:
        if names not in known:
            known[names] = without(names)
        return known[names]

    block = _find_curing_block(tuple(parts), test)
    if block is None:
        return None
    classify = lambda sets: [SAME if test(names) is Effect.CURED else CLEAN for names in sets]  # noqa: E731
    return reduce(block, _SPEC, classify).best


def _find_curing_block(parts: Names, test: Callable[[Names], Effect]) -> Names | None:
    """The first block that cures: all, then halves, quarters, … of what cannot go together."""
    waiting = [parts] if parts else []
    while waiting:
        block = waiting.pop(0)
        effect = test(block)
        if effect is Effect.CURED:
            return block
        if effect is Effect.OTHER and len(block) > 1:
            half = len(block) // 2
            waiting += [block[:half], block[half:]]
    return None


def _keep_places(names: Names, places: Sequence[int]) -> Names:
    return tuple(names[place] for place in places)


def _drop_places(names: Names, gone: Sequence[int]) -> Names:
    return tuple(name for place, name in enumerate(names) if place not in gone)


_SPEC = ReductionSpec[Names](
    size=lambda names: (len(names),),
    key="\n".join,
    passes=(
        Pass("single", lambda attempt: find_single(attempt, lambda names: range(len(names)), _keep_places)),
        Pass("cut", lambda attempt: ddmin(attempt, lambda names: range(len(names)), _drop_places)),
    ),
)


def find_first(count: int, wrong: Callable[[int], bool]) -> int:
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
