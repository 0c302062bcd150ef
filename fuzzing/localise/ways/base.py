"""What a way is: a function from a failure to a fact."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TypeVar

from fuzzing.localise import ways as package
from fuzzing.localise.facts import Fact
from fuzzing.localise.failure import Failure

#: None if the way does not apply: the backend cannot, or the case is of another kind.
Way = Callable[[Failure], Fact | None]
W = TypeVar("W", bound=Way)
_WAYS: dict[str, Way] = {}
_AFTER: dict[str, str] = {}


def register_way(name: str, *, after: str = "") -> Callable[[W], W]:
    """Decorator: makes a function known as the way `name`, which is `what` of its facts.

    after  a way whose fact it looks at (`Failure.facts`), where there is one
    """

    def register(way: W) -> W:
        _WAYS[name] = way
        _AFTER[name] = after
        return way

    return register


def all_ways() -> dict[str, Way]:
    """The ways by their names: in alphabetical order, but those behind that look at another."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_WAYS.items(), key=lambda pair: (_AFTER[pair[0]] in _WAYS, pair[0])))
