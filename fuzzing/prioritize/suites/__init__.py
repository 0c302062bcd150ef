"""Operator counts of the compilers' own frontend tests: one file for each compiler and library.

`<backend>.<frontend>.json` is {"origin": text, "operators": {operator: tests}, "instances": [Instance…]};
"instances" is optional. `origin` is the release and the method of counting. OPERA weights operators by it:
those that a compiler's own tests neglect come first. Operators match whatever their spelling
(`fuzzing.prioritize.change.operator_names`): a suite's `conv2d` counts for torch.nn.Conv2d and torch.conv2d.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from fuzzing.errors import UnknownNameError, UsageError
from fuzzing.prioritize.change.operator_names import name as named
from fuzzing.prioritize.instances import Instance

_SUFFIX = ".json"


class OperatorCounts(Mapping[str, int]):
    """Operator → number of tests, for any spelling of it. Iterates over the table's own spellings."""

    def __init__(self, table: Mapping[str, int]) -> None:
        self._table = dict(table)

    def __getitem__(self, operator: str) -> int:
        if operator in self._table:
            return self._table[operator]
        return self._by_name[named(operator).exact]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    @cached_property
    def _by_name(self) -> dict[str, int]:
        """The counts by the operators' names; spellings of one operator are added up."""
        found: dict[str, int] = {}
        for spelling, tests in self._table.items():
            exact = named(spelling).exact
            found[exact] = found.get(exact, 0) + tests
        return found


@dataclass(frozen=True)
class Suite:
    """A compiler's own tests of one frontend.

    origin     what was counted, and how
    operators  operator → number of tests; operators without tests are absent
    instances  the tests themselves, if recorded; else empty
    """

    origin: str
    operators: Mapping[str, int]
    instances: tuple[Instance, ...] = ()

    @classmethod
    def from_json(cls, obj: Any) -> Suite:
        """The suite of a JSON object; raises UsageError for anything else."""
        try:
            table = {str(operator): int(tests) for operator, tests in obj["operators"].items()}
            instances = tuple(Instance.from_json(item) for item in obj.get("instances", ()))
            origin = str(obj["origin"])
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise UsageError(f"this is no suite: {error!r}") from None
        if not all(tests > 0 for tests in table.values()):
            raise UsageError("a suite counts the tests of an operator; leave out those that have none")
        return cls(origin, OperatorCounts(table), instances)


def names() -> tuple[str, ...]:
    """The names of the bundled suites, such as `openvino.torch`, sorted."""
    found = (one.name for one in files(__package__).iterdir() if one.name.endswith(_SUFFIX))
    return tuple(sorted(one.removesuffix(_SUFFIX) for one in found))


def load(name: str) -> Suite:
    """The suite of that name, or in the JSON file of that path.

    Raises UnknownNameError with the known names, and UsageError for a file that is not a suite.
    """
    if name in names():
        return Suite.from_json(json.loads(files(__package__).joinpath(name + _SUFFIX).read_bytes()))
    path = Path(name)
    if path.suffix != _SUFFIX:
        known = ", ".join(names())
        raise UnknownNameError(
            f"no suite is called {name!r}; there are: {known}, or the path of a .json file"
        )
    try:
        return Suite.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read the suite {path}: {error}") from None
