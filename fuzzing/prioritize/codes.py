"""Codes: the abstract parameters of one operator's instances as numbers.

A million instances have few different values of a parameter: each is abstracted once, and found again by its
bytes. A token stands for one abstract value of one abstract parameter; an instance is a tuple of tokens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from marshal import dumps
from typing import Any, TypeVar

import numpy as np

from fuzzing.prioritize.abstraction import ABSENT, Partition
from fuzzing.prioritize.call_binding import JSON, OUTPUT
from fuzzing.prioritize.instances import Instance

Array = np.ndarray[Any, np.dtype[Any]]
Row = tuple[int, ...]

#: Marshal's format. From version 3 on, the bytes depend on which objects are shared, not only on values. They
#: are never read: as keys they take a third of the time of `repr`, and tell True, 1 and 1.0 apart.
_FORMAT = 2
_UNKNOWN = -1


_Value = TypeVar("_Value", bound=Hashable)


class Values(dict[_Value, int]):
    """Values in order of first occurrence, numbered from 0."""

    def __missing__(self, value: _Value) -> int:
        number = self[value] = len(self)
        return number


class Encoder:
    """The abstract parameters of an operator and their values, numbered in order of first occurrence.

    names   the abstract parameters
    values  of each
    """

    def __init__(self, partition: Partition) -> None:
        self.names: Values[str] = Values()
        self.values: list[Values[Hashable]] = []
        self._partition = partition
        self._known: dict[str, defaultdict[str, dict[bytes, Row]]] = {}  # by frontend, parameter, value
        self._tokens: list[tuple[int, int]] = []  # abstract parameter, value
        self._numbers: Values[tuple[int, int]] = Values()
        self._defaults: dict[int, int] = {}
        self._omitted: dict[Hashable, list[str]] = {}

    def encode(self, instances: Iterable[Instance], defaults: bool = False) -> dict[Row, int]:
        """The different instances in order of first occurrence, and the index of the first of each.

        defaults  whether to learn the parameters' defaults, from the first instance that omits each
        """
        first: dict[Row, int] = {}
        for place, one in enumerate(instances):
            known = self._known.setdefault(one.frontend, defaultdict(dict))
            found: list[int] = []
            for name, value in one.parameters:
                rows, key = known[name], dumps(value, _FORMAT)
                tokens = rows.get(key)
                if tokens is None:
                    tokens = rows[key] = self._abstract(name, value, one.frontend)
                found += tokens
            row = tuple(found)
            first.setdefault(row, place)
            if defaults and len(one.explicit) < len(one.parameters):
                self._learn_defaults(one, row)
        return first

    def _abstract(self, name: str, value: JSON, frontend: str) -> Row:
        """The tokens of a parameter's value."""
        return tuple([self._token(part, found) for part, found in self._partition(name, value, frontend)])

    def _token(self, name: str, value: Hashable) -> int:
        parameter = self.names[name]
        if parameter == len(self.values):
            self.values.append(Values())
        entry = parameter, self.values[parameter][value]
        token = self._numbers[entry]
        if token == len(self._tokens):
            self._tokens.append(entry)
        return token

    def _learn_defaults(self, one: Instance, row: Row) -> None:
        """Learns the defaults of the parameters that an instance omits and whose default is not known."""
        names = tuple([name for name, _ in one.parameters])
        omitted = self._omitted.get((names, one.explicit))
        if omitted is None:
            omitted = [name for name in names if name not in one.explicit and not name.startswith(OUTPUT)]
            self._omitted[names, one.explicit] = omitted
        if omitted:
            values = dict(self._tokens[token] for token in row)
            for name in list(omitted):
                parameter = self.names.get(name, _UNKNOWN)
                if parameter in values:  # not if it is a tensor
                    self._defaults.setdefault(parameter, values[parameter])
                    omitted.remove(name)

    def codes(self, rows: Sequence[Row]) -> Array:
        """The values of `rows` by number; a missing one is ABSENT. int64 [rows, parameters]."""
        tokens = np.fromiter(chain.from_iterable(rows), np.int64)
        places = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        parameters, values = np.array(self._tokens, np.int64).reshape(-1, 2).T
        found = np.full((len(rows), len(self.names)), _UNKNOWN)
        found[places, parameters[tokens]] = values[tokens]
        for parameter, numbers in enumerate(self.values):
            absent = found[:, parameter] == _UNKNOWN
            if absent.any():
                found[absent, parameter] = numbers[ABSENT]
        return found

    def default_codes(self) -> Array:
        """The defaults by number, -1 if not known: int64 [parameters]."""
        found = np.full(len(self.names), _UNKNOWN)
        found[list(self._defaults)] = list(self._defaults.values())
        return found
