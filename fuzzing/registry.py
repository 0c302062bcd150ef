"""Registries: things of one kind by name, which the files of a package register.

A room that has such a kind keeps a `Registry` and a decorator of its own around `add`, which says what may be
registered. Standard library only, in the syntax of Python 3.8.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Generic, TypeVar

from fuzzing.errors import UnknownNameError

T = TypeVar("T")

#: How alike a name must be to one that there is, to be taken for a slip: two letters exchanged in four pass.
_SIMILARITY_CUTOFF = 0.75


def import_submodules(package: str, deep: bool = False) -> None:
    """Imports the modules of a package, with `deep` those of the packages in it too; no `__main__`."""
    path, prefix = importlib.import_module(package).__path__, f"{package}."
    for module in (pkgutil.walk_packages if deep else pkgutil.iter_modules)(path, prefix):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What to say after an unknown word: which it was meant to be, "" if it is like none."""
    matches = get_close_matches(word, list(known), n=1, cutoff=_SIMILARITY_CUTOFF)
    return f"did you mean {matches[0]!r}? " if matches else ""


class Registry(Generic[T]):
    """Things of one kind, by name.

    kind     what people call one: "case source"
    packages  those whose files register them; none is imported before somebody asks
    deep     whether files of packages in it may do so too
    """

    def __init__(self, kind: str, *packages: str, deep: bool = False) -> None:
        self._kind, self._packages, self._deep = kind, packages, deep
        self._entries: dict[str, T] = {}

    def add(self, entry: T, *names: str) -> None:
        """Makes a thing known by these names, in place of what was."""
        self._entries.update(dict.fromkeys(names, entry))

    def names(self) -> tuple[str, ...]:
        """All names, sorted. Imports every file."""
        for package in self._packages:
            import_submodules(package, self._deep)
        return tuple(sorted(self._entries))

    def get(self, name: str) -> T:
        """What has this name: the file that is called so is looked into first, and no other if it is there.

        Raises UnknownNameError that lists the names.
        """
        if name not in self._entries:
            self._import(name)
        if name not in self._entries and name not in self.names():
            hint = did_you_mean(name, self.names())
            raise UnknownNameError(
                f"no {self._kind} is called {name!r}; {hint}there are: {', '.join(self.names())}"
            )
        return self._entries[name]

    def _import(self, name: str) -> None:
        for package in self._packages:
            path = importlib.import_module(package).__path__
            if name in {module.name for module in pkgutil.iter_modules(path)} - {"__main__"}:
                importlib.import_module(f"{package}.{name}")
