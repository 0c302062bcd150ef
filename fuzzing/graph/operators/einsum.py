"""Einstein sums."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from fuzzing.graph.intervals import Interval, cut
from fuzzing.graph.operator import LEAD, Data, Operator, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import broadcast
from fuzzing.graph.operators.sums import factor, multiplied, room, summands, total
from fuzzing.graph.operators.windows import NARROW
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, Shape, TensorType

#: The reference allows narrower integers too, whose sums hardly hold anything.
_NUMBERS = ("int32", "int64", "uint32", "uint64")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DOTS = "..."
#: So many products there may be for each element that an output may have.
_PRODUCTS = 16


class Equation(NamedTuple):
    """An equation taken apart: the letters of each input and of the output, "." for the ellipsis."""

    inputs: tuple[str, ...]
    output: str


@lru_cache(maxsize=1024)
def parse(text: str) -> Equation:
    """The equation; without an arrow the output has the letters that occur once, in alphabetical order."""
    left, arrow, right = text.replace(" ", "").replace(_DOTS, ".").partition("->")
    inputs = tuple(left.split(","))
    if not arrow:
        every = "".join(inputs)
        once = sorted(letter for letter in set(every) if every.count(letter) == 1 and letter != ".")
        right = ("." if "." in every else "") + "".join(once)
    return Equation(inputs, right)


def _lengths(site: Site, equation: Equation) -> tuple[dict[str, int], Shape]:
    """The length of each letter, and the shape of what the ellipses stand for together."""
    lengths: dict[str, int] = {}
    batch: Shape = ()
    for position, term in enumerate(equation.inputs):
        dims = site.dims(position)
        before, _, after = term.partition(".")
        end = len(dims) - len(after)
        pairs = [*zip(before, dims[: len(before)], strict=True), *zip(after, dims[end:], strict=True)]
        for letter, length in pairs:
            if length != 1 or letter not in lengths:
                lengths[letter] = length
        if "." in term:
            batch = broadcast(batch, dims[len(before) : end]) if batch else dims[len(before) : end]
    return lengths, batch


def _infer(site: Site) -> tuple[TensorType, ...]:
    equation = parse(site.get("equation"))
    lengths, batch = _lengths(site, equation)
    before, dots, after = equation.output.partition(".")
    shape = (*[lengths[letter] for letter in before], *(batch if dots else ()), *[lengths[x] for x in after])
    return (TensorType(site.dtype, shape),)


def _summed(site: Site) -> int:
    """How many products one element sums."""
    equation = parse(site.get("equation"))
    lengths, batch = _lengths(site, equation)
    count = math.prod(length for letter, length in lengths.items() if letter not in equation.output)
    return count if "." in equation.output else count * math.prod(dim or 1 for dim in batch)


def _values(site: Site) -> Interval:
    return total(site.dtype, _summed(site), *[site.range(position) for position in range(site.degree)])


# --- drawing ----------------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """The shapes of the inputs behind the first, and how many products an element sums."""

    shapes: tuple[Shape, ...]
    summed: int


def _draw(site: Site) -> _Plan:
    """An equation: the first input's letters, further inputs that share some of them, some of all kept."""
    draws, limits = site.draws, site.limits
    shape = site.dims(0)
    dotted = draws.between(1, len(shape)) if draws.chance(0.2) else 0
    batch, lengths = shape[:dotted], dict(zip(_LETTERS, shape[dotted:], strict=False))
    terms, shapes = [(_DOTS if dotted else "") + "".join(lengths)], []
    space = site.x.elements  # how many products there are in all
    for _ in range(site.degree - 1):
        shares = dotted and draws.chance(0.5)
        left = room(site) // (math.prod(batch) if shares else 1)
        term: list[str] = []
        for letter, length in lengths.items():
            if length <= left and len(term) < 4 - dotted and draws.chance(0.6):
                term.append(letter)
                left //= length
        if draws.chance(0.6):
            letter = _LETTERS[len(lengths)]
            most = min(limits.max_dim, left, _PRODUCTS * room(site) // space)
            lengths[letter] = draws.between(1, max(1, most))
            space *= lengths[letter]
            term.append(letter)
        term = [term[place] for place in draws.permutation(len(term))]
        if not term and not shares:
            term = [next(iter(lengths))] if lengths else []
        terms.append((_DOTS if shares else "") + "".join(term))
        shapes.append((*(batch if shares else ()), *[lengths[letter] for letter in term]))
    output = _output(site, lengths, dotted, math.prod(batch))
    site.attributes["equation"] = f"{','.join(terms)}->{output}"
    if draws.chance(0.1) and _implied(",".join(terms)) == output:
        site.attributes["equation"] = ",".join(terms)
    summed = math.prod(length for letter, length in lengths.items() if letter not in output)
    return _Plan(tuple(shapes), summed)


def _output(site: Site, lengths: dict[str, int], dotted: int, batch: int) -> str:
    """Some of the letters in some order, as far as there is room."""
    draws = site.draws
    left, most = room(site) // batch, max(site.limits.max_rank, site.rank) - dotted
    kept = ""
    letters = list(lengths)
    for place in draws.permutation(len(letters)):
        letter = letters[place]
        if len(kept) < most and lengths[letter] <= left and draws.chance(0.7):
            kept += letter
            left //= lengths[letter]
    return (_DOTS if dotted else "") + kept


def _implied(inputs: str) -> str:
    return parse(inputs).output.replace(".", _DOTS)


def _within(type_: TensorType) -> Interval:
    return cut(multiplied(type_), summands(type_))


def _further(position: int) -> Data:
    return Data(lambda site: site.plan.shapes[position], within=lambda site: factor(site, site.plan.summed))


def _einsum(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "Einsum", since, dtypes=(*dtypes, *_NUMBERS), ranks=tuple(range(1, 9)), within=_within, plan=_draw,
        slots=(LEAD, _further(0), _further(1)), degrees=(1, 2, 3),
        settings=(planned("equation"),), infer=_infer, values=_values,
        torch=lambda site, names: f"torch.einsum({site.get('equation')!r}, {', '.join(names)})",
    )  # fmt: skip


register(_einsum(12, NARROW), _einsum(28, FLOATS))
