"""What a way is: a function from a failure to a fact."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar

from fuzzing.localise.facts import Fact
from fuzzing.localise.failure import Failure
from fuzzing.registry import Registry

#: None if the way does not apply: the backend cannot, or the case is of another kind.
Way = Callable[[Failure], Fact | None]
W = TypeVar("W", bound=Way)


class _Entry(NamedTuple):
    way: Way
    after: str


_WAYS: Registry[_Entry] = Registry("way to localise", "fuzzing.localise.ways")


def register_way(name: str, *, after: str = "") -> Callable[[W], W]:
    """Decorator: makes a function known as the way `name`, which is `what` of its facts.

    after  a way at whose fact it looks (`Failure.facts`), where there is one
    """

    def register(way: W) -> W:
        _WAYS.add(_Entry(way, after), name)
        return way

    return register


def ways_named(names: Collection[str] = ()) -> dict[str, Way]:
    """The ways of these names, or all: in alphabetical order, but those behind that look at another.

    Raises UnknownNameError.
    """
    entries = {name: _WAYS.get(name) for name in names or _WAYS.names()}
    ordered = sorted(entries, key=lambda name: (bool(entries[name].after), name))
    return {name: entries[name].way for name in ordered}
