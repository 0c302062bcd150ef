"""Rules of equivalence: each is one file of `fuzzing.equivalence.rules` that registers a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.errors import UsageError
from fuzzing.registry import Registry
from fuzzing.rng import Rng


@dataclass(frozen=True)
class Sides:
    """Texts of two equal programs, as `TorchProgram` holds them."""

    left: str
    right: str


#: The equal programs of a Subject or, for Keras, a LayerSubject; None if the rule does not apply to it.
Rewrite = Callable[[Any], "Sides | None"]
#: A call of an API that the rule applies to, drawn from a generator of random numbers.
Draw = Callable[[str, Rng], TestCase]


@dataclass(frozen=True)
class Rule:
    """An equivalence.

    number    in EAGLE's table of sixteen rules; 0 for a rule beyond it
    equation  the equality, for people; i is the input and f the API
    apis      the APIs it applies to, of the installed library
    draw      its own subjects, where constraints of single APIs give too few; None for those of docter
    library   whose APIs they are
    compiles  whether a side compiles, which takes seconds: such pairs come after the others of a call
    """

    name: str
    number: int
    equation: str
    apis: Callable[[], Iterable[str]]
    rewrite: Rewrite
    draw: Draw | None = None
    library: str = "torch"
    compiles: bool = False


_RULES: Registry[Rule] = Registry("equivalence rule", "fuzzing.equivalence.rules")


def register_rule(
    name: str,
    *,
    number: int = 0,
    equation: str,
    apis: Callable[[], Iterable[str]],
    draw: Draw | None = None,
    library: str = "torch",
    compiles: bool = False,
) -> Callable[[Rewrite], Rewrite]:
    """Decorator: registers a rewrite as the rule `name`; see Rule."""

    def register(rewrite: Rewrite) -> Rewrite:
        _RULES.add(Rule(name, number, equation, apis, rewrite, draw, library, compiles), name)
        return rewrite

    return register


names = _RULES.names
get = _RULES.get


def select(wanted: str, library: str = "torch") -> list[Rule]:
    """A library's rules of these names, by commas, or all of them in the order of EAGLE's table.

    Raises UnknownNameError, and UsageError for a rule of another library.
    """
    if wanted == "all":
        found = [one for one in map(get, names()) if one.library == library]
    else:
        found = [get(name.strip()) for name in wanted.split(",")]
    if others := [one.name for one in found if one.library != library]:
        raise UsageError(
            f"not about {library}: {', '.join(others)}; `assay rules --library {library}` lists its rules"
        )
    return sorted(found, key=lambda one: (one.number == 0, one.number, one.name))
