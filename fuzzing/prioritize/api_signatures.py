"""Signatures of a library's APIs, asked of the library itself: what a call leaves out, and what that is then.

Values are JSON as `fuzzing.cases.arguments` spells it, except that a tensor is `{"tensor": [dtype, shape]}`.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, get_overloads

from fuzzing.backends.shared.keras_models import ENVIRONMENT as KERAS_ENVIRONMENT
from fuzzing.cases.arguments import argument_to_json
from fuzzing.errors import CaseFormatError

JSON = Any


@dataclass(frozen=True)
class Parameter:
    """One parameter of an API.

    default   its value where a call leaves it out; meaningless if it is `required`
    accepts   whether a value can be meant for it; overloads are told apart by this
    """

    name: str
    required: bool = True
    default: JSON = None
    keyword_only: bool = False
    accepts: Callable[[JSON], bool] = lambda _: True


@dataclass(frozen=True)
class ApiSignature:
    """The parameters of an API, in its order.

    rest      the parameter that takes all further positional arguments as a list; "" if none does
    spread    whether `rest` takes the list itself too, as `x.view(2, 3)` and `x.view([2, 3])`
    keywords  whether it takes keywords of any name
    """

    parameters: tuple[Parameter, ...]
    rest: str = ""
    spread: bool = False
    keywords: bool = False

    @property
    def is_catch_all(self) -> bool:
        """Whether it says no more than `*args, **kwargs`."""
        return all(one.name in (self.rest, "self") for one in self.parameters)


@dataclass(frozen=True)
class BoundCall:
    """A call's complete parameters in the API's order, and the names of those it gave itself."""

    parameters: tuple[tuple[str, JSON], ...]
    explicit: tuple[str, ...]


def bind_call(signature: ApiSignature, args: Sequence[JSON], kwargs: Mapping[str, JSON]) -> BoundCall | None:
    """The call's parameters under `signature`; None if it does not fit."""
    positional = [one for one in signature.parameters if not one.keyword_only]
    given: dict[str, JSON] = {}
    left = list(args)
    for parameter in positional[: len(args)]:
        if parameter.name == signature.rest:
            alone = signature.spread and len(left) == 1
            given[parameter.name] = left[0] if alone else left
            left = []
            break
        given[parameter.name] = left.pop(0)
    known = {parameter.name for parameter in signature.parameters}
    for name, value in kwargs.items():
        plain = "input" if name == "self" and "input" in known else name
        if plain in given or (plain not in known and not signature.keywords):
            return None
        given[plain] = value
    if left or any(one.required and one.name not in given for one in signature.parameters):
        return None
    if not all(one.accepts(given[one.name]) for one in signature.parameters if one.name in given):
        return None
    complete = {one.name: given.get(one.name, one.default) for one in signature.parameters}
    return BoundCall(
        tuple((complete | given).items()), tuple(name for name in complete | given if name in given)
    )


def bind_by_position(args: Sequence[JSON], kwargs: Mapping[str, JSON]) -> BoundCall:
    """A call of an API whose signature nobody knows: positional arguments go by their places."""
    given = {str(place): value for place, value in enumerate(args)} | dict(kwargs)
    return BoundCall(tuple(given.items()), tuple(given))


class ApiSignatures:
    """The signatures of all libraries; each is imported when it is first asked for, once.

    Of a library that is not installed no signature is known, and nothing fails.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[ApiSignature, ...]] = {}

    def call(self, api: str, args: Sequence[JSON], kwargs: Mapping[str, JSON], method: str = "") -> BoundCall:
        """A call of the dotted name `api`, or of the object's `method`: "__init__", "forward", "call"."""
        for signature in self._signatures(api, method):
            if (bound := bind_call(signature, args, kwargs)) is not None:
                return bound
        return bind_by_position(args, kwargs)

    def _signatures(self, api: str, method: str) -> tuple[ApiSignature, ...]:
        key = api, method
        if key not in self._known:
            found = resolve(api)
            self._known[key] = () if found is None else tuple(_overloads(found, api, method))
        return self._known[key]


@cache
def _library(name: str) -> Any:
    if name == "keras":  # it cannot be imported without the backend that our programs run on
        for variable, value in KERAS_ENVIRONMENT.items():
            os.environ.setdefault(variable, value)
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def resolve(dotted: str) -> Any:
    """What a dotted name stands for in its library; None if there is nothing, or no such library."""
    root, *parts = dotted.split(".")
    found = _library(root)
    for part in parts:
        found = getattr(found, part, None)
    return found


def _overloads(found: Any, api: str, method: str) -> list[ApiSignature]:
    if method:
        return _method_signatures(found, method)
    dispatched = _boolean_dispatch_targets(found)
    if dispatched:
        return [one for one in map(_python_signature, dispatched) if one is not None][:1]
    plain = _python_signature(found)
    if plain is not None and not plain.is_catch_all:
        return [plain]
    return [*_builtin_signatures(found, api), *([] if plain is None else [plain])]


def _builtin_signatures(found: Any, api: str) -> list[ApiSignature]:
    if not api.startswith("torch."):
        return []
    from fuzzing.prioritize.api_signatures_torch import builtin_signatures

    return builtin_signatures(found, api)


def _method_signatures(owner: Any, method: str) -> list[ApiSignature]:
    """The signatures of a method, less `self`: of the class that says more of it than `*args`."""
    for one in getattr(owner, "__mro__", ()):
        if one is not object and method in vars(one):  # object's own is no function, and says nothing
            declared = get_overloads(vars(one)[method]) or [vars(one)[method]]
            told = [signature for signature in map(_python_signature, declared) if signature is not None]
            if clear := [replace(one, parameters=one.parameters[1:]) for one in told if not one.is_catch_all]:
                return clear
    return []


def _boolean_dispatch_targets(found: Any) -> list[Any]:
    """The two functions behind one of torch's that chooses between them by a flag."""
    torch = _library("torch._jit_internal")
    table = getattr(torch, "boolean_dispatched", {}) if torch is not None else {}
    try:
        entry = table.get(found)
    except TypeError:  # not every object can be looked up
        return []
    return [entry["if_false"], entry["if_true"]] if entry else []


def _python_signature(function: Any) -> ApiSignature | None:
    """What Python knows of a function; None of a built-in one."""
    try:
        told = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    rest, keywords, parameters = "", False, []
    for name, one in told.parameters.items():
        if one.kind is one.VAR_KEYWORD:
            keywords = True
        elif one.kind is one.VAR_POSITIONAL:
            rest = name
            parameters.append(Parameter(name, required=False, default=[]))
        else:
            required = one.default is one.empty
            default = None if required else default_to_json(one.default)
            parameters.append(Parameter(name, required, default, one.kind is one.KEYWORD_ONLY))
    return ApiSignature(tuple(parameters), rest, keywords=keywords)


def default_to_json(value: Any) -> JSON:
    """A default as JSON: what has no form as an argument goes by its name, or its type's."""
    try:
        return argument_to_json(value)
    except CaseFormatError:
        pass
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "layout", "memory_format"):
        return {type(value).__name__: str(value).removeprefix("torch.")}
    named = value if hasattr(value, "__qualname__") else type(value)
    return {"name": f"{named.__module__}.{named.__qualname__}"}
