"""Registries: things of one kind by name, which the files of a package register (law 4).

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
_ALIKE = 0.75


def load(package: str, deep: bool = False) -> None:
    """Imports the modules of a package, with `deep` those of the packages in it too; no `__main__`."""
    path, prefix = importlib.import_module(package).__path__, f"{package}."
    for module in (pkgutil.walk_packages if deep else pkgutil.iter_modules)(path, prefix):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def meant(word: str, known: Iterable[str]) -> str:
    """What to say after an unknown word: which it was meant to be, "" if it is like none."""
    near = get_close_matches(word, list(known), n=1, cutoff=_ALIKE)
    return f"did you mean {near[0]!r}? " if near else ""


class Registry(Generic[T]):
    """Things of one kind, by name.

    kind     what people call one: "case source"
    package  the one whose files register them; none is imported before somebody asks
    deep     whether files of packages in it may do so too
    """

    def __init__(self, kind: str, package: str, deep: bool = False) -> None:
        self._kind, self._package, self._deep = kind, package, deep
        self._known: dict[str, T] = {}

    def add(self, thing: T, *names: str) -> None:
        """Makes a thing known by these names, in place of what was."""
        self._known.update(dict.fromkeys(names, thing))

    def names(self) -> tuple[str, ...]:
        """All names, sorted. Imports every file."""
        load(self._package, self._deep)
        return tuple(sorted(self._known))

    def get(self, name: str) -> T:
        """What has this name: the file that is called so is looked into first, and no other if it is there.

        Raises UnknownNameError that lists the names.
        """
        if name not in self._known:
            self._import(name)
        if name not in self._known and name not in self.names():
            hint = meant(name, self.names())
            raise UnknownNameError(
                f"no {self._kind} is called {name!r}; {hint}there are: {', '.join(self.names())}"
            )
        return self._known[name]

    def _import(self, name: str) -> None:
        path = importlib.import_module(self._package).__path__
        if name in {module.name for module in pkgutil.iter_modules(path)} - {"__main__"}:
            importlib.import_module(f"{self._package}.{name}")
