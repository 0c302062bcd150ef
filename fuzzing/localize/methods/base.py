"""What a way is: a function from a failure to a fact."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar

from fuzzing.localize.facts import Fact
from fuzzing.localize.failing_case import FailingCase
from fuzzing.registry import Registry

#: None if the way does not apply: the backend cannot, or the case is of another kind.
Method = Callable[[FailingCase], Fact | None]
W = TypeVar("W", bound=Method)


class _Entry(NamedTuple):
    method: Method
    after: str


_METHODS: Registry[_Entry] = Registry("localization method", "fuzzing.localize.methods")


def register_method(name: str, *, after: str = "") -> Callable[[W], W]:
    """Decorator: makes a function known as the way `name`, which is `what` of its facts.

    after  a way at whose fact it looks (`FailingCase.facts`), where there is one
    """

    def register(method: W) -> W:
        _METHODS.add(_Entry(method, after), name)
        return method

    return register


def get_methods(names: Collection[str] = ()) -> dict[str, Method]:
    """The ways of these names, or all: in alphabetical order, but those behind that look at another.

    Raises UnknownNameError.
    """
    entries = {name: _METHODS.get(name) for name in names or _METHODS.names()}
    ordered = sorted(entries, key=lambda name: (bool(entries[name].after), name))
    return {name: entries[name].method for name in ordered}
