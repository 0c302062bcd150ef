"""Reads constraints on values and element types from sentences of descriptions."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache

from fuzzing.generate.docter.expressions import is_expression
from fuzzing.generate.docter.record import Enumeration, Evidence, Range

_NUMBER = r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)"
_TERM = r"([-\w.+ ()]+?)"
_INTERVAL = re.compile(rf"(?:range|interval|in|:math:|domain)?\s*:?\s*`*([\[(]){_TERM},\s*{_TERM}([\])])`*")
_BETWEEN = re.compile(rf"\bbetween `*{_NUMBER}`* and `*{_NUMBER}`*")
_CHAIN = re.compile(rf"{_NUMBER}\s*(<=?|≤)\s*\w+(?:\[\w\])?\s*(<=?|≤)\s*{_NUMBER}")
_BOUNDS = (
    (
        rf"(?:greater|larger|bigger) than or equal to {_NUMBER}|at least {_NUMBER}|[>]=\s*{_NUMBER}",
        "low",
        False,
    ),
    (rf"(?:greater|larger|bigger) than {_NUMBER}|>\s*{_NUMBER}", "low", True),
    (rf"(?:less|smaller) than or equal to {_NUMBER}|at most {_NUMBER}|<=\s*{_NUMBER}", "high", False),
    (rf"(?:less|smaller) than {_NUMBER}", "high", True),
)
_COMPILED_BOUNDS = tuple((re.compile(pattern), side, strict) for pattern, side, strict in _BOUNDS)
_NDIM = "ndim_of_"  # stands for ndim(x) while brackets are looked for
_NON_NEGATIVE = re.compile(r"non-?negative", re.IGNORECASE)
_POSITIVE = re.compile(r"\b(?:strictly )?positive\b(?! or negative| weight| example| class)", re.IGNORECASE)
_PROBABILITY = re.compile(r"\bprobabilit(?:y|ies)\b(?! distribution)", re.IGNORECASE)
_COUNT = re.compile(
    r"\b(number of|size of|length of|width of|count of|how many|spacing between"
    r"|dimension of the (?:feedforward network )?model|factor to increase|stride of|stride between"
    r"|target output size|the size|window size|amount of)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?:``|`|\")?'(\w[\w-]*)'|``\"([\w-]+)\"``|\"([\w-]+)\"|``'([\w-]+)'``")
_DTYPE_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"float and double|floating[- ]point|half, float or double|float, double", ("float32", "float64")),
    (r"cfloat|complex", ("complex64",)),
    (r"integral|integer", ("int64", "int32", "int16", "int8", "uint8")),
    (r"\bbool(ean)?\b", ("bool",)),
    (r"\blong\b|\bint64\b", ("int64",)),
    (r"\bint32\b", ("int32",)),
    (r"\buint8\b", ("uint8",)),
    (r"\bfloat\b", ("float32",)),
    (r"\bdouble\b", ("float64",)),
)
_DTYPES = re.compile(
    r"(?:supports?(?: inputs?)?(?: tensors?)? of|must be of|must have|must be an?|must be|of type"
    r"|only(?: supports?)?"
    r"|[Ee]xpects?|should be of|should be an?|has to be of)\b(?: type)?\s*(?P<words>[^.;]*?)"
    r"(?=\bdtypes?\b|\btypes?\b|\btensors?\b|[.;]|$)",
    re.IGNORECASE,
)


def parse_interval(text: str, because: Evidence, names: frozenset[str] = frozenset()) -> Range | None:
    """The bounds that a description states, None for none; its expressions may use `names`."""
    if match := _CHAIN.search(text) or _BETWEEN.search(text):
        if len(match.groups()) == 2:
            return Range(match[1], match[2], because)
        return Range(match[1], match[4], because, match[2] == "<", match[3] == "<")
    if (found := _bracketed(text, because, names)) is not None:
        return found
    low = high = None
    open_low = open_high = False
    for pattern, side, strict in _COMPILED_BOUNDS:
        stated = pattern.search(text)
        number = next((group for group in stated.groups() if group), None) if stated else None
        if number and side == "low" and low is None:
            low, open_low = number, strict
        elif number and side == "high" and high is None:
            high, open_high = number, strict
    if low is None and high is None:
        return _bounds_by_word(text, because)
    return Range(low, high, because, open_low, open_high)


def _bracketed(text: str, because: Evidence, names: frozenset[str]) -> Range | None:
    """`[0.0, 1.0]`, `[-input.dim() - 1, input.dim() + 1)`."""
    text = re.sub(r"(\w+)\.n?dim\b(?:\(\))?", rf"{_NDIM}\1", text)  # its brackets are not the interval's
    for match in _INTERVAL.finditer(text):
        low, high = _bound(match[2], names), _bound(match[3], names)
        spoken = re.search(r"(range|interval|in|domain|within|between|:)\s*:?\s*`*$", text[: match.start(1)])
        if low is None or high is None or not (spoken or match[1] == "[" or match[4] == "]"):
            continue
        if (low, high) == ("", "") or not re.search(r"[\d(]", low + high):
            continue
        return Range(
            low or None, high or None, because, match[1] == "(" and bool(low), match[4] == ")" and bool(high)
        )
    return None


def _bound(text: str, names: frozenset[str]) -> str | None:
    text = re.sub(rf"{_NDIM}(\w+)", r"ndim(\1)", text.strip())
    if re.fullmatch(r"[-+]?\s*(inf|infty|∞)", text):
        return ""
    if not is_expression(text):
        return None
    spoken = set(re.findall(r"[A-Za-z_]\w*", text)) - {"ndim"}
    return text if spoken <= names else None


def _bounds_by_word(text: str, because: Evidence) -> Range | None:
    if _NON_NEGATIVE.search(text):
        return Range("0", None, because)
    if _POSITIVE.search(text):
        return Range("0", None, because, open_low=True)
    if _PROBABILITY.search(text):
        return Range("0", "1", because)
    return None


def parse_count(text: str, because: Evidence) -> Range | None:
    """At least 1 for a parameter described as a number or a size of something."""
    return Range("1", None, because) if _COUNT.search(text) else None


def parse_enumeration(text: str, default: str | None, because: Evidence) -> Enumeration | None:
    """The quoted texts of a description, with the default; None if fewer than two."""
    words = [next(filter(None, groups)) for groups in _QUOTED.findall(text)]
    values: list[str | int | float | bool | None] = list(dict.fromkeys(words))
    if default is not None and values:
        literal = parse_literal(default)
        if (literal is None or isinstance(literal, str)) and literal not in values:
            values.append(literal)
    return Enumeration(tuple(values), because) if len(values) >= 2 else None


def parse_dtypes(text: str) -> tuple[str, ...]:
    """The element types to which a sentence restricts a tensor; () for none."""
    found: list[str] = []
    for match in _DTYPES.finditer(text):
        words = match["words"]
        if len(words) > 90:
            continue
        for pattern, names in _DTYPE_WORDS:
            if re.search(pattern, words, re.IGNORECASE):
                found.extend(names)
        if found:
            break
    return tuple(dict.fromkeys(found))


_FORMS = (
    (r"positive-?\s?definite", "positive definite"),
    (r"triangular Cholesky|Cholesky decomposition", "triangular"),
    (r"invertible matri", "invertible"),
    (r"symmetric or Hermitian matri", "symmetric"),
    (r"(strictly|monotonically) increasing", "increasing"),
)


def parse_form(text: str) -> str:
    """The name in `value_forms.FORMS` of a form that the text states, "" for none."""
    return next((name for pattern, name in _FORMS if re.search(pattern, text)), "")


_CONSTANTS: Mapping[str, object] = {"inf": float("inf")}


@cache
def parse_literal(text: str | None) -> object:
    """The Python value of a default's text; Ellipsis if it is not a literal."""
    if text is None:
        return ...
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return _CONSTANTS.get(text, ...)
    return value
