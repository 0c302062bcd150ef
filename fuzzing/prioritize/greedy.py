"""The greedy search: repeatedly the instance of an operator whose parameters have the most new values.

A row's score is the total weight of the columns whose value has not been emitted. With each emission the
weights of columns fall and rows have more seen values, so scores never rise. For a row scored earlier, two
bounds hold for each set of columns: its score then; and the current weight of the whole set less the part the
row had seen then, at the weight that a column has when all its values have been seen. Columns are grouped by
their number of values, so that each set has its tighter bound. The rows with the best bounds, the front, are
scored after each emission; all others only when the front's best no longer reaches their best bound. A front
that emits nothing is followed by one twice as large, of which the best are kept after one scoring. The order
is exactly that of computing every score after every emission, ties going to the first row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from fuzzing.prioritize.codes import Array
from fuzzing.prioritize.table import Table

#: The score 1 of a column. Reciprocals of 1..24 are exact in it, others rounded down by less than 2e-10. All
#: sums are integers below 2**53 (for up to table.MAX_PARAMETERS), which float64 holds exactly, so that equal
#: scores are equal in any order of summation.
UNIT = lcm(*range(1, 25))
_FRONT = 96  # rows scored after each emission; 64 and 160 take longer
_MOST = 4  # largest front: entries per row of the table; scoring it then takes about as long as all bounds
_SAMPLE = 8  # of more rows, one in so many is looked at to find the least of the best
#: Bounds of the sets of pairs, in values per row: hardly any, some, many, nearly all different.
_SETS = (0.0, 0.03, 0.15, 0.6)

#: The score of a new value in a column with so many seen values (int64 → float64, whole, in UNITs).
Weights = Callable[[Array], Array]
#: A bound, and minus the index of a row that may have it: no row outside of the front is greater.
_Limit = tuple[float, int]


def equal_weights(seen: Array) -> Array:
    """As in OPERA's paper: every new value counts as much."""
    return np.full(len(seen), float(UNIT))


def rarity_weights(seen: Array) -> Array:
    """As in OPERA's code: 1/|seen|, and 1 if nothing has been seen."""
    return (UNIT // np.maximum(seen, 1)).astype(np.float64)


@dataclass(frozen=True)
class Pick:
    """One emission.

    row    of the table
    score  max of the parameters' mean and the pairs' mean, in units of `denominator`
    new    bool [columns]: those whose value was new
    """

    row: int
    score: int
    new: Array


def denominator(table: Table) -> int:
    """The denominator of scores: UNIT times the number of ordered pairs of parameters."""
    count = len(table.names)
    return UNIT * max(count * (count - 1), 1)


def search(table: Table, weights: Weights, rows: Sequence[int] | None = None) -> Iterator[Pick]:
    """The table's rows, or those of `rows` (ascending), in greedy order, until nothing is new."""
    return _Search(table, weights, range(len(table.first)) if rows is None else rows).picks()


class _Search:
    """The seen values, and upper bounds of the rows' scores.

    Sets of columns: the parameters first, then the pairs by their number of values per row (_SETS). Columns
    in which all rows are equal keep only their weight, which the first emission takes.

    _factors     float64 [columns, sets]: factor of a weight in its set, 0 in all others
    _kinds       float64 [columns, 2]: the same, for the parameters and for all pairs
    _final       float64 [columns, sets]: weight of a column when every value has been seen
    _by_number   float64 [values]: weight of a column in which so many values have been seen
    _numbers     int64 [columns]: so many have been seen
    _alike       float64 [sets]: total weight of the columns in which all rows are equal
    _rows        of the table, ascending, without most of those emitted and of those without new values
    _last_worth  float64 [sets, rows]: score of a row in a set when it was last computed
    _seen_worth  float64 [sets, rows]: weight of what it had seen then, at its final value
    _space       float64 [sets, rows]: where the bounds are computed; a new array each time takes longer
    """

    def __init__(self, table: Table, weights: Weights, rows: Sequence[int]) -> None:
        self._table = table
        self._seen = np.zeros(int(table.starts[-1]), np.bool_)
        self._seen[table.seeds] = True
        self._rows = np.asarray(rows, np.int64)
        values, numbers = np.diff(table.starts), table.per_column(table.seeds)
        factors = _factors(len(table.names), values, len(self._rows))
        self._by_number = weights(np.arange(int(values.max()) + 1))
        alike = (values == 1) & (numbers == 0)
        self._alike = (factors * self._by_number[numbers][:, None])[alike].sum(axis=0)
        self._varying = values > 1
        self._ids = table.columns[:, self._varying][self._rows]
        self._factors, self._numbers = factors[self._varying], numbers[self._varying]
        self._kinds = np.stack([self._factors[:, 0], self._factors[:, 1:].sum(axis=1)], axis=1)
        self._final = self._factors * self._by_number[values[self._varying]][:, None]
        self._last_worth = np.full((factors.shape[1], len(self._rows)), np.inf)
        self._seen_worth, self._space = np.zeros_like(self._last_worth), np.empty_like(self._last_worth)
        self._emitted = 0

    def picks(self) -> Iterator[Pick]:
        """Emissions, best first, until nothing is new."""
        size = _FRONT
        while (bounds := self._bounds()).any():
            before = self._emitted
            yield from self._emit(*_best(bounds, size))
            if self._emitted == before:
                most = _MOST * len(self._rows) // max(len(self._numbers), 1)
                size = min(size * 2, max(most, _FRONT))
            else:
                size = max(size // 2, _FRONT)
            if self._emitted * 2 > len(self._rows):
                self._drop_exhausted()

    def _bounds(self) -> Array:
        """Upper bounds of the rows' scores."""
        whole = self._worth(self._factors).sum(axis=0) + self._alike
        worth = np.subtract(whole[:, None], self._seen_worth, out=self._space[:, : len(self._rows)])
        return _score(np.minimum(self._last_worth, worth, out=worth))

    def _emit(self, front: Array, limit: _Limit) -> Iterator[Pick]:
        """Emits rows of the front while the best one is before all others; updates the front's bounds."""
        ids = self._ids.take(front, axis=0)
        new = (~self._seen.take(ids)).astype(np.float64)
        if len(front) > _FRONT:
            kept, (score, place) = _best(self._update(front, new), _FRONT)
            limit = max(limit, (score, -int(front[-place]) if -place < len(front) else -len(self._rows)))
            front, ids, new = front[kept], ids[kept], new[kept]
        while True:
            scores = new @ self._worth(self._kinds)
            if self._alike.any():
                scores += (self._alike[0], self._alike[1:].sum())
            best = scores.max(axis=1)
            at = int(best.argmax())
            if best[at] <= 0 or (best[at], -int(front[at])) < limit:
                break
            row = int(self._rows[front[at]])
            yield Pick(row, int(best[at]), self._see(row))
            np.copyto(new, 0, where=ids == ids[at])
        self._update(front, new)

    def _update(self, front: Array, new: Array) -> Array:
        """Makes the front's bounds exact, and returns its scores."""
        sets = len(self._alike)
        worth, unseen = np.split((new @ np.hstack([self._worth(self._factors), self._final])).T, [sets])
        worth += self._alike[:, None]
        self._last_worth[:, front] = worth
        self._seen_worth[:, front] = self._final.sum(axis=0)[:, None] - unseen
        return _score(worth)

    def _see(self, row: int) -> Array:
        """Records an emission; returns which columns were new."""
        ids = self._table.columns[row]
        unseen: Array = ~self._seen[ids]
        self._seen[ids] = True
        self._numbers += unseen[self._varying]
        self._alike[:] = 0
        self._emitted += 1
        return unseen

    def _worth(self, factors: Array) -> Array:
        """The weights of new values now, times factors of theirs."""
        worth: Array = factors * self._by_number.take(self._numbers)[:, None]
        return worth

    def _drop_exhausted(self) -> None:
        """Drops the rows without new values."""
        left = _score(self._last_worth) > 0
        self._rows, self._ids, self._emitted = self._rows[left], self._ids[left], 0
        self._last_worth, self._seen_worth = self._last_worth[:, left], self._seen_worth[:, left]


def _factors(parameters: int, values: Array, rows: int) -> Array:
    """See _Search: 1/n of a parameter and 2/(n(n-1)) of a pair, in units of 1/(n(n-1)).

    values  number of values of each column
    """
    found = np.zeros((len(values), 1 + len(_SETS)))
    found[:parameters, 0] = max(parameters - 1, 1)
    share = values[parameters:] / max(rows, 1)
    found[np.arange(parameters, len(values)), 1 + np.searchsorted(_SETS[1:], share)] = 2
    return found


def _best(scores: Array, count: int) -> tuple[Array, _Limit]:
    """Indices of about `count` greatest scores, ascending, and what no other is before.

    The least of them is that of a sample, if there are many scores.
    """
    if len(scores) <= count:
        return np.arange(len(scores)), (0.0, 0)
    sample = scores[::_SAMPLE] if len(scores) > 2 * _SAMPLE * count else scores
    at = len(sample) - 1 - count * len(sample) // len(scores)
    least = float(np.partition(sample, at)[at])
    greater, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    places = max(count - len(greater), 0)
    best: Array = np.sort(np.concatenate([greater, equal[:places]]))
    return best, (least, -int(equal[places]) if places < len(equal) else -len(scores))


def _score(worth: Array) -> Array:
    """The greater of both means, times `denominator`, from the sets' weights: whole numbers."""
    score: Array = np.add.reduce(worth[1:], axis=0)
    np.maximum(score, worth[0], out=score)
    return score
