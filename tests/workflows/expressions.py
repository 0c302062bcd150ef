"""Evaluates the expressions of GitHub Actions' workflows.

The grammar, the order of operators and the rules of comparison are those of GitHub's documentation, "Evaluate
expressions in workflows and actions".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Contexts = Mapping[str, Any]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?)|'(?P<text>(?:[^']|'')*)'|(?P<name>[A-Za-z_][\w-]*)"
    r"|(?P<sign>&&|\|\||==|!=|<=|>=|[<>!().,\[\]]))"
)
_HOLE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_LITERALS = {"true": True, "false": False, "null": None}
#: Operators that join two values, the weakest first.
_LEVELS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="))


class ExpressionError(ValueError):
    """An expression that GitHub would refuse."""


def interpolate(text: str, contexts: Contexts) -> str:
    """`text` with the value of each `${{ … }}`."""
    return _HOLE.sub(lambda found: as_text(evaluate(found[1], contexts)), text)


def value_of(text: Any, contexts: Contexts) -> Any:
    """The value of a key that may hold one expression of any type, or text with expressions."""
    if not isinstance(text, str):
        return text
    whole = _HOLE.fullmatch(text.strip())
    return evaluate(whole[1], contexts) if whole else interpolate(text, contexts)


def condition(text: str | bool, contexts: Contexts) -> bool:
    """Whether an `if` holds. Without a status function it holds only while nothing has failed."""
    written = as_text(text).strip()
    whole = _HOLE.fullmatch(written)
    expression = whole[1] if whole else written
    if not re.search(r"\b(always|success|failure|cancelled)\s*\(", expression):
        expression = f"success() && ({expression})"
    return truth(evaluate(expression, contexts))


def evaluate(expression: str, contexts: Contexts) -> Any:
    """The value of an expression without its `${{ }}`."""
    parser = _Parser(_tokens(expression), contexts)
    value = parser.value(0)
    if parser.rest:
        raise ExpressionError(f"{expression.strip()!r}: unexpected {parser.rest[0].text!r}")
    return value


def truth(value: Any) -> bool:
    return value not in (None, False, 0, "")


def as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def _tokens(expression: str) -> list[_Token]:
    found, place, written = [], 0, expression.strip()
    while place < len(written):
        match = _TOKEN.match(written, place)
        if match is None or match.lastgroup is None:
            raise ExpressionError(f"{written!r}: not an expression at {written[place:]!r}")
        found.append(_Token(match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return found


class _Parser:
    def __init__(self, rest: list[_Token], contexts: Contexts) -> None:
        self.rest, self._contexts = rest, contexts

    def value(self, level: int) -> Any:
        if level == len(_LEVELS):
            return self._unary()
        left = self.value(level + 1)
        while self._next_is(*_LEVELS[level]):
            sign = self.rest.pop(0).text
            right = self.value(level + 1)
            left = _joined(sign, left, right)
        return left

    def _unary(self) -> Any:
        if self._next_is("!"):
            self.rest.pop(0)
            return not truth(self._unary())
        return self._members(self._primary())

    def _primary(self) -> Any:
        if not self.rest:
            raise ExpressionError("an expression ends too early")
        token = self.rest.pop(0)
        if token.kind == "number":
            return float(token.text) if "." in token.text else int(token.text)
        if token.kind == "text":
            return token.text.replace("''", "'")
        if token.text == "(":
            value = self.value(0)
            self._take(")")
            return value
        if token.kind != "name":
            raise ExpressionError(f"unexpected {token.text!r}")
        if self._next_is("("):
            return self._call(token.text)
        if token.text in _LITERALS:
            return _LITERALS[token.text]
        if token.text not in self._contexts:
            raise ExpressionError(f"there is no context {token.text!r} here")
        return self._contexts[token.text]

    def _members(self, value: Any) -> Any:
        while self._next_is(".", "["):
            if self.rest.pop(0).text == ".":
                value = _member(value, self.rest.pop(0).text)
            else:
                value = _member(value, self.value(0))
                self._take("]")
        return value

    def _call(self, name: str) -> Any:
        self._take("(")
        arguments = []
        while not self._next_is(")"):
            arguments.append(self.value(0))
            if not self._next_is(")"):
                self._take(",")
        self._take(")")
        if name in ("always", "success", "failure", "cancelled"):
            return self._contexts["status"][name]
        if name not in _FUNCTIONS:
            raise ExpressionError(f"there is no function {name!r}")
        return _FUNCTIONS[name](*arguments)

    def _next_is(self, *signs: str) -> bool:
        return bool(self.rest) and self.rest[0].kind == "sign" and self.rest[0].text in signs

    def _take(self, sign: str) -> None:
        if not self._next_is(sign):
            raise ExpressionError(f"{sign!r} is missing")
        self.rest.pop(0)


def _member(value: Any, name: Any) -> Any:
    """A property or an item; null where there is none."""
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, list) and isinstance(name, int):
        return value[name] if name < len(value) else None
    return None


def _joined(sign: str, left: Any, right: Any) -> Any:
    if sign == "||":
        return left if truth(left) else right
    if sign == "&&":
        return right if truth(left) else left
    if isinstance(left, str) and isinstance(right, str):
        left, right = left.casefold(), right.casefold()
    elif type(left) is not type(right):
        left, right = _number(left), _number(right)
    comparisons: dict[str, Callable[[], bool]] = {
        "==": lambda: left == right,
        "!=": lambda: left != right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
    }
    return comparisons[sign]()


def _number(value: Any) -> float:
    if value is None or value == "":
        return 0.0
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "contains": lambda where, what: (
        what in where if isinstance(where, list) else as_text(what).casefold() in as_text(where).casefold()
    ),
    "startsWith": lambda text, start: as_text(text).casefold().startswith(as_text(start).casefold()),
    "endsWith": lambda text, end: as_text(text).casefold().endswith(as_text(end).casefold()),
    "format": lambda text, *values: text.format(*map(as_text, values)),
    "join": lambda values, between=",": between.join(map(as_text, values)),
    "toJSON": lambda value: json.dumps(value, indent=2),
    "fromJSON": json.loads,
}
