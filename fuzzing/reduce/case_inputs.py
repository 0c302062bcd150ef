"""Reduces the inputs of a case together: equal lengths change as one, as they often have to agree."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

from fuzzing.cases.case import Input
from fuzzing.reduce.input_values import (
    as_tensor,
    cast_input,
    drop_axis,
    shorten_axis,
    shorter_lengths,
    simplify_input,
)

K = TypeVar("K", bound=Hashable)
#: Inputs by name, in the order of the program.
Inputs = tuple[tuple[str, Input], ...]


def propose_shortenings(shapes: Mapping[K, Sequence[int]]) -> Iterator[tuple[list[tuple[K, int]], int]]:
    """Names and axes to shorten together, and the new length; longest first, to the shortest first.

    Only the library's errors show which lengths have to agree, so all equal ones are tried together, then all
    but one, then each.
    """
    for length in sorted({length for shape in shapes.values() for length in shape}, reverse=True):
        places = [
            (name, axis) for name, shape in shapes.items() for axis, n in enumerate(shape) if n == length
        ]
        for new in shorter_lengths(length):
            for group in _groups(places):
                yield group, new


def _groups(places: list[tuple[K, int]]) -> list[list[tuple[K, int]]]:
    all_but_one = [[other for other in places if other != place] for place in places]
    groups = [places, *all_but_one, *([place] for place in places)]
    return [group for n, group in enumerate(groups) if group and group not in groups[:n]]


def shrink_inputs(inputs: Inputs) -> Iterator[Inputs]:
    """The inputs with shorter tensors, then each with a dimension less."""
    given = dict(inputs)
    shapes = {name: tensor.shape for name, value in inputs if (tensor := as_tensor(value)) is not None}
    for group, length in propose_shortenings(shapes):
        less = dict(given)
        for name, axis in group:
            less[name] = shorten_axis(less[name], axis, length) or less[name]
        yield tuple(less.items())
    for name, shape in shapes.items():
        for axis in range(len(shape)):
            if (flat := drop_axis(given[name], axis)) is not None:
                yield tuple((given | {name: flat}).items())


def simplify_inputs(inputs: Inputs) -> Iterator[Inputs]:
    """The inputs with one of them simplified."""
    for name, value in inputs:
        for candidate in simplify_input(value):
            yield tuple((dict(inputs) | {name: candidate}).items())


def cast_inputs(inputs: Inputs, replacements: Mapping[str, str]) -> Inputs:
    """The inputs with element types replaced; see `plainer_replacements`."""
    found = []
    for name, given in inputs:
        tensor = as_tensor(given)
        new = replacements.get(tensor.dtype) if tensor is not None else None
        found.append((name, given if new is None else cast_input(given, new)))
    return tuple(found)
