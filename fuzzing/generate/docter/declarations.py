"""The parameters of an API in order, from its signature, docstring, stubs or schemas."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Any

from fuzzing.generate.docter import api_documentation, apis, native_signatures
from fuzzing.generate.docter.native_signatures import Declared
from fuzzing.generate.docter.record import Place

#: A method's tensor is called as the function's is.
SELF = "input"


Declarations = tuple[tuple[Place, Declared], ...]


def read_declarations(api: str) -> Declarations:
    """Every parameter with its place; () where no source lists them."""
    found: Any = apis.resolve(api)
    if inspect.isclass(found):
        written = next(iter(_docstring_signatures(api)), ())
        members: dict[str, Any] = dict(inspect.getmembers(found, inspect.isfunction))
        made = _without_self(native_signatures.from_inspect(members.get("__init__")) or written)
        called = _without_self(native_signatures.from_inspect(members.get("forward")))
        taken = {item.name for item in made}
        return *_with_place("init", made), *_with_place(
            "call", tuple(replace(item, name=SELF) if item.name in taken else item for item in called)
        )
    return _with_place("call", _function_declarations(api, found))


def _with_place(place: Place, parameters: tuple[Declared, ...]) -> Declarations:
    return tuple((place, item) for item in parameters)


def _without_self(parameters: tuple[Declared, ...]) -> tuple[Declared, ...]:
    return tuple(item for item in parameters if item.name != "self")


def _function_declarations(api: str, found: Any) -> tuple[Declared, ...]:
    namespace, name = apis.split_api(api)
    native_ones = [
        *native_signatures.read_stubs(namespace, name),
        *native_signatures.read_schemas(namespace, name),
    ]
    known = {name for overload in native_ones for name in _names(overload)} | {SELF, "out"}
    written = _docstring_signatures(api)
    if native_ones:  # a docstring that calls parameters by names that do not exist goes last
        first_is_self = namespace != "torch.Tensor"  # a schema calls self what linalg's docstrings call A
        right = [item for item in written if _takes_varargs(item) or _names(item[first_is_self:]) <= known]
        right += [
            item for item in written if _is_described(api, item) and _names(item, required=False) <= known
        ]
        candidates = [*right, native_signatures.from_inspect(found), *native_ones, *written]
    else:
        candidates = [native_signatures.from_inspect(found), *written]
    first = next((item for item in candidates if item), ())
    first = _kinds(first, native_ones)
    if namespace == "torch.Tensor":
        rest = tuple(item for item in first if item.name not in ("self", SELF) or item is not first[0])
        return (Declared(SELF, "positional", None, "Tensor", "signature"), *rest)
    return tuple(replace(item, name=SELF) if item.name == "self" else item for item in first)


def _names(overload: tuple[Declared, ...], *, required: bool = True) -> set[str]:
    """In lower case: lstsq's B is b in its schema."""
    return {item.name.lower() for item in overload if required or item.default is not None}


def _is_described(api: str, overload: tuple[Declared, ...]) -> bool:
    return all(api_documentation.find_entry(api, item.name) for item in overload if item.default is None)


def _takes_varargs(overload: tuple[Declared, ...]) -> bool:
    return any(item.kind == "variadic" for item in overload)


def _kinds(chosen: tuple[Declared, ...], native_ones: list[tuple[Declared, ...]]) -> tuple[Declared, ...]:
    """Keyword-only in every overload is keyword-only, even if the docstring lacks the star."""
    found = []
    for item in chosen:
        kinds = {other.kind for overload in native_ones for other in overload if other.name == item.name}
        found.append(
            replace(item, kind="keyword") if kinds == {"keyword"} and item.kind == "positional" else item
        )
    return tuple(found)


def _docstring_signatures(api: str) -> list[tuple[Declared, ...]]:
    inside = [
        re.sub(r"^(Tensor )?self,?\s*", "", text)
        for text in api_documentation.read_documentation(api).signatures
    ]
    return [native_signatures.read_signature(text) if text.strip() else () for text in inside]


def declared_types(api: str, name: str) -> tuple[Declared, ...]:
    """All types that stubs and schemas declare of a parameter, overload by overload."""
    namespace, function = apis.split_api(api)
    overloads = (
        *native_signatures.read_stubs(namespace, function),
        *native_signatures.read_schemas(namespace, function),
    )
    spelled = (name, "self") if name == SELF else (name,)
    return tuple(item for overload in overloads for item in overload if item.name in spelled)
