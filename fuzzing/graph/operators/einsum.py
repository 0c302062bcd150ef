"""Einsum."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from fuzzing.graph.attribute_domains import planned_attribute
from fuzzing.graph.intervals import Interval, intersect
from fuzzing.graph.operator_spec import PRIMARY_INPUT, DataInput, NodeContext, OperatorSpec
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import broadcast
from fuzzing.graph.operators.sliding_windows import NARROW
from fuzzing.graph.operators.sum_bounds import factor, max_output_elements, multiplied, summands, total
from fuzzing.graph.types import FLOATS, Shape, TensorType

#: The reference allows narrower integers too, whose sums hardly hold anything.
_NUMBERS = ("int32", "int64", "uint32", "uint64")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DOTS = "..."
#: So many products there may be for each element that an output may have.
_PRODUCTS = 16


class Equation(NamedTuple):
    """A parsed equation: the letters of each input and of the output, "." for the ellipsis."""

    inputs: tuple[str, ...]
    output: str


@lru_cache(maxsize=1024)
def parse(text: str) -> Equation:
    """Parses an equation; without an arrow the output has the letters that occur once, sorted."""
    left, arrow, right = text.replace(" ", "").replace(_DOTS, ".").partition("->")
    inputs = tuple(left.split(","))
    if not arrow:
        every = "".join(inputs)
        once = sorted(letter for letter in set(every) if every.count(letter) == 1 and letter != ".")
        right = ("." if "." in every else "") + "".join(once)
    return Equation(inputs, right)


def _lengths(context: NodeContext, equation: Equation) -> tuple[dict[str, int], Shape]:
    """The length of each letter, and the broadcast shape of the ellipses."""
    lengths: dict[str, int] = {}
    batch: Shape = ()
    for position, term in enumerate(equation.inputs):
        dims = context.dims(position)
        before, _, after = term.partition(".")
        end = len(dims) - len(after)
        pairs = [*zip(before, dims[: len(before)], strict=True), *zip(after, dims[end:], strict=True)]
        for letter, length in pairs:
            if length != 1 or letter not in lengths:
                lengths[letter] = length
        if "." in term:
            batch = broadcast(batch, dims[len(before) : end]) if batch else dims[len(before) : end]
    return lengths, batch


def _infer(context: NodeContext) -> tuple[TensorType, ...]:
    equation = parse(context.get("equation"))
    lengths, batch = _lengths(context, equation)
    before, dots, after = equation.output.partition(".")
    shape = (*[lengths[letter] for letter in before], *(batch if dots else ()), *[lengths[x] for x in after])
    return (TensorType(context.dtype, shape),)


def _values(context: NodeContext) -> Interval:
    equation = parse(context.get("equation"))
    lengths, batch = _lengths(context, equation)
    count = math.prod(length for letter, length in lengths.items() if letter not in equation.output)
    return total(
        context.dtype,
        (count if "." in equation.output else count * math.prod(dim or 1 for dim in batch)),
        *[context.range(position) for position in range(context.degree)],
    )


class _Plan(NamedTuple):
    """The shapes of the inputs after the first, and the number of products per element."""

    shapes: tuple[Shape, ...]
    summed: int


def _draw(context: NodeContext) -> _Plan:
    """An equation: the first input's letters, further inputs that share some of them, and an output."""
    rng, limits = context.rng, context.limits
    shape = context.dims(0)
    dotted = rng.between(1, len(shape)) if rng.chance(0.2) else 0
    batch, lengths = shape[:dotted], dict(zip(_LETTERS, shape[dotted:], strict=False))
    terms, shapes = [(_DOTS if dotted else "") + "".join(lengths)], []
    space = context.x.elements  # how many products there are in all
    for _ in range(context.degree - 1):
        shares = dotted and rng.chance(0.5)
        left = max_output_elements(context) // (math.prod(batch) if shares else 1)
        term: list[str] = []
        for letter, length in lengths.items():
            if length <= left and len(term) < 4 - dotted and rng.chance(0.6):
                term.append(letter)
                left //= length
        if rng.chance(0.6):
            letter = _LETTERS[len(lengths)]
            most = min(limits.max_dim, left, _PRODUCTS * max_output_elements(context) // space)
            lengths[letter] = rng.between(1, max(1, most))
            space *= lengths[letter]
            term.append(letter)
        term = [term[place] for place in rng.permutation(len(term))]
        if not term and not shares:
            term = [next(iter(lengths))] if lengths else []
        terms.append((_DOTS if shares else "") + "".join(term))
        shapes.append((*(batch if shares else ()), *[lengths[letter] for letter in term]))
    output = _output(context, lengths, dotted, math.prod(batch))
    context.attributes["equation"] = f"{','.join(terms)}->{output}"
    if rng.chance(0.1) and parse(",".join(terms)).output.replace(".", _DOTS) == output:
        context.attributes["equation"] = ",".join(terms)
    summed = math.prod(length for letter, length in lengths.items() if letter not in output)
    return _Plan(tuple(shapes), summed)


def _output(context: NodeContext, lengths: dict[str, int], dotted: int, batch: int) -> str:
    rng = context.rng
    left, most = max_output_elements(context) // batch, max(context.limits.max_rank, context.rank) - dotted
    kept = ""
    letters = list(lengths)
    for place in rng.permutation(len(letters)):
        letter = letters[place]
        if len(kept) < most and lengths[letter] <= left and rng.chance(0.7):
            kept += letter
            left //= lengths[letter]
    return (_DOTS if dotted else "") + kept


def _within(type_: TensorType) -> Interval:
    return intersect(multiplied(type_), summands(type_))


def _further(position: int) -> DataInput:
    return DataInput(
        lambda context: context.plan.shapes[position],
        within=lambda context: factor(context, context.plan.summed),
    )


def _einsum(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec(
        "Einsum", since, dtypes=(*dtypes, *_NUMBERS), ranks=tuple(range(1, 9)), within=_within, plan=_draw,
        input_specs=(PRIMARY_INPUT, _further(0), _further(1)), degrees=(1, 2, 3),
        attribute_specs=(planned_attribute("equation"),), infer=_infer, values=_values,
        torch=lambda context, names: f"torch.einsum({context.get('equation')!r}, {', '.join(names)})",
    )  # fmt: skip


register(_einsum(12, NARROW), _einsum(28, FLOATS))
