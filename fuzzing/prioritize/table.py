"""Tables: the instances of one operator as numbers, for the greedy search.

A column is a parameter or a pair of parameters; its entries are ids of the abstract values (or pairs of
values), unique over the table. Instances with equal abstract parameters share a row.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from fuzzing.errors import InternalError
from fuzzing.prioritize.abstraction import ABSENT, Partition
from fuzzing.prioritize.codes import Array, Encoder, Values
from fuzzing.prioritize.instances import Instance

#: With more parameters scores would no longer be exact (see greedy.UNIT).
MAX_PARAMETERS = 1000
#: Possible pairs of values per row above which sorting the values is faster than a list of all that may be.
_SPARSE = 16
_UNKNOWN = -1  # a parameter that a seed lacks


@dataclass(frozen=True)
class Table:
    """The instances of one operator.

    Columns are computed from codes when they are first needed: codes are smaller, to send them to a process.

    names   the parameters, in order of first occurrence
    first   index of the first instance of each row, ascending
    widths  int64 [parameters]: number of values of each
    codes   int64 [rows + seeds, parameters]: numbers of values, -1 where unknown
    lefts   `codes`, or where the pairs take their first values from instead
    """

    names: tuple[str, ...]
    first: tuple[int, ...]
    widths: Array
    codes: Array
    lefts: Array

    @cached_property
    def _columns(self) -> tuple[Array, Array]:
        return _columns(self.codes, self.lefts, self.widths)

    def forget_columns(self) -> None:
        """Frees the memory of `columns`; they are computed again where they are needed again."""
        self.__dict__.pop("_columns", None)

    @property
    def columns(self) -> Array:
        """int32 [rows, parameters + pairs]: ids of values; pairs as from itertools.combinations."""
        found: Array = self._columns[0][: len(self.first)]
        return found

    @cached_property
    def starts(self) -> Array:
        """int64 [parameters + pairs + 1]: the least id of each column, and the number of ids."""
        return self._columns[1]

    @cached_property
    def seeds(self) -> Array:
        """int64: the ids that count as seen before anything is emitted."""
        seen = self._columns[0][len(self.first) :]
        return np.unique(seen[seen >= 0])

    def per_column(self, ids: Array) -> Array:
        """Number of different `ids` in each column: int64 [parameters + pairs]."""
        seen = np.zeros(int(self.starts[-1]) + 1, np.int64)
        seen[ids] = 1
        total = np.concatenate([[0], np.cumsum(seen)])
        found: Array = total[self.starts[1:]] - total[self.starts[:-1]]
        return found


def tabulate(
    rows: Sequence[Mapping[str, Hashable]],
    seeds: Sequence[Mapping[str, Hashable]] = (),
    defaults: Mapping[str, Hashable] | None = None,
    paired: Mapping[str, Hashable] | None = None,
) -> Table:
    """The table of abstract instances `rows`.

    seeds     the compiler's own tests: complete instances that count as seen
    defaults  single values that count as seen, and their pairs
    paired    where the pairs of `defaults` take their first value from; `defaults` itself if None
    """
    names = _names([*rows, *seeds])
    interned: list[Values[Hashable]] = [Values() for _ in names]
    coded: dict[tuple[int, ...], int] = {}
    for place, row in enumerate(rows):
        coded.setdefault(_code(row, names, interned, ABSENT), place)
    known = [_code(row, names, interned, ABSENT) for row in seeds]
    lefts = [*coded, *known]
    if defaults:
        known.append(_code(defaults, names, interned, None))
        lefts.append(known[-1] if paired is None else _code(paired, names, interned, ABSENT))
    shape = (-1, len(names))
    codes = np.array([*coded, *known], np.int64).reshape(shape)
    return _table(names, interned, codes, np.array(lefts, np.int64).reshape(shape), tuple(coded.values()))


def tabulate_instances(
    instances: Iterable[Instance], tests: Iterable[Instance], partition: Partition, defaults: bool
) -> Table:
    """The table of an operator's instances.

    tests     those of the compiler's own suite, which count as seen
    defaults  whether the parameters' defaults count as seen too
    """
    encoder = Encoder(partition)
    rows = encoder.encode(instances, defaults)
    known = list(encoder.encode(tests))
    if not encoder.names:  # one parameter without a name, so that the first instance is new
        encoder.names[""], encoder.values = 0, [Values()]
    codes = encoder.codes([*rows, *known])
    if defaults:
        codes = np.concatenate([codes, encoder.default_codes()[None]])
    return _table(tuple(encoder.names), encoder.values, codes, codes, tuple(rows.values()))


def _table(
    names: tuple[str, ...],
    values: Sequence[Values[Hashable]],
    codes: Array,
    lefts: Array,
    first: tuple[int, ...],
) -> Table:
    """The table of rows and seeds whose parameters have the `codes`; `lefts` as in `_columns`."""
    if len(names) > MAX_PARAMETERS:
        raise InternalError(f"an operator has {len(names)} parameters, more than {MAX_PARAMETERS}")
    widths = np.array([max(len(each), 1) for each in values])
    return Table(names, first, widths, codes, lefts)


def _names(rows: Iterable[Mapping[str, Hashable]]) -> tuple[str, ...]:
    """The parameters of all; one without a name if there are none, so that the first instance is new."""
    kinds = dict.fromkeys(map(tuple, rows))  # most rows have the same parameters
    return tuple(dict.fromkeys(name for kind in kinds for name in kind)) or ("",)


def _code(
    row: Mapping[str, Hashable], names: tuple[str, ...], interned: Sequence[Values[Hashable]], missing: Any
) -> tuple[int, ...]:
    """A row's values by number; missing ones are the value `missing`, or unknown if that is None."""
    values = row.values() if tuple(row) == names else [row.get(name, missing) for name in names]
    return tuple(
        [_UNKNOWN if value is None else known[value] for value, known in zip(values, interned, strict=True)]
    )


def _columns(codes: Array, lefts: Array, widths: Array) -> tuple[Array, Array]:
    """Ids of all parameters and pairs, -1 where unknown, and where each column's ids start.

    lefts  the values of the pairs' first parameters: int64 [rows, parameters], as `codes`
    """
    count = codes.shape[1]
    pairs = np.array(list(combinations(range(count), 2)), np.int64).reshape(-1, 2)
    columns = np.empty((len(codes), count + len(pairs)), np.int32)
    columns[:, :count] = codes
    sizes = np.concatenate([widths, np.zeros(len(pairs), np.int64)])
    for at, (left, right) in enumerate(pairs, count):
        both = lefts[:, left] * widths[right] + codes[:, right]
        both[(lefts[:, left] < 0) | (codes[:, right] < 0)] = _UNKNOWN
        columns[:, at], sizes[at] = _interned(both, int(widths[left] * widths[right]))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    np.add(columns, starts[:-1], out=columns, where=columns >= 0, casting="unsafe")
    return columns, starts


def _interned(codes: Array, width: int) -> tuple[Array, int]:
    """Values below `width`, numbered in sorted order, and their count; -1 stays."""
    if width > _SPARSE * len(codes):
        known = np.unique(codes[codes >= 0])
        return np.where(codes < 0, _UNKNOWN, np.searchsorted(known, codes)), len(known)
    met = np.zeros(width + 1, np.bool_)  # the last one is that of -1
    met[codes] = True
    numbers = np.cumsum(met[:-1], dtype=np.int32)
    return np.append(numbers - 1, _UNKNOWN)[codes], int(numbers[-1])
