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
from copy import copy
from math import lcm
from typing import NamedTuple

import numpy as np

from fuzzing.prioritize.codes import Array
from fuzzing.prioritize.table import Table

#: The score 1 of a column. Reciprocals of 1..24 are exact in it, others rounded down by less than 2e-10. All
#: sums are integers below 2**53 (for up to table.MAX_PARAMETERS), which float64 holds exactly, so that equal
#: scores are equal in any order of summation.
UNIT = lcm(*range(1, 25))
_FRONT = 256
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


class Pick(NamedTuple):
    """One emission.

    row    of the table
    score  max of the parameters' mean and the pairs' mean, in units of `denominator`
    new    bool [columns]: those whose value was new; None unless asked for
    """

    row: int
    score: int
    new: Array | None


def denominator(table: Table) -> int:
    """The denominator of scores: UNIT times the number of ordered pairs of parameters."""
    count = len(table.names)
    return UNIT * max(count * (count - 1), 1)


def search(
    table: Table, weights: Weights, rows: Sequence[int] | None = None, explain: bool = False
) -> Iterator[Pick]:
    """The table's rows, or those of `rows` (ascending), in greedy order, until nothing is new.

    explain  whether picks have their new columns
    """
    return _Search(table, weights, range(len(table.first)) if rows is None else rows, explain).picks()


class _Search:
    """The seen values, and upper bounds of the rows' scores.

    Sets of columns: the parameters first, then the pairs by their number of values per row (_SETS). Columns
    in which all rows are equal keep only their weight, which the first emission takes.

    _factors     float64 [columns, sets]: factor of a weight in its set, 0 in all others
    _kinds       float64 [2, columns]: the same, for the parameters and for all pairs
    _final       float64 [columns, sets]: weight of a column when every value has been seen
    _by_number   float64 [values]: weight of a column in which so many values have been seen
    _numbers     int64 [columns]: so many have been seen
    _alike       float64 [sets]: total weight of the columns in which all rows are equal
    _rows        of the table, ascending, without most of those emitted and of those without new values
    _last_worth  float64 [sets, rows]: score of a row in a set when it was last computed
    _seen_worth  float64 [sets, rows]: weight of what it had seen then, at its final value
    _space       float64 [sets, rows]: where the bounds are computed; a new array each time takes longer
    """

    def __init__(self, table: Table, weights: Weights, rows: Sequence[int], explain: bool) -> None:
        self._explain = explain
        self._seen = np.zeros(int(table.starts[-1]), np.bool_)
        self._seen[table.seeds] = True
        self._rows = np.asarray(rows, np.int64)
        values, numbers = np.diff(table.starts), table.per_column(table.seeds)
        factors = _factors(len(table.names), values, len(self._rows))
        self._by_number = weights(np.arange(int(values.max()) + 1))
        alike = self._alike_columns = (values == 1) & (numbers == 0)
        self._alike = (factors * self._by_number[numbers][:, None])[alike].sum(axis=0)
        self._alike_left = bool(alike.any())
        self._alike_kinds = np.array([[self._alike[0]], [self._alike[1:].sum()]])
        self._varying = values > 1
        self._ids = table.columns[np.ix_(self._rows, np.flatnonzero(self._varying))]
        table.forget_columns()
        self._factors, self._numbers = factors[self._varying], numbers[self._varying]
        self._kinds = np.stack([self._factors[:, 0], self._factors[:, 1:].sum(axis=1)])
        self._final = self._factors * self._by_number[values[self._varying]][:, None]
        self._whole = self._final.sum(axis=0)
        self._last_worth = np.full((factors.shape[1], len(self._rows)), np.inf)
        self._seen_worth, self._space = np.zeros_like(self._last_worth), np.empty_like(self._last_worth)
        self._emitted = 0

    def picks(self) -> Iterator[Pick]:
        """Emissions, best first, until nothing is new."""
        size = _FRONT
        while (bounds := self._bounds()).any():
            picks = self._emit(*_best(bounds, size))
            yield from picks
            if not picks:
                most = _MOST * len(self._rows) // max(len(self._numbers), 1)
                size = min(size * 2, max(most, _FRONT))
            else:
                size = max(size // 2, _FRONT)
            self._emitted += len(picks)
            if self._emitted * 2 > len(self._rows):
                self._drop_exhausted()

    def _bounds(self) -> Array:
        """Upper bounds of the rows' scores."""
        whole = self._by_number.take(self._numbers) @ self._factors + self._alike
        worth = np.subtract(whole[:, None], self._seen_worth, out=self._space[:, : len(self._rows)])
        return _score(np.minimum(self._last_worth, worth, out=worth))

    def _emit(self, places: Array, limit: _Limit) -> list[Pick]:
        """Emits rows of a front while the best one is before all others; updates the front's bounds."""
        front = _Front(self._ids.take(places, axis=0), self._seen)
        if len(places) > _FRONT:
            kept, (score, place) = _best(self._update(places, front), _FRONT)
            limit = max(limit, (score, -int(places[-place]) if -place < len(places) else -len(self._rows)))
            places, front = places[kept], front.take(kept)
        columns, picks, emitted = front.columns, list[Pick](), list[int]()
        kinds, numbers = self._kinds.take(columns, axis=1), self._numbers.take(columns)
        weights, scores = np.empty_like(kinds), np.empty((2, len(places)))
        by_number, first, rest = self._by_number, scores[0], scores[1]
        while True:
            np.multiply(kinds, by_number.take(numbers), out=weights)
            np.dot(weights, front.new, out=scores)
            if self._alike_left:
                scores += self._alike_kinds
            np.maximum(first, rest, out=first)
            at = int(first.argmax())
            score = int(first[at])
            if score <= 0 or (score, -int(places[at])) < limit:
                break
            emitted.append(places[at])
            new = self._new(front, at) if self._explain else None
            picks.append(Pick(int(self._rows[places[at]]), score, new))
            numbers[front.see(at)] += 1
            if self._alike_left:
                self._alike_left = False
                self._alike[:] = 0
        if picks:
            self._numbers[columns] = numbers
            self._seen[self._ids.take(emitted, axis=0)] = True
        self._update(places, front)
        return picks

    def _new(self, front: _Front, at: int) -> Array:
        """Which columns of a row are new: those that vary say the front; the others are at first."""
        varying = np.zeros(len(self._numbers), np.bool_)
        varying[front.columns] = front.new[:, at] > 0
        new: Array = self._alike_columns & self._alike_left
        new[self._varying] = varying
        return new

    def _update(self, places: Array, front: _Front) -> Array:
        """Makes the front's bounds exact, and returns its scores."""
        factors, final = self._factors.take(front.columns, axis=0), self._final.take(front.columns, axis=0)
        weights = self._by_number.take(self._numbers.take(front.columns))
        worth = (factors * weights[:, None]).T @ front.new
        worth += self._alike[:, None]
        self._last_worth[:, places] = worth
        self._seen_worth[:, places] = self._whole[:, None] - final.T @ front.new
        return _score(worth)

    def _drop_exhausted(self) -> None:
        """Drops the rows without new values."""
        left = _score(self._last_worth) > 0
        self._rows, self._ids, self._emitted = self._rows[left], self._ids[left], 0
        self._last_worth, self._seen_worth = self._last_worth[:, left], self._seen_worth[:, left]


class _Front:
    """Rows that are scored after each emission; only the columns in which one of them is new.

    columns  int64 [columns]: indices of these
    new      float64 [columns, rows]: 1 where the row's value has not been seen
    """

    def __init__(self, ids: Array, seen: Array) -> None:
        """Makes the front of rows with these `ids`: int32 [rows, all columns]."""
        new = ~seen.take(ids)
        self.columns = np.flatnonzero(new.any(axis=0))
        self._ids = ids.T.take(self.columns, axis=0)
        self.new = new.T.take(self.columns, axis=0).astype(np.float64)

    def take(self, rows: Array) -> _Front:
        """The front of some of its rows."""
        taken = copy(self)
        taken._ids, taken.new = self._ids.take(rows, axis=1), self.new.take(rows, axis=1)
        return taken

    def see(self, row: int) -> Array:
        """Marks the values of a row as seen; returns the columns in which they were new."""
        columns: Array = self.new[:, row].nonzero()[0]
        if 2 * len(columns) > len(self.new):
            np.copyto(self.new, 0, where=self._ids == self._ids[:, row : row + 1])
        else:
            ids = self._ids.take(columns, axis=0)
            new = self.new.take(columns, axis=0)
            new *= ids != ids[:, row : row + 1]
            self.new[columns] = new
        return columns


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
