"""Rules of equivalence: each is one file of `fuzzing.equivalence.rules` that registers a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fuzzing.cases import TestCase
from fuzzing.equivalence.subject import Subject
from fuzzing.registry import Registry
from fuzzing.rng import Rng


@dataclass(frozen=True)
class Sides:
    """Texts of two equal programs, as `TorchProgram` holds them."""

    left: str
    right: str


#: A subject's equal programs; None if the rule does not apply to it.
Rewrite = Callable[[Subject], "Sides | None"]
#: A call of an API that the rule applies to, drawn from a generator of random numbers.
Draw = Callable[[str, Rng], TestCase]


@dataclass(frozen=True)
class Rule:
    """An equivalence.

    number    in EAGLE's table of sixteen rules; 0 for a rule beyond it
    equation  the equality, for people; i is the input and f the API
    apis      the APIs it applies to, of the installed library
    draw      its own subjects, where constraints of single APIs give too few; None for those of docter
    """

    name: str
    number: int
    equation: str
    apis: Callable[[], Iterable[str]]
    rewrite: Rewrite
    draw: Draw | None = None


_RULES: Registry[Rule] = Registry("equivalence rule", "fuzzing.equivalence.rules")


def register_rule(
    name: str, *, number: int = 0, equation: str, apis: Callable[[], Iterable[str]], draw: Draw | None = None
) -> Callable[[Rewrite], Rewrite]:
    """Decorator: registers a rewrite as the rule `name`; see Rule."""

    def register(rewrite: Rewrite) -> Rewrite:
        _RULES.add(Rule(name, number, equation, apis, rewrite, draw), name)
        return rewrite

    return register


names = _RULES.names
get = _RULES.get


def select(wanted: str) -> list[Rule]:
    """The rules of these names, by commas, or all of them in the order of EAGLE's table.

    Raises UnknownNameError.
    """
    chosen = names() if wanted == "all" else [name.strip() for name in wanted.split(",")]
    found = [get(name) for name in chosen]
    return sorted(found, key=lambda one: (one.number == 0, one.number, one.name))
