"""Constructor arguments of live torch.nn modules."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from fuzzing.torch_api.names import module_names


class ConstructorCall:
    """One module's constructor call.

    api   the dotted name of its class
    key   of class and arguments, for callers that store one
    """

    __slots__ = ("api", "args", "key", "kind", "kwargs")

    def __init__(self, api: str, kind: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.api, self.kind, self.args, self.kwargs = api, kind, args, kwargs
        self.key: Hashable = None


class ConstructorRecorder:
    """Watches the constructors of torch.nn, once begun.

    classes  the dotted name of each class that is watched

    Copied or unpickled modules are unknown, and so are those of a test's own subclass, which is the test's
    program.
    """

    def __init__(self) -> None:
        self.classes = module_names()
        self._made: weakref.WeakKeyDictionary[Any, ConstructorCall] = weakref.WeakKeyDictionary()

    def begin(self) -> None:
        """Wraps every `__init__` that a watched class has or inherits from another class of torch."""
        import torch

        owners = {base for cls in self.classes for base in cls.__mro__ if issubclass(base, torch.nn.Module)}
        for owner in owners:
            if "__init__" in vars(owner):
                setattr(owner, "__init__", self._watched(vars(owner)["__init__"]))  # noqa: B010 - for mypy

    def _watched(self, original: Callable[..., None]) -> Callable[..., None]:
        classes, made = self.classes, self._made

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            kind = type(self)
            if kind in classes and self not in made:
                made[self] = ConstructorCall(classes[kind], kind, args, kwargs)
            original(self, *args, **kwargs)

        return __init__

    def made(self, module: Any) -> ConstructorCall | None:
        """A module's constructor call; None where it was not seen, or the class has changed."""
        made = self._made.get(module)
        return made if made is not None and made.kind is type(module) else None

    def given(self, module: Any) -> tuple[Sequence[Any], Mapping[str, Any]] | None:
        """The constructor's arguments; None as above."""
        made = self.made(module)
        return None if made is None else (made.args, made.kwargs)
