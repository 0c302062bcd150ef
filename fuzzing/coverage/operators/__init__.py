"""Operator sets: what coverage is measured against. Each is one file here that registers a function.

A set may also be a file of the user's: see `read`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from fuzzing.errors import UsageError
from fuzzing.registry import Registry

#: In-degrees above this count as this one where an operator takes any number of inputs (Isra, criterion.py).
MAX_IN_DEGREE = 5


@dataclass(frozen=True)
class OperatorSet:
    """Operators and how many inputs each may have.

    in_degrees  operator → its in-degrees; an operator outside ONNX's default domain is `domain::Name`
    """

    name: str
    in_degrees: Mapping[str, frozenset[int]]

    def __post_init__(self) -> None:
        if not self.in_degrees or not all(self.in_degrees.values()):
            raise ValueError(f"operator set {self.name}: each operator needs at least one in-degree")
        object.__setattr__(self, "in_degrees", MappingProxyType(dict(self.in_degrees)))
        limits = {
            name: (min(degrees), max(MAX_IN_DEGREE, *degrees)) for name, degrees in self.in_degrees.items()
        }
        object.__setattr__(self, "_limits", limits)

    def __len__(self) -> int:
        return len(self.in_degrees)

    def in_degree(self, operator: str, inputs: int) -> int:
        """What `inputs` of `operator` count as: no more than 5 or its largest, no less than its smallest."""
        limits: tuple[int, int] = self._limits[operator]  # type: ignore[attr-defined]
        return max(limits[0], min(limits[1], inputs))

    def __reduce__(self) -> tuple[type[OperatorSet], tuple[str, dict[str, frozenset[int]]]]:
        return OperatorSet, (self.name, dict(self.in_degrees))


Make = Callable[[], Mapping[str, frozenset[int]]]
_SETS: Registry[Make] = Registry("operator set", __name__)


register_operators = _SETS.register
names = _SETS.names


def get(name: str) -> OperatorSet:
    """The operator set called `name`, else that of the file `name`.

    Raises UnknownNameError where there is neither, UsageError where the file cannot be used.
    """
    if Path(name).is_file() and name not in names():
        return read(Path(name))
    return OperatorSet(name, _SETS.get(name)())


def read(path: Path) -> OperatorSet:
    """The operator set of a file: on each line an operator, then its in-degrees: `Concat 1 2 3 4 5`.

    Without in-degrees the operator has those of ONNX's reference. `#` begins a comment. Raises UsageError.
    """
    known = _SETS.get("onnx")()
    found: dict[str, frozenset[int]] = {}
    for number, line in enumerate(_lines(path), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        operator, *degrees = words
        try:
            found[operator] = frozenset(map(_degree, degrees)) or known[operator]
        except KeyError:
            raise UsageError(
                f"{path}:{number}: ONNX's default domain has no operator {operator}; "
                "write its in-degrees behind it, or correct its name"
            ) from None
        except ValueError:
            raise UsageError(
                f"{path}:{number}: in-degrees are whole numbers from 0, such as 1 2, not {' '.join(degrees)}"
            ) from None
    if not found:
        raise UsageError(f"{path} names no operator; write one a line")
    return OperatorSet(path.name, found)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}; it must be a text file of operators") from error


def _degree(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number
