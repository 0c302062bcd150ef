"""How the modules of torch.nn that are alive were made: the arguments of each instance."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fuzzing.migrate.recorders.torch_names import module_names

Given = tuple[Sequence[Any], Mapping[str, Any]]


class Making:
    """Watches the constructors of torch.nn, once begun.

    classes  the dotted name of each class that is watched

    A module that came to be in another way (copied, unpickled) is unknown, and so is one of a class that a
    test derives: such a class is the test's own program.
    """

    def __init__(self) -> None:
        self.classes = module_names()
        self._given: weakref.WeakKeyDictionary[Any, tuple[type, Given]] = weakref.WeakKeyDictionary()

    def begin(self) -> None:
        """Wraps every `__init__` that a watched class has or inherits from another class of torch."""
        import torch

        owners = {base for cls in self.classes for base in cls.__mro__ if issubclass(base, torch.nn.Module)}
        for owner in owners:
            if "__init__" in vars(owner):
                setattr(owner, "__init__", self._watched(vars(owner)["__init__"]))  # noqa: B010 - for mypy

    def _watched(self, original: Callable[..., None]) -> Callable[..., None]:
        """`original`, noting what it is called with where it is the first for its instance."""
        classes, given = self.classes, self._given

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            kind = type(self)
            if kind in classes and self not in given:
                given[self] = kind, (args, kwargs)
            original(self, *args, **kwargs)

        return __init__

    def given(self, module: Any) -> Given | None:
        """What the module's class was called with; None where that was not seen."""
        kind, given = self._given.get(module, (None, None))
        return given if kind is type(module) else None
