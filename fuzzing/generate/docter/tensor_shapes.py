"""The shapes of tensors: from Shape sections, descriptions, running text, or torch's naming conventions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fuzzing.generate.docter import (
    api_documentation,
    conventions,
    declarations,
    phrase_patterns,
    shape_patterns,
)
from fuzzing.generate.docter.docstrings import Entry
from fuzzing.generate.docter.latex import strip_markup
from fuzzing.generate.docter.parameters import Description
from fuzzing.generate.docter.record import Dtype, Evidence, Form, Parameter, Range, Shape

_NO_SHAPE = ("output", "outputs", "where", "out")
_CLASS_BOUND = re.compile(r"0 <= \w+\[i\] <= (?P<high>[\w -]+)|between \[0, (?P<open>[A-Z]\w*)\)")


def add_shapes(api: str, found: list[Parameter], described: Sequence[Description]) -> list[Parameter]:
    """Adds the first shape found in Shape section, description, running text or naming conventions."""
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
    if patterns := shape_patterns.parse_patterns(description.text):
        patterns = tuple(conventions.rename_symbols(pattern, description.api) for pattern in patterns)
        return replace(item, shape=Shape(patterns, description.evidence_text), ndim=None)
    if item.name in sections:
        shape, values = sections[item.name]
        dtype = item.dtype or (Dtype(("int64",), values.evidence) if values else None)
        return replace(item, shape=shape, ndim=None, range=item.range or values, dtype=dtype)
    if other := shape_patterns.same_as(description.text, others):
        return replace(item, shape=Shape(((f"same({other})",),), description.evidence_text), ndim=None)
    if other := shape_patterns.broadcasts_to(description.text, others):
        return replace(item, shape=Shape(((f"broadcast({other})",),), description.evidence_text), ndim=None)
    if item.name in prose:
        return replace(item, shape=prose[item.name], ndim=None)
    if item.ndim is None and item.name != first and first and "list(tensor)" not in item.options:
        return replace(item, shape=_conventional(item, description.api, first))
    return item


def _with_form(item: Parameter, description: Description) -> Parameter:
    """The form of a tensor; a form of matrices only where the shape is known to be square."""
    name = phrase_patterns.parse_form(description.text)
    square = item.shape is not None and all(
        len(pattern) > 1 and pattern[-1] == pattern[-2] for pattern in item.shape.patterns
    )
    if name == "increasing" or (name and square):
        return replace(item, form=Form(name, description.evidence_text))
    return item


def _with_indices(item: Parameter, description: Description, first: str) -> Parameter:
    """Indices lie within the dimension that the call names, or within the first tensor's first."""
    integral = item.dtype is not None and set(item.dtype.names) <= {"int64", "int32"}
    if not integral or item.range is not None or item.name == first or not first:
        return item
    if "dim" in description.names:
        where = f"size({first}, dim)"
    else:  # put_ and take count through all elements
        where = f"numel({first})" if re.search(r"put|take", description.api) else f"size({first}, 0)"
    because = Evidence("convention", f"{item.name} holds places in {first}")
    return replace(item, range=Range("0", f"{where} - 1", because))


def _conventional(item: Parameter, api: str, first: str) -> Shape:
    kind, because = "broadcast", f"{item.name} is broadcast to {first}"
    if item.dtype and "int64" in item.dtype.names:
        kind, because = "same", f"{item.name} has an index for each element of {first}"
    elif api.startswith("torch.nn"):
        kind, because = "same", f"{item.name} goes with {first}, element by element"
    return Shape(((f"{kind}({first})",),), Evidence("convention", because))


def _of_sections(api: str, found: Iterable[Parameter]) -> dict[str, tuple[Shape, Range | None]]:
    call = [item for item in found if item.place == "call" and (item.is_tensor or not item.options)]
    for _, document in api_documentation.documentation_chain(api):
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
    text = strip_markup(entry.text)
    because = Evidence("docstring", f"{entry.name}: {text}"[:300])
    patterns = shape_patterns.parse_patterns(text, anywhere=True)
    other = shape_patterns.same_as(text, frozenset({"input", "input1"}))
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
    for origin, document in api_documentation.documentation_chain(api):
        for paragraph in document.prose:
            text = strip_markup(paragraph)
            if origin.startswith("torch.Tensor."):
                text = text.replace("self", declarations.SELF)
            if found := shape_patterns.parse_sentences(text, names):
                because = Evidence("docstring", text[:300])
                return {name: Shape((pattern,), because) for name, pattern in found.items()}
    return {}
