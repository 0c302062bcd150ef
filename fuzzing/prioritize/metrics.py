"""Metrics of an order, from the ranks at which it first finds each bug."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate

from fuzzing.errors import UsageError


def first_ranks(order: Iterable[int], bugs: Sequence[Hashable | None]) -> list[int]:
    """The rank, from 1, of the first case of `order` that exposes each bug, ascending.

    bugs  the bug that each case exposes, None for none
    """
    found: dict[Hashable, int] = {}
    for rank, place in enumerate(order, 1):
        bug = bugs[place]
        if bug is not None:
            found.setdefault(bug, rank)
    return list(found.values())


def apfd(ranks: Sequence[int], n: int) -> float:
    """Average percentage of faults detected: 1 - (Σ ranks)/(n·m) + 1/(2n), as in OPERA.

    ranks  of the first case, from 1, that exposes each of the m bugs
    n      number of cases

    Raises UsageError without a bug, or for a rank outside 1..n.
    """
    _check(ranks, n)
    return 1 - sum(ranks) / (n * len(ranks)) + 1 / (2 * n)


def rauc(ranks: Sequence[int], n: int, k: float) -> float:
    """RAUC-k: over the first k·n cases, the area under the curve of bugs found, relative to the best order's.

    The curve has a point for each case, joined by trapezoids of width 1; the best order has bug i at position
    i, from 0, as in OPERA. `k` is in (0, 1]. Raises UsageError if there is no area to compare.
    """
    _check(ranks, n)
    length = int(k * n)
    if not 0 < k <= 1 or length < 2:
        raise UsageError(f"RAUC needs at least two cases, and k in (0, 1]; not k = {k} of {n} cases")
    best = _area(range(1, len(ranks) + 1), length)
    return _area(ranks, length) / best


def _area(ranks: Iterable[int], length: int) -> float:
    counts = [0] * length
    for rank in ranks:
        if rank <= length:
            counts[rank - 1] += 1
    curve = list(accumulate(counts))
    return sum(curve) - (curve[0] + curve[-1]) / 2


def _check(ranks: Sequence[int], n: int) -> None:
    if not ranks:
        raise UsageError("without a bug no order is better than another")
    if not all(1 <= rank <= n for rank in ranks):
        raise UsageError(f"a rank lies in 1..{n}")
