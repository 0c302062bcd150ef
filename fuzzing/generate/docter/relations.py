"""Conditions across parameters: divisibility, halves, whole numbers for integers, nonempty outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fuzzing.generate.docter import api_documentation, shape_patterns
from fuzzing.generate.docter.expressions import names_in
from fuzzing.generate.docter.latex import strip_markup
from fuzzing.generate.docter.parameters import Description
from fuzzing.generate.docter.record import Evidence, Parameter, Relation

_DIVISIBLE = re.compile(
    r"(?:both )?`*(?P<first>\w+)`*(?: and `*(?P<second>\w+)`*)? (?:should|must)(?: both)? be divisible by "
    r"(?:the )?(?:number of )?`*(?P<by>\w+)"
)
_HALF = re.compile(
    r"at most half of (?:effective )?(?:kernel|kernel_size)\b|<= kernel_size / 2", re.IGNORECASE
)
#: Numbers that are integers unless the tensors are floating-point ones; it limits no tensor's type.
WHOLE_NUMBERS = re.compile(
    r"For inputs of type `*FloatTensor`* or `*DoubleTensor`*,(?: arguments?)? "
    r"`*(?P<first>\w+)`*(?: and `*(?P<second>\w+)`*)? must be (?:a )?real numbers?, "
    r"otherwise (?:they should be integers|an integer)"
)
_DIGIT = re.compile(r"(\d)d")


def extract_relations(
    api: str, found: Sequence[Parameter], described: Sequence[Description]
) -> Iterator[Relation]:
    """All conditions in the descriptions and the formulas of the Shape section."""
    names = frozenset(item.name for item in found)
    for description in described:
        yield from _divisible(description.text, description.name, names)
        if _HALF.search(description.text) and "kernel_size" in names:
            for place in range(_dimensions(api)):
                holds = f"2 * {description.name}[{place}] <= kernel_size[{place}]"
                yield Relation(holds, description.name, description.evidence_text)
    for _, document in api_documentation.documentation_chain(api):
        for paragraph in document.prose:
            text = strip_markup(paragraph)
            yield from _divisible(text, "", names)
            yield from _whole(text, found)
            if "pad should be at most half" in text and {"padding", "kernel_size"} <= names:
                for place in range(_dimensions(api)):
                    holds = f"2 * padding[{place}] <= kernel_size[{place}]"
                    yield Relation(holds, "padding", Evidence("docstring", text[:300]))
    if {"dim", "keepdim"} <= names and any(item.name == "dim" and not item.required for item in found):
        because = Evidence("convention", "a dimension is kept where one is reduced")
        yield Relation("given(dim) or not given(keepdim)", "keepdim", because)
    yield from _outputs(api, found, names)


def _dimensions(api: str) -> int:
    match = _DIGIT.search(api)
    return int(match[1]) if match else 1


def _divisible(text: str, owner: str, names: frozenset[str]) -> Iterator[Relation]:
    for match in _DIVISIBLE.finditer(text):
        by = match["by"] if match["by"] in names else owner
        for name in (match["first"], match["second"]):
            if name in names and by in names:
                yield Relation(f"{name} % {by} == 0", by, Evidence("docstring", match[0]))


def _whole(text: str, found: Sequence[Parameter]) -> Iterator[Relation]:
    """Numbers that are integers where the tensors are, such as value of torch.addcmul."""
    tensors = [item.name for item in found if item.is_tensor]
    for match in WHOLE_NUMBERS.finditer(text):
        for name in (match["first"], match["second"]):
            if name in {item.name for item in found}:
                holds = " or ".join([f"is_integer({name})", *(f"not is_integer({one})" for one in tensors)])
                yield Relation(holds, name, Evidence("docstring", match[0]))


def _first_items(formula: str, found: Sequence[Parameter]) -> str:
    """A formula for one dimension, where a list stands for its only item."""
    for item in found:
        if "list(int)" in item.options:
            formula = re.sub(rf"\b{item.name}\b(?!\[)", f"{item.name}[0]", formula)
    return formula


def _outputs(api: str, found: Sequence[Parameter], names: frozenset[str]) -> Iterator[Relation]:
    """Every documented output length is at least 1, where its formula uses known names only."""
    symbols = {
        token
        for item in found
        if item.shape
        for pattern in item.shape.patterns
        for token in pattern
        if token.isidentifier()
    }
    main = next((item.name for item in found if item.shape), "")
    for _, document in api_documentation.documentation_chain(api):
        formulas = shape_patterns.parse_formulas(document.shape_text)
        for symbol, formula in formulas:
            if names_in(formula) <= names | symbols:
                holds = f"{_first_items(formula, found)} >= 1"
                yield Relation(holds, main, Evidence("docstring", f"{symbol} = {formula}"))
        if formulas:
            return
