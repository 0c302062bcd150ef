"""Localization methods: functions from a failure to a fact."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar

from fuzzing.localize.facts import Fact
from fuzzing.localize.failing_case import FailingCase
from fuzzing.registry import Registry

#: None if the method does not apply to the backend or to the kind of case.
Method = Callable[[FailingCase], Fact | None]
W = TypeVar("W", bound=Method)


class _Entry(NamedTuple):
    method: Method
    after: str


_METHODS: Registry[_Entry] = Registry("localization method", "fuzzing.localize.methods")


def register_method(name: str, *, after: str = "") -> Callable[[W], W]:
    """Decorator: registers a method under `name`, which is `what` of its facts.

    after  a method whose fact it reads (`FailingCase.facts`)
    """

    def register(method: W) -> W:
        _METHODS.add(_Entry(method, after), name)
        return method

    return register


def get_methods(names: Collection[str] = ()) -> dict[str, Method]:
    """The methods of these names, or all: sorted by name, those that read another's fact last.

    Raises UnknownNameError.
    """
    entries = {name: _METHODS.get(name) for name in names or _METHODS.names()}
    ordered = sorted(entries, key=lambda name: (bool(entries[name].after), name))
    return {name: entries[name].method for name in ordered}
