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
from fuzzing.generate.docter.record import (
    Definition,
    Dtype,
    Evidence,
    Form,
    Parameter,
    Place,
    Range,
    Rank,
    Record,
    Shape,
)
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
    found = [parameters.tensor_itself(item) if _is_tensor_alone(api, item, main) else item for item in found]
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
        (*_definitions(api, found), *_defaults(described)),
        _uninitialised(api),
    )
    return overrides.corrected(record)


def _is_tensor_alone(api: str, item: Parameter, main: str) -> bool:
    """A method's first parameter, and a function's: numbers may stand for tensors, not for all."""
    return item.name == main and item.place == "call" and ("tensor" in item.options or _kind(api) == "method")


def _uninitialised(api: str) -> str:
    """Where a docstring warns of what `empty` and its kin hand out."""
    for _, document in documents.chain(api):
        for paragraph in document.prose:
            if "uninitialized" in paragraph:
                return without_markup(paragraph)[:300]
    return ""


def _kind(api: str) -> Literal["function", "method", "class"]:
    if inspect.isclass(apis.resolve(api)):
        return "class"
    return "method" if apis.split(api)[0] == "torch.Tensor" else "function"


def _main(api: str, declared: Sequence[tuple[Place, Declared]]) -> str:
    """The first tensor, or list of tensors, that the call takes."""
    for place, item in declared:
        if place == "call":
            entry = documents.entry(api, item.name)
            types = (
                entry[1].type if entry else "",
                item.type,
                *(d.type for d in declarations.typed(api, item.name)[:1]),
            )
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
            shaped = _with_shape(item, description, sections, prose, tensors, first)
            result.append(_with_form(_with_indices(shaped, description, first), description))
        else:
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
        patterns = tuple(conventions.renamed(pattern, description.api) for pattern in patterns)
        return replace(item, shape=Shape(patterns, description.said), ndim=None)
    if item.name in sections:
        shape, values = sections[item.name]
        dtype = item.dtype or (Dtype(("int64",), values.evidence) if values else None)
        return replace(item, shape=shape, ndim=None, range=item.range or values, dtype=dtype)
    if other := shapes.same_as(description.text, others):
        return replace(item, shape=Shape(((f"same({other})",),), description.said), ndim=None)
    if other := shapes.broadcasts_to(description.text, others):
        return replace(item, shape=Shape(((f"broadcast({other})",),), description.said), ndim=None)
    if item.name in prose:
        return replace(item, shape=prose[item.name], ndim=None)
    if item.ndim is None and item.name != first and first and "list(tensor)" not in item.options:
        return replace(item, shape=_conventional(item, description.api, first))
    return item


def _with_form(item: Parameter, description: Description) -> Parameter:
    """What a tensor is as a whole; a form of matrices only where the shape is known to be square."""
    name = phrases.form(description.text)
    square = item.shape is not None and all(
        len(pattern) > 1 and pattern[-1] == pattern[-2] for pattern in item.shape.patterns
    )
    return (
        replace(item, form=Form(name, description.said))
        if name == "increasing" or (name and square)
        else item
    )


def _with_indices(item: Parameter, description: Description, first: str) -> Parameter:
    """Indices lie within the dimension that the call names, or within the first tensor's first."""
    integral = item.dtype is not None and set(item.dtype.names) <= {"int64", "int32"}
    if not integral or item.range is not None or item.name == first or not first:
        return item
    where = (
        f"size({first}, dim)"
        if "dim" in description.names
        else f"numel({first})"
        if "put" in description.api or "take" in description.api
        else f"size({first}, 0)"
    )
    because = Evidence("convention", f"{item.name} holds places in {first}")
    return replace(item, range=Range("0", f"{where} - 1", because))


def _conventional(item: Parameter, api: str, first: str) -> Shape:
    if item.dtype and "int64" in item.dtype.names:
        return Shape(
            ((f"same({first})",),),
            Evidence("convention", f"{item.name} has an index for each element of {first}"),
        )
    if api.startswith("torch.nn"):
        return Shape(
            ((f"same({first})",),),
            Evidence("convention", f"{item.name} goes with {first}, element by element"),
        )
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
    other = shapes.same_as(text, frozenset({"input", "input1"}))
    if other and "Input" not in entry.name and (not patterns or patterns == (("*",),)):
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


def _defaults(described: Iterable[Description]) -> Iterable[Definition]:
    """A stride that is not given is the kernel's size."""
    for description in described:
        match = re.search(r"Default(?: value is|:)\s*`*(\w+)`*", description.text)
        if match and match[1] in description.names - {description.name}:
            yield Definition(description.name, match[1], description.said)


# Element types ---------------------------------------------------------------------------------------


def _with_dtypes(api: str, found: list[Parameter]) -> list[Parameter]:
    """Types that the text gives to all tensors, or torch's rooms do; the others have the first's."""
    general = _general_dtypes(api)
    main = next((item.name for item in found if item.is_tensor and not item.left_out), "")
    result = []
    for item in found:
        dtype = item.dtype
        if item.is_tensor and dtype is None and not item.left_out:
            because = f"{item.name} has the type of {main} where nothing else is said"
            dtype = general if item.name == main else Dtype((f"&{main}",), Evidence("convention", because))
        result.append(replace(item, dtype=dtype))
    return result


def _general_dtypes(api: str) -> Dtype | None:
    for _, document in documents.chain(api):
        for paragraph in document.prose:
            text = without_markup(paragraph)
            if names := tensor_dtypes("") or phrases.dtypes(text):
                return Dtype(names, Evidence("docstring", text[:300]))
    if api.endswith("_") and not api.endswith("__"):
        because = Evidence("convention", "what computes in place computes in the type of its tensor")
        return Dtype(conventions.FUNCTIONAL_DTYPES, because)
    if _kind(api) == "class":
        because = Evidence("convention", "a module's parameters are float32, and so is its input")
        return Dtype(conventions.MODULE_DTYPES, because)
    for origin, _ in documents.chain(api):
        for room in conventions.FLOATING:
            if origin.startswith(room):
                return Dtype(
                    conventions.FUNCTIONAL_DTYPES, Evidence("convention", f"{room} computes on floats")
                )
    return None


def _with_ranks_of_defaults(found: list[Parameter], main: str) -> list[Parameter]:
    """A default of dim=-2 asks for two dimensions, whether it is given or not; any dim asks for one."""
    named = next((item.name for item in found if conventions.DIMENSION.fullmatch(item.name)), "")
    least, because = (1, f"{named} names a dimension") if named else (0, "")
    for item in found:
        default = phrases.literal_of(item.default)
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
