"""Registries: objects of one kind by name, registered by the files of a package.

A package with such a kind has a `Registry`, and its `register` or an own decorator around `add`, which makes
the entry. Standard library only; runs on Python 3.8.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Generic, TypeVar

from fuzzing.errors import UnknownNameError

T = TypeVar("T")

#: How similar a name must be to a known one to count as a typo: two letters exchanged in four pass.
_SIMILARITY_CUTOFF = 0.75


def import_submodules(package: str, deep: bool = False) -> None:
    """Imports the modules of a package, with `deep` those of its packages too, but no `__main__`."""
    path, prefix = importlib.import_module(package).__path__, f"{package}."
    for module in (pkgutil.walk_packages if deep else pkgutil.iter_modules)(path, prefix):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint after an unknown word: the similar known word; "" if there is none."""
    matches = get_close_matches(word, list(known), n=1, cutoff=_SIMILARITY_CUTOFF)
    return f"did you mean {matches[0]!r}? " if matches else ""


class Registry(Generic[T]):
    """Objects of one kind, by name.

    kind      for people: "case source"
    packages  packages whose files register them, imported on first use
    deep      whether files of nested packages may register them too
    """

    def __init__(self, kind: str, *packages: str, deep: bool = False) -> None:
        self._kind, self._packages, self._deep = kind, packages, deep
        self._entries: dict[str, T] = {}
        self._is_complete = False  # whether every file has been imported

    def add(self, entry: T, *names: str) -> None:
        """Registers `entry` under these names, replacing earlier ones."""
        self._entries.update(dict.fromkeys(names, entry))

    def register(self, *names: str) -> Callable[[T], T]:
        """Decorator: registers an entry under these names."""

        def decorate(entry: T) -> T:
            self.add(entry, *names)
            return entry

        return decorate

    def names(self) -> tuple[str, ...]:
        """All names, sorted. Imports every file, the first time."""
        if not self._is_complete:
            for package in self._packages:
                import_submodules(package, self._deep)
            self._is_complete = True
        return tuple(sorted(self._entries))

    def get(self, name: str) -> T:
        """The object of this name. Imports the file of that name first, and the others only if it is missing
        there.

        Raises UnknownNameError with the known names.
        """
        if name not in self._entries:
            self._import(name)
        if name not in self._entries and name not in self.names():
            hint = did_you_mean(name, self.names())
            raise UnknownNameError(
                f"no {self._kind} is called {name!r}; {hint}there are: {', '.join(self.names())}"
            )
        return self._entries[name]

    def find(self, name: str) -> T | None:
        """The object of this name, or None. Imports every file unless it is known already."""
        return self._entries[name] if name in self._entries or name in self.names() else None

    def _import(self, name: str) -> None:
        for package in self._packages:
            path = importlib.import_module(package).__path__
            if name in {module.name for module in pkgutil.iter_modules(path)} - {"__main__"}:
                importlib.import_module(f"{package}.{name}")
