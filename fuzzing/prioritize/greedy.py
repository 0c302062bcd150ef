"""The greedy search: repeatedly the instance of an operator whose parameters have the most new values.

A row's score is the total weight of the columns whose value has not been emitted. With each emission the
weights of columns fall and rows have more seen values, so scores never rise. For a row scored earlier, two
bounds hold for each set of columns: its score then; and the current weight of the whole set less the part the
row had seen then, at the weight that a column has when all its values have been seen. Columns are grouped by
their number of values, so that each set has its tighter bound. Only rows whose bound reaches the best score
are scored again. The order is exactly that of computing every score after every emission, ties going to the
first row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from fuzzing.prioritize.table import Array, Table

#: The score 1 of a column. Reciprocals of 1..24 are exact in it, others rounded down by less than 2e-10. All
#: sums are integers below 2**53 (for up to table.MAX_PARAMETERS), which float64 holds exactly, so that equal
#: scores are equal in any order of summation.
UNIT = lcm(*range(1, 25))
_BATCH = 256  # rows scored together
#: Bounds of the sets of pairs, in values per row: hardly any, some, many, nearly all different.
_SETS = (0.0, 0.03, 0.15, 0.6)

#: The score of a new value in a column with so many seen values (int64 → float64, whole, in UNITs).
Weights = Callable[[Array], Array]


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
    """The seen values, the current weights, and upper bounds of the rows' scores.

    Sets of columns: the parameters first, then the pairs by their number of values per row (_SETS). Columns
    in which all rows are equal keep only their weight, which the first emission takes.

    _factors     float64 [columns, sets]: factor of a weight in its set, 0 in all others
    _worth       float64 [columns, sets]: weight of a new value now
    _both        the same, and beside it the weight when every value has been seen
    _alike       float64 [sets]: total weight of the columns in which all rows are equal
    _rows        of the table, ascending, without most of those emitted and of those without new values
    _last_worth  float64 [sets, rows]: score of a row in a set when it was last computed
    _seen_worth  float64 [sets, rows]: weight of what it had seen then, at its final value
    """

    def __init__(self, table: Table, weights: Weights, rows: Sequence[int]) -> None:
        self._table, self._weights = table, weights
        self._seen = np.zeros(int(table.starts[-1]), np.bool_)
        self._seen[table.seeds] = True
        self._rows = np.asarray(rows, np.int64)
        values, numbers = np.diff(table.starts), table.per_column(table.seeds)
        factors = _factors(len(table.names), values, len(self._rows))
        worth = factors * weights(numbers)[:, None]
        self._alike = worth[(values == 1) & (numbers == 0)].sum(axis=0)
        self._varying = values > 1
        self._ids = table.columns[:, self._varying][self._rows]
        self._factors, self._numbers = factors[self._varying], numbers[self._varying]
        final = self._factors * weights(values[self._varying])[:, None]
        self._both = np.hstack([worth[self._varying], final])
        self._worth = self._both[:, : factors.shape[1]]
        self._last_worth = np.full((factors.shape[1], len(self._rows)), np.inf)
        self._seen_worth = np.zeros_like(self._last_worth)
        self._emitted = 0

    def picks(self) -> Iterator[Pick]:
        """Emissions, best first, until nothing is new."""
        while len(self._rows) and (best := self._best()) is not None:
            at, score = best
            row = int(self._rows[at])
            yield Pick(row, score, self._emit(at, row))

    def _best(self) -> tuple[int, int] | None:
        """Index and score of the row to emit; None if nothing is new."""
        whole = self._worth.sum(axis=0) + self._alike
        bounds = _score(np.minimum(self._last_worth, whole[:, None] - self._seen_worth))
        at, score = -1, 0
        while True:
            top = int(bounds.argmax())
            bound = bounds[top]
            if bound < score or bound <= 0 or (bound == score and top > at):
                return None if at < 0 else (at, score)
            batch = np.array([top]) if at < 0 else self._batch(bounds, score)
            scores = self._rescore(batch, whole)
            bounds[batch] = -1
            first = int(scores.argmax())
            if (scores[first], -int(batch[first])) > (score, -at):
                at, score = int(batch[first]), int(scores[first])

    def _batch(self, bounds: Array, score: int) -> Array:
        """Rows that may be better than the best so far, ascending; of many those with the best bounds."""
        batch = np.flatnonzero(bounds >= score)
        if len(batch) > _BATCH:
            batch = np.sort(batch[np.argpartition(-bounds[batch], _BATCH)[:_BATCH]])
        return batch

    def _rescore(self, batch: Array, whole: Array) -> Array:
        """Computes the scores of some rows and updates their bounds."""
        seen = self._seen.take(self._ids.take(batch, axis=0)).astype(np.float64)  # twice as fast as by []
        overlap = (seen @ self._both).T
        worth: Array = whole[:, None] - overlap[: len(whole)]
        self._last_worth[:, batch] = worth
        self._seen_worth[:, batch] = overlap[len(whole) :]
        return _score(worth)

    def _emit(self, at: int, row: int) -> Array:
        """Records an emission; returns which columns were new."""
        ids = self._table.columns[row]
        unseen: Array = ~self._seen[ids]
        self._seen[ids] = True
        self._numbers += unseen[self._varying]
        np.multiply(self._factors, self._weights(self._numbers)[:, None], out=self._worth)
        self._alike[:] = 0
        self._last_worth[:, at] = 0
        self._emitted += 1
        if self._emitted * 2 > len(self._rows):
            self._drop_exhausted()
        return unseen

    def _drop_exhausted(self) -> None:
        """Drops the rows without new values."""
        left = _score(self._last_worth) > 0
        self._rows, self._ids = self._rows[left], self._ids[left]
        self._last_worth, self._seen_worth, self._emitted = (
            self._last_worth[:, left],
            self._seen_worth[:, left],
            0,
        )


def _factors(parameters: int, values: Array, rows: int) -> Array:
    """See _Search: 1/n of a parameter and 2/(n(n-1)) of a pair, in units of 1/(n(n-1)).

    values  number of values of each column
    """
    found = np.zeros((len(values), 1 + len(_SETS)))
    found[:parameters, 0] = max(parameters - 1, 1)
    share = values[parameters:] / max(rows, 1)
    found[np.arange(parameters, len(values)), 1 + np.searchsorted(_SETS[1:], share)] = 2
    return found


def _score(worth: Array) -> Array:
    """The greater of both means, times `denominator`, from the sets' weights: whole numbers."""
    score: Array = np.maximum(worth[0], worth[1:].sum(axis=0))
    return score
