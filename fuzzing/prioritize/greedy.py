"""The greedy search: of one operator's instances always the one whose parameters say most that is new.

What a row has new are the columns whose value nobody has emitted; its score depends on them and on how many
values each column has seen. Both only ever lose by an emission, so an old score is an upper bound of the new
one. Of many rows the best few make a pool whose scores are kept up to date; the others wait, with bounds by
which they are left alone until the pool's best falls to theirs. The order is exactly that of computing every
score after every emission, ties going to the first row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from fuzzing.prioritize.table import Array, Table

#: The score 1 of a column. Reciprocals of 1..24 are exact in it, others rounded down by less than 2e-10.
#: All sums are whole numbers below 2**53 (for up to table.MAX_PARAMETERS), which float64 holds exactly: equal
#: scores come out equal in whatever order they are summed.
UNIT = lcm(*range(1, 25))
_ALL = 2048  # up to so many rows, all are in the pool
_POOL = 1024  # rows in the pool of more
_WATCHED = 1024  # kinds of waiting rows whose bounds are kept up to date

#: The score of a new value in a column that has seen so many (int64 → float64, whole, in UNITs).
Weights = Callable[[Array], Array]


def alike(seen: Array) -> Array:
    """1.5 of OPERA: every new value counts as much."""
    return np.full(len(seen), float(UNIT))


def rarer(seen: Array) -> Array:
    """1.6 of OPERA's code: 1/|seen|, and 1 where nothing has been seen."""
    return (UNIT // np.maximum(seen, 1)).astype(np.float64)


@dataclass(frozen=True)
class Pick:
    """One emission.

    row    of the table
    score  max of the parameters' mean and the pairs' mean, in units of `denominator`
    new    columns whose value was new
    """

    row: int
    score: int
    new: Array


def denominator(table: Table) -> int:
    """What a score is a fraction of: UNIT times the number of ordered pairs of parameters."""
    count = len(table.names)
    return UNIT * max(count * (count - 1), 1)


def search(table: Table, weights: Weights, rows: Sequence[int] | None = None) -> Iterator[Pick]:
    """The table's rows, or those of `rows` (ascending), in greedy order, as long as they have anything new."""
    return _Search(table, weights, range(len(table.first)) if rows is None else rows).picks()


class _Search:
    """What has been seen, and what it is worth to add to it.

    _worth   float64 [2, columns]: what a new value adds to the parameters' mean and to the pairs'
    _left    rows that may still have something new, ascending
    """

    def __init__(self, table: Table, weights: Weights, rows: Sequence[int]) -> None:
        self._ids, self._weights = table.columns, weights
        self._seen = np.zeros(int(table.starts[-1]), np.bool_)
        self._seen[table.seeds] = True
        self._numbers = table.per_column(table.seeds)
        count = len(table.names)
        self._factors = np.zeros((2, len(self._numbers)))
        self._factors[0, :count] = max(count - 1, 1)
        self._factors[1, count:] = 2
        self._worth = self._factors * weights(self._numbers)
        self._left = np.asarray(rows, np.int64)

    def picks(self) -> Iterator[Pick]:
        """Emissions, best first, until nothing is new any more."""
        while (pool := self._gather()) is not None:
            while (best := pool.best(self._worth)) is not None:
                row, score, new = best
                self._emit(row, new)
                pool.emitted(self._ids[row], new)
                yield Pick(row, score, new)

    def _gather(self) -> _Pool | None:
        """The best rows of all that are left, with bounds for the others; None if none has anything new."""
        unseen = ~self._seen[self._ids[self._left]]
        scores = _scores(self._worth, unseen.T)
        useful = scores > 0  # for good: scores never rise
        self._left, unseen, scores = self._left[useful], unseen[useful], scores[useful]
        if not len(self._left):
            return None
        if len(self._left) <= _ALL:
            return _Pool(self._left, self._ids[self._left], unseen)
        order = np.argsort(-scores, kind="stable")
        inside, outside = np.sort(order[:_POOL]), order[_POOL:]
        rows = self._left[inside]
        return _Pool(rows, self._ids[rows], unseen[inside], _bounds(self._left, unseen, scores, outside))

    def _emit(self, row: int, new: Array) -> None:
        self._seen[self._ids[row, new]] = True
        self._numbers[new] += 1
        self._worth[:, new] = self._factors[:, new] * self._weights(self._numbers[new])


def _scores(worth: Array, unseen: Array) -> Array:
    """The greater of both means, times `denominator`, for each column of `unseen`: whole numbers."""
    scores: Array = (worth @ unseen).max(axis=0)
    return scores


@dataclass(frozen=True)
class _Bounds:
    """What the rows outside the pool can score at most.

    patterns   float64 [columns, kinds]: what was new of the best kinds when the pool was made
    first      the least row of each kind
    rest, least   the best score of all other kinds then, -1 if there are none, and the least row that had it
    """

    patterns: Array
    first: Array
    rest: float
    least: int

    def beaten(self, row: int, score: float, worth: Array) -> bool:
        """Whether no row outside can come before this one."""
        if (self.rest, -self.least) > (score, -row):
            return False
        scores = _scores(worth, self.patterns)
        top = scores.max(initial=-1)
        return bool((top, -self.first[scores == top].min(initial=row + 1)) < (score, -row))


def _bounds(rows: Array, unseen: Array, scores: Array, outside: Array) -> _Bounds:
    """Of the rows at `outside`, by falling score and rising row."""
    packed = np.packbits(unseen[outside], axis=1)
    _, found = np.unique(packed.view(f"V{packed.shape[1]}").ravel(), return_index=True)
    kinds = outside[np.sort(found)]  # the first row of each, best first
    watched, rest = kinds[:_WATCHED], kinds[_WATCHED:]
    top = float(scores[rest[0]]) if len(rest) else -1.0
    least = int(rows[rest[0]]) if len(rest) else 0
    return _Bounds(unseen[watched].T.astype(np.float64), rows[watched], top, least)


class _Pool:
    """Rows whose scores are kept up to date.

    bounds   of the rows outside; None if there are none
    """

    def __init__(self, rows: Array, ids: Array, unseen: Array, bounds: _Bounds | None = None) -> None:
        self._rows, self._bounds = rows, bounds
        self._ids = np.ascontiguousarray(ids.T)
        self._unseen = np.ascontiguousarray(unseen.T, np.float64)

    def best(self, worth: Array) -> tuple[int, int, Array] | None:
        """The row to emit, its score and its new columns; None if that may be outside, or there is none."""
        scores = _scores(worth, self._unseen)
        at = int(scores.argmax())  # the first of those alike
        row, score = int(self._rows[at]), float(scores[at])
        if score == 0 or (self._bounds is not None and not self._bounds.beaten(row, score, worth)):
            return None
        return row, int(score), np.flatnonzero(self._unseen[:, at])

    def emitted(self, ids: Array, new: Array) -> None:
        """Takes note that these values of the columns `new` have been emitted."""
        self._unseen[new] *= self._ids[new] != ids[new, None]
