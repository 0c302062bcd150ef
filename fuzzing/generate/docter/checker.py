"""The checker: whether a call satisfies its record, and which parameter violates it.

A constraint on a value that is absent (an omitted tensor, a dimension made meaningless by another violation)
is ignored, so that one fault has one culprit.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzzing.cases import Dtype as DtypeArgument
from fuzzing.cases import Recipe, Tensor
from fuzzing.generate.docter import value_forms
from fuzzing.generate.docter.calls import Call, list_tensors
from fuzzing.generate.docter.expressions import ExpressionError, UnboundError, evaluate
from fuzzing.generate.docter.record import Category, Parameter, Range, Record
from fuzzing.generate.docter.symbol_bindings import Lengths, Scope, is_broadcastable, match_pattern

_SCALARS: Mapping[str, tuple[type, ...]] = {
    "int": (int,), "float": (float, int), "bool": (bool,), "str": (str,), "complex": (complex, float, int),
    "dtype": (DtypeArgument,), "tensor": (Recipe, Tensor),
}  # fmt: skip


@dataclass(frozen=True)
class Violation:
    """A broken constraint: its parameter, category and description."""

    parameter: str
    category: Category
    text: str


def find_violations(call: Call) -> tuple[Violation, ...]:
    """Every violation, by parameter in the API's order; () for a conforming call."""
    scope, faults = bind_symbols(call)
    found = list(itertools.chain(faults, _check_parameters(call, scope), _check_relations(call, scope)))
    places = {parameter.name: place for place, parameter in enumerate(call.record.parameters)}
    return tuple(sorted(found, key=lambda item: places.get(item.parameter, -1)))


def _check_parameters(call: Call, scope: Scope) -> Iterator[Violation]:
    for parameter in call.record.parameters:
        if parameter.name not in call.arguments:
            if parameter.required and not parameter.left_out:
                yield Violation(parameter.name, "structure", "it is required and not given")
            continue
        value = call.arguments[parameter.name]
        if not any(has_structure(value, option) for option in parameter.options):
            yield Violation(parameter.name, "structure", f"it is none of {', '.join(parameter.options)}")
            continue
        for category, text in _check_value(parameter, value, scope):
            yield Violation(parameter.name, category, text)


def has_structure(value: Any, option: str) -> bool:
    """Whether a value is of a structure. A bool is not an int; an int is a float."""
    if inner := re.fullmatch(r"(list|tuple)\((\w+)\)", option):
        return isinstance(value, (list, tuple)) and all(has_structure(item, inner[2]) for item in value)
    if isinstance(value, bool):
        return option == "bool"
    return isinstance(value, _SCALARS.get(option, ()))


def _check_value(parameter: Parameter, value: Any, scope: Scope) -> Iterator[tuple[Category, str]]:
    values = parameter.enum.values if parameter.enum else ()
    of_texts = any(isinstance(item, str) for item in values)
    legal = values if isinstance(value, str) or not of_texts else ()
    if legal and value not in legal:
        yield "value", f"{value!r} is none of {', '.join(map(repr, legal))}"
    for tensor in list_tensors(value):
        allowed = allowed_dtypes(parameter, scope)
        if allowed and tensor.dtype not in allowed:
            yield "dtype", f"{tensor.dtype} is none of {', '.join(allowed)}"
        if parameter.ndim and not is_within(
            len(tensor.shape), parameter.ndim.least, parameter.ndim.most, scope
        ):
            yield "shape", f"it has {len(tensor.shape)} dimensions"
    length = parameter.length if isinstance(value, (list, tuple)) else None
    if length and not is_within(len(value), length.least, length.most, scope):
        yield "structure", f"it has {len(value)} items"
    if parameter.range and not _in_range(value, parameter.range, scope):
        yield "value", f"it does not lie in {_format_range(parameter.range)}"
    if parameter.form and not _check_form(parameter, value, scope):
        yield "value", f"it is not {parameter.form.name}"


def allowed_dtypes(parameter: Parameter, scope: Mapping[str, Any]) -> tuple[str, ...]:
    """The element types that a parameter may have in this call; () for any."""
    if parameter.dtype is None:
        return ()
    found: list[str] = []
    for name in parameter.dtype.names:
        if not name.startswith("&"):
            found.append(name)
        elif name[1:] in scope:
            found.extend(tensor.dtype for tensor in itertools.islice(list_tensors(scope[name[1:]]), 1))
    return tuple(found)


def evaluate_bound(text: str | None, scope: Mapping[str, Any]) -> Any:
    """A bound's value; None if there is none, or if it is unknown in this call."""
    if text is None:
        return None
    try:
        value = evaluate(text, scope)
    except (UnboundError, ExpressionError):
        return None
    return value if isinstance(value, (int, float)) else None


def is_within(number: int, least: str | None, most: str | None, scope: Mapping[str, Any]) -> bool:
    """Whether a count lies between two expressions, both included."""
    low, high = evaluate_bound(least, scope), evaluate_bound(most, scope)
    return (low is None or number >= low) and (high is None or number <= high)


def _in_range(value: Any, given: Range, scope: Mapping[str, Any]) -> bool:
    low, high = evaluate_bound(given.low, scope), evaluate_bound(given.high, scope)
    return all(
        (low is None or (least > low if given.open_low else least >= low))
        and (high is None or (most < high if given.open_high else most <= high))
        for least, most in _extremes(value)
    )


def _extremes(value: Any) -> Iterator[tuple[float, float]]:
    if isinstance(value, (bool, str)):
        return
    if isinstance(value, (int, float)):
        yield value, value
    elif isinstance(value, (Recipe, Tensor)):
        array = (value.draw() if isinstance(value, Recipe) else value).array()
        if array.size and array.dtype.kind in "biuf":
            yield float(np.min(array)), float(np.max(array))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _extremes(item)


def _format_range(given: Range) -> str:
    left, right = "(" if given.open_low else "[", ")" if given.open_high else "]"
    return f"{left}{given.low or '-inf'}, {given.high or 'inf'}{right}"


def _check_form(parameter: Parameter, value: Any, scope: Mapping[str, Any]) -> bool:
    form = parameter.form
    if form is None:
        return True
    if form.name == value_forms.DISTINCT:
        rank = evaluate_bound(f"ndim({form.of})", scope)
        return rank is None or not isinstance(value, (list, tuple)) or value_forms.are_distinct(value, rank)
    if form.name in (value_forms.FACTORS, value_forms.EXPANSION):
        shape = target_shape(form.of, scope)
        if shape is None or not isinstance(value, (list, tuple)):
            return True
        return (
            math.prod(value) == math.prod(shape)
            if form.name == value_forms.FACTORS
            else is_broadcastable(shape, tuple(value))
        )
    arrays = [(item.draw() if isinstance(item, Recipe) else item).array() for item in list_tensors(value)]
    if form.name != "increasing" and any(
        array.ndim < 2 or array.shape[-1] != array.shape[-2] for array in arrays
    ):
        return True  # no square matrix: the shape is at fault
    return all(value_forms.FORMS[form.name].holds(array) for array in arrays)


def _check_relations(call: Call, scope: Scope) -> Iterator[Violation]:
    for relation in call.record.relations:
        try:
            if not evaluate(relation.holds, scope):
                yield Violation(relation.parameter, "value", f"not {relation.holds}")
        except (UnboundError, ExpressionError):
            continue  # it is about what this call does not have


# Shapes ----------------------------------------------------------------------------------------------


def bind_symbols(call: Call) -> tuple[Scope, list[Violation]]:
    """The symbols of the record's shapes in this call, and the shapes that fit none."""
    best: tuple[Scope, list[Violation]] | None = None
    for choice in list_choices(call.record):
        scope = Scope(call.scope(), call.record.definitions, frozenset(call.arguments))
        scope, faults = _match_all(call, choice, scope)
        if best is None or len(faults) < len(best[1]):
            best = scope, faults
        if not faults:
            break
    if best is None:
        return Scope(call.scope(), call.record.definitions, frozenset(call.arguments)), []
    return best


def list_choices(record: Record) -> Iterator[Mapping[int, int]]:
    """Every choice among alternative patterns, by their number: {number of patterns: index chosen}."""
    counts = sorted(
        {len(item.shape.patterns) for item in record.parameters if item.shape and not item.left_out}
    )
    for places in itertools.product(*(range(count) for count in counts)):
        yield dict(zip(counts, places, strict=True))


def _match_all(call: Call, choice: Mapping[int, int], scope: Scope) -> tuple[Scope, list[Violation]]:
    """Two rounds: the second computes what lacked a symbol in the first."""
    faults: dict[str, Violation] = {}
    for _ in range(2):
        for parameter in call.record.parameters:
            if parameter.shape is None or parameter.name not in call.arguments or parameter.name in faults:
                continue
            pattern = parameter.shape.patterns[choice[len(parameter.shape.patterns)]]
            for tensor in list_tensors(call.arguments[parameter.name]):
                fitting = match_shape(pattern, tensor.shape, scope)
                if fitting is None:
                    shown = ", ".join(pattern)
                    faults[parameter.name] = Violation(
                        parameter.name, "shape", f"{tensor.shape} is not ({shown})"
                    )
                    break
                scope = fitting
    return scope, list(faults.values())


def match_shape(pattern: tuple[str, ...], lengths: Lengths, scope: Scope) -> Scope | None:
    """The bindings under which a shape has a pattern; None if it does not."""
    kind, inside = parse_special_pattern(pattern)
    if not kind:
        return match_pattern(pattern, lengths, scope)
    to = target_shape(inside, scope)
    if to is None:
        return scope
    return scope if (lengths == to if kind == "same" else is_broadcastable(lengths, to)) else None


def parse_special_pattern(pattern: tuple[str, ...]) -> tuple[str, str]:
    """("same" or "broadcast", its argument), or two empty texts for a pattern of lengths."""
    found = re.fullmatch(r"(same|broadcast)\((.*)\)", pattern[0]) if len(pattern) == 1 else None
    return (found[1], found[2]) if found else ("", "")


def target_shape(inside: str, scope: Mapping[str, Any]) -> Lengths | None:
    """The shape of a parameter, or the shape spelled by expressions; None where this call has none."""
    if inside in scope and (first := next(list_tensors(scope[inside]), None)) is not None:
        return first.shape
    lengths = [evaluate_bound(part, scope) for part in inside.split(",")]
    if any(type(length) is not int for length in lengths):
        return None
    return tuple(lengths)
