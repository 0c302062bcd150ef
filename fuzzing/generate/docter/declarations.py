"""The parameters of an API in their order: from Python's signature, the docstring's, the stubs' or the schemas'."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Any

from fuzzing.generate.docter import apis, documents, native
from fuzzing.generate.docter.native import Declared
from fuzzing.generate.docter.record import Place

#: A method's tensor is called as the function's is.
SELF = "input"


def declarations(api: str) -> tuple[tuple[Place, Declared], ...]:
    """Every parameter with its place; () where nothing tells what the API takes."""
    found = apis.resolve(api)
    if inspect.isclass(found):
        made = tuple(("init", item) for item in _without_self(native.from_inspect(found.__init__)))
        called = tuple(("call", item) for item in _without_self(native.from_inspect(found.forward)))
        return (*made, *called)  # type: ignore[return-value]
    return tuple(("call", item) for item in _function(api, found))


def _without_self(parameters: tuple[Declared, ...]) -> tuple[Declared, ...]:
    return tuple(item for item in parameters if item.name != "self")


def _function(api: str, found: Any) -> tuple[Declared, ...]:
    namespace, name = apis.split(api)
    candidates = [native.from_inspect(found), *_written(api), *native.stubs(namespace, name), *native.schemas(namespace, name)]
    first = next((item for item in candidates if item), ())
    if namespace == "torch.Tensor":
        rest = tuple(item for item in first if item.name not in ("self", SELF) or item is not first[0])
        return (Declared(SELF, "positional", None, "Tensor", "signature"), *rest)
    return tuple(replace(item, name=SELF) if item.name == "self" else item for item in first)


def _written(api: str) -> list[tuple[Declared, ...]]:
    """The signatures that the docstring writes out; without those of functions it refers to."""
    inside = [re.sub(r"^(Tensor )?self,?\s*", "", text) for text in documents.documentation(api).signatures]
    return [native.read_signature(text) if text.strip() else () for text in inside]


def typed(api: str, name: str) -> tuple[Declared, ...]:
    """All that stubs and schemas declare of a parameter, overload by overload."""
    namespace, function = apis.split(api)
    overloads = (*native.stubs(namespace, function), *native.schemas(namespace, function))
    spelled = (name, "self") if name == SELF else (name,)
    return tuple(item for overload in overloads for item in overload if item.name in spelled)
