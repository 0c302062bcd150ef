"""`extract_constraints(api)`: the record of an API of the installed torch."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import Literal

from fuzzing.generate.docter import (
    api_documentation,
    apis,
    conventions,
    declarations,
    overrides,
    parameters,
    phrase_patterns,
    relations,
    shape_patterns,
    tensor_shapes,
)
from fuzzing.generate.docter.latex import strip_markup
from fuzzing.generate.docter.native_signatures import Declared
from fuzzing.generate.docter.parameters import Description
from fuzzing.generate.docter.record import Definition, Dtype, Evidence, Parameter, Place, Rank, Record
from fuzzing.generate.docter.type_names import parse_structures, parse_tensor_dtypes

LIBRARY = "torch"


@cache
def extract_constraints(api: str) -> Record:
    """The documented constraints of `api`, corrected by overrides.yaml; raises UnknownNameError."""
    declared = declarations.read_declarations(api)
    main = _main_tensor(api, declared)
    names = frozenset(item.name for _, item in declared)
    described = [parameters.describe(api, place, item, main, names) for place, item in declared]
    found = [parameters.read_parameter(description) for description in described]
    found = [parameters.as_main_tensor(item) if _is_tensor_alone(api, item, main) else item for item in found]
    found = tensor_shapes.add_shapes(api, found, described)
    found = _with_dtypes(api, found)
    found = _with_ranks_of_defaults(found, main)
    record = Record(
        api,
        _kind(api),
        LIBRARY,
        version(LIBRARY),
        tuple(found),
        tuple(relations.extract_relations(api, found, described)),
        (*_definitions(api, found), *_defaults(described)),
        _uninitialized_warning(api),
    )
    return overrides.apply_corrections(record)


def _is_tensor_alone(api: str, item: Parameter, main: str) -> bool:
    return item.name == main and item.place == "call" and ("tensor" in item.options or _kind(api) == "method")


def _uninitialized_warning(api: str) -> str:
    """The docstring's warning that the call returns uninitialized memory."""
    for _, document in api_documentation.documentation_chain(api):
        for paragraph in document.prose:
            if "uninitialized" in paragraph:
                return strip_markup(paragraph)[:300]
    return ""


def _kind(api: str) -> Literal["function", "method", "class"]:
    if inspect.isclass(apis.resolve(api)):
        return "class"
    return "method" if apis.split_api(api)[0] == "torch.Tensor" else "function"


def _main_tensor(api: str, declared: Sequence[tuple[Place, Declared]]) -> str:
    for place, item in declared:
        if place == "call":
            entry = api_documentation.find_entry(api, item.name)
            types = (
                entry[1].type if entry else "",
                item.type,
                *(d.type for d in declarations.declared_types(api, item.name)[:1]),
            )
            options = next((found for text in types if (found := parse_structures(strip_markup(text)))), ())
            options = options or conventions.structures_by_name(item.name)
            if any("tensor" in option for option in options):
                return item.name
    return ""


# Symbols -------------------------------------------------------------------------------------------


def _definitions(api: str, found: Iterable[Parameter]) -> Iterable[Definition]:
    names = {item.name for item in found}
    seen: set[str] = set()
    for _, document in api_documentation.documentation_chain(api):
        for symbol, expression in shape_patterns.parse_definitions(document.shape_text):
            if symbol not in seen and expression in names:
                seen.add(symbol)
                yield Definition(symbol, expression, Evidence("docstring", f"{symbol} = {expression}"))
    for symbol, candidates in conventions.SYMBOLS:
        target = next((name for name in candidates if name in names), None)
        if target and symbol not in seen:
            yield Definition(symbol, target, Evidence("convention", f"{symbol} is {target}"))


def _defaults(described: Iterable[Description]) -> Iterable[Definition]:
    for description in described:
        match = re.search(r"Default(?: value is|:)\s*`*(\w+)`*", description.text)
        if match and match[1] in description.names - {description.name}:
            yield Definition(description.name, match[1], description.evidence_text)


# Element types ---------------------------------------------------------------------------------------


def _with_dtypes(api: str, found: list[Parameter]) -> list[Parameter]:
    """Types that the text gives to all tensors, or torch's namespaces imply; the others have the first's."""
    general = _shared_dtypes(api)
    main = next((item.name for item in found if item.is_tensor and not item.left_out), "")
    result = []
    for item in found:
        dtype = item.dtype
        if item.is_tensor and dtype is None and not item.left_out:
            because = f"{item.name} has the type of {main} where nothing else is given"
            dtype = general if item.name == main else Dtype((f"&{main}",), Evidence("convention", because))
        result.append(replace(item, dtype=dtype))
    return result


def _shared_dtypes(api: str) -> Dtype | None:
    for _, document in api_documentation.documentation_chain(api):
        for paragraph in document.prose:
            text = relations.WHOLE_NUMBERS.sub("", strip_markup(paragraph))
            if names := parse_tensor_dtypes("") or phrase_patterns.parse_dtypes(text):
                return Dtype(names, Evidence("docstring", text[:300]))
    if api.endswith("_") and not api.endswith("__"):
        because = Evidence("convention", "what computes in place computes in the type of its tensor")
        return Dtype(conventions.FUNCTIONAL_DTYPES, because)
    if _kind(api) == "class":
        because = Evidence("convention", "a module's parameters are float32, and so is its input")
        return Dtype(conventions.MODULE_DTYPES, because)
    for origin, _ in api_documentation.documentation_chain(api):
        for room in conventions.FLOATING:
            if origin.startswith(room):
                return Dtype(
                    conventions.FUNCTIONAL_DTYPES, Evidence("convention", f"{room} computes on floats")
                )
    return None


def _with_ranks_of_defaults(found: list[Parameter], main: str) -> list[Parameter]:
    """A default of dim=-2 requires two dimensions, whether given or not; any dim requires one."""
    named = next((item.name for item in found if conventions.DIMENSION.fullmatch(item.name)), "")
    least, because = (1, f"{named} names a dimension") if named else (0, "")
    for item in found:
        default = phrase_patterns.parse_literal(item.default)
        for value in default if isinstance(default, (tuple, list)) else (default,):
            if conventions.DIMENSION.fullmatch(item.name) and type(value) is int:
                needed = -value if value < 0 else value + 1
                if needed > least:
                    least, because = needed, f"{item.name} = {item.default}"
    if not least:
        return found
    rank = Rank(str(least), None, Evidence("signature", because))
    return [
        replace(item, ndim=rank) if item.name == main and item.shape is None and item.ndim is None else item
        for item in found
    ]
