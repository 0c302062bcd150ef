"""`constraints(api)`: the record of an API of the installed torch."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import Literal

from fuzzing.generate.docter import (
    apis,
    conventions,
    declarations,
    documents,
    overrides,
    parameters,
    phrases,
    relations,
    shapes,
)
from fuzzing.generate.docter.docstrings import Entry
from fuzzing.generate.docter.latex import without_markup
from fuzzing.generate.docter.native import Declared
from fuzzing.generate.docter.parameters import Description
from fuzzing.generate.docter.record import Definition, Dtype, Evidence, Parameter, Place, Range, Rank, Record, Shape
from fuzzing.generate.docter.structures import structures, tensor_dtypes

LIBRARY = "torch"
_NO_SHAPE = ("output", "outputs", "where", "out")
_CLASS_BOUND = re.compile(r"0 <= \w+\[i\] <= (?P<high>[\w -]+)|between \[0, (?P<open>[A-Z]\w*)\)")


@cache
def constraints(api: str) -> Record:
    """What is documented of `api`, with the corrections of overrides.yaml; raises UnknownNameError."""
    declared = declarations.declarations(api)
    main = _main(api, declared)
    names = frozenset(item.name for _, item in declared)
    described = [parameters.describe(api, place, item, main, names) for place, item in declared]
    found = [parameters.parameter(description) for description in described]
    found = _with_shapes(api, found, described)
    found = _with_dtypes(api, found)
    found = _with_ranks_of_defaults(found, main)
    record = Record(
        api,
        _kind(api),
        LIBRARY,
        version(LIBRARY),
        tuple(found),
        tuple(relations.relations(api, found, described)),
        tuple(_definitions(api, found)),
    )
    return overrides.corrected(record)


def _kind(api: str) -> Literal["function", "method", "class"]:
    if inspect.isclass(apis.resolve(api)):
        return "class"
    return "method" if apis.split(api)[0] == "torch.Tensor" else "function"


def _main(api: str, declared: Sequence[tuple[Place, Declared]]) -> str:
    """The first tensor, or list of tensors, that the call takes."""
    for place, item in declared:
        if place == "call":
            entry = documents.entry(api, item.name)
            types = (entry[1].type if entry else "", item.type, *(d.type for d in declarations.typed(api, item.name)[:1]))
            options = next((found for text in types if (found := structures(without_markup(text)))), ())
            options = options or conventions.structures_by_name(item.name)
            if any("tensor" in option for option in options):
                return item.name
    return ""


# Shapes ----------------------------------------------------------------------------------------------


def _with_shapes(api: str, found: list[Parameter], described: Sequence[Description]) -> list[Parameter]:
    """The shapes of the Shape section, of each description, of running text, or what torch's names imply."""
    sections = _of_sections(api, found)
    tensors = frozenset(item.name for item in found if item.is_tensor and not item.left_out)
    prose = _of_prose(api, tensors)
    first = next((item.name for item in described if item.name in tensors), "")
    result = []
    for item, description in zip(found, described, strict=True):
        if item.name in tensors:
            item = _with_shape(item, description, sections, prose, tensors, first)
        result.append(item)
    return result


def _with_shape(
    item: Parameter,
    description: Description,
    sections: dict[str, tuple[Shape, Range | None]],
    prose: dict[str, Shape],
    tensors: frozenset[str],
    first: str,
) -> Parameter:
    others = tensors - {item.name}
    if patterns := shapes.patterns(description.text):
        return replace(item, shape=Shape(patterns, description.said), ndim=None)
    if item.name in sections:
        shape, values = sections[item.name]
        return replace(item, shape=shape, ndim=None, range=item.range or values)
    if other := shapes.same_as(description.text, others):
        return replace(item, shape=Shape(((f"same({other})",),), description.said), ndim=None)
    if other := shapes.broadcasts_to(description.text, others):
        return replace(item, shape=Shape(((f"broadcast({other})",),), description.said), ndim=None)
    if item.name in prose:
        return replace(item, shape=prose[item.name], ndim=None)
    if item.ndim is None and item.name != first and first and "list(tensor)" not in item.options:
        return replace(item, shape=_conventional(item, description.api, first))
    return item


def _conventional(item: Parameter, api: str, first: str) -> Shape:
    if item.dtype and "int64" in item.dtype.names:
        return Shape(((f"same({first})",),), Evidence("convention", f"{item.name} has an index for each element of {first}"))
    if api.startswith("torch.nn"):
        return Shape(((f"same({first})",),), Evidence("convention", f"{item.name} goes with {first}, element by element"))
    return Shape(((f"broadcast({first})",),), Evidence("convention", f"{item.name} is broadcast to {first}"))


def _of_sections(api: str, found: Iterable[Parameter]) -> dict[str, tuple[Shape, Range | None]]:
    """Shapes by parameter from the first Shape section along the references."""
    call = [item for item in found if item.place == "call" and (item.is_tensor or not item.options)]
    for _, document in documents.chain(api):
        entries = [entry for entry in document.shapes if not entry.name.lower().startswith(_NO_SHAPE)]
        read = {entry.name.lower(): shape for entry in entries if (shape := _of_entry(entry))}
        if not read:
            continue
        result = {item.name: read[item.name.lower()] for item in call if item.name.lower() in read}
        if not result:  # a module calls x1 what its Shape section calls Input1
            result = {item.name: shape for item, shape in zip(call, read.values(), strict=False)}
        if result:
            return result
    return {}


def _of_entry(entry: Entry) -> tuple[Shape, Range | None] | None:
    text = without_markup(entry.text)
    because = Evidence("docstring", f"{entry.name}: {text}"[:300])
    patterns = shapes.patterns(text, anywhere=True)
    if other := shapes.same_as(text, frozenset({"input", "input1"})):
        if "Input" not in entry.name and (not patterns or patterns == (("*",),)):
            patterns = ((f"same({other})",),)
    bound = _CLASS_BOUND.search(text)
    values = None
    if bound:
        values = Range("0", bound["high"] or bound["open"], because, open_high=bound["open"] is not None)
    return (Shape(patterns, because), values) if patterns else None


def _of_prose(api: str, names: frozenset[str]) -> dict[str, Shape]:
    if not names:
        return {}
    for origin, document in documents.chain(api):
        for paragraph in document.prose:
            text = without_markup(paragraph)
            if origin.startswith("torch.Tensor."):
                text = text.replace("self", declarations.SELF)
            if found := shapes.of_sentences(text, names):
                because = Evidence("docstring", text[:300])
                return {name: Shape((pattern,), because) for name, pattern in found.items()}
    return {}


def _definitions(api: str, found: Iterable[Parameter]) -> Iterable[Definition]:
    """What symbols of the shapes stand for; those that the section does not define go by convention."""
    names = {item.name for item in found}
    seen: set[str] = set()
    for _, document in documents.chain(api):
        for symbol, expression in shapes.definitions(document.shape_text):
            if symbol not in seen and expression in names:
                seen.add(symbol)
                yield Definition(symbol, expression, Evidence("docstring", f"{symbol} = {expression}"))
    for symbol, candidates in conventions.SYMBOLS:
        stands = next((name for name in candidates if name in names), None)
        if stands and symbol not in seen:
            yield Definition(symbol, stands, Evidence("convention", f"{symbol} is {stands}"))


# Element types ---------------------------------------------------------------------------------------


def _with_dtypes(api: str, found: list[Parameter]) -> list[Parameter]:
    """Types that the text gives to all tensors, or torch's rooms do; the others have the first's."""
    general = _general_dtypes(api)
    main = next((item.name for item in found if item.is_tensor and not item.left_out), "")
    result = []
    for item in found:
        if item.is_tensor and item.dtype is None and not item.left_out:
            if item.name != main:
                because = Evidence("convention", f"{item.name} has the type of {main} where nothing else is said")
                item = replace(item, dtype=Dtype((f"&{main}",), because))
            elif general is not None:
                item = replace(item, dtype=general)
        result.append(item)
    return result


def _general_dtypes(api: str) -> Dtype | None:
    for _, document in documents.chain(api):
        for paragraph in document.prose:
            text = without_markup(paragraph)
            if names := tensor_dtypes("") or phrases.dtypes(text):
                return Dtype(names, Evidence("docstring", text[:300]))
    if api.startswith("torch.nn.functional."):
        because = Evidence("convention", "torch.nn.functional computes on floating-point tensors")
        return Dtype(conventions.FUNCTIONAL_DTYPES, because)
    if api.startswith("torch.nn."):
        because = Evidence("convention", "a module's parameters are float32, and so is its input")
        return Dtype(conventions.MODULE_DTYPES, because)
    return None


def _with_ranks_of_defaults(found: list[Parameter], main: str) -> list[Parameter]:
    """A default of dim=-2 asks for two dimensions, whether it is given or not."""
    least, because = 0, ""
    for item in found:
        default = phrases.literal_of(item.default)
        for value in default if isinstance(default, (tuple, list)) else (default,):
            if conventions.DIMENSION.fullmatch(item.name) and type(value) is int:
                needed = -value if value < 0 else value + 1
                if needed > max(least, 1):
                    least, because = needed, f"{item.name} = {item.default}"
    if not least:
        return found
    rank = Rank(str(least), None, Evidence("signature", because))
    return [
        replace(item, ndim=rank) if item.name == main and item.shape is None and item.ndim is None else item
        for item in found
    ]
