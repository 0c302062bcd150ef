"""Signatures of a library's APIs, read from the library: omitted parameters and their defaults.

Values are JSON as in `fuzzing.cases.arguments`, except that a tensor is `{"tensor": [dtype, shape]}`.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, get_overloads

from fuzzing.backends.shared.keras_models import ENVIRONMENT as KERAS_ENVIRONMENT
from fuzzing.prioritize.api_signatures_torch import builtin_signatures
from fuzzing.prioritize.call_binding import (
    JSON,
    ApiSignature,
    BoundCall,
    Parameter,
    bind_by_position,
    bind_call,
    default_to_json,
)


class ApiSignatures:
    """The signatures of all libraries; each library is imported once, on first use.

    A library that is not installed has no signatures.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[ApiSignature, ...]] = {}

    def call(self, api: str, args: Sequence[JSON], kwargs: Mapping[str, JSON], method: str = "") -> BoundCall:
        """Binds a call of the dotted name `api`, or of its `method`: "__init__", "forward", "call"."""
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
def api_signatures() -> ApiSignatures:
    """The signatures of all libraries, shared by this process."""
    return ApiSignatures()


@cache
def _library(name: str) -> Any:
    if name == "keras":  # it needs the same backend as Assay's programs
        for variable, value in KERAS_ENVIRONMENT.items():
            os.environ.setdefault(variable, value)
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def resolve(dotted: str) -> Any:
    """The object of a dotted name in its library; None if it or the library does not exist."""
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
    return builtin_signatures(found, api)


def _method_signatures(owner: Any, method: str) -> list[ApiSignature]:
    """The signatures of a method, without `self`: of the first class with more than `*args`."""
    for one in getattr(owner, "__mro__", ()):
        if one is not object and method in vars(one):  # object's own is not a function
            declared = get_overloads(vars(one)[method]) or [vars(one)[method]]
            found = [signature for signature in map(_python_signature, declared) if signature is not None]
            if clear := [
                replace(one, parameters=one.parameters[1:]) for one in found if not one.is_catch_all
            ]:
                return clear
    return []


def _boolean_dispatch_targets(found: Any) -> list[Any]:
    """The two functions between which one of torch's chooses by a flag."""
    torch = _library("torch._jit_internal")
    table = getattr(torch, "boolean_dispatched", {}) if torch is not None else {}
    try:
        entry = table.get(found)
    except TypeError:  # some objects are not hashable
        return []
    return [entry["if_false"], entry["if_true"]] if entry else []


def _python_signature(function: Any) -> ApiSignature | None:
    """Python's signature of a function; None for a built-in one."""
    try:
        declared_signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    rest, keywords, parameters = "", False, []
    for name, one in declared_signature.parameters.items():
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
