"""The outline of a C++ file, by scanning its braces and names; no compiler, no preprocessor.

Scopes are recognized by the text before their opening brace: a namespace, a class, a function (the name
before its parameters), a table (`… = {`). Two bindings of operators to functions are recognized:

- a macro: `ONNX_OP("Resize", …, resize);`, `ONNX_CPU_OPERATOR_KERNEL(Conv, 11, …, Conv<float>);`,
  `REG_OP(…)`, `TVM_REGISTER_OP("relax.nn.conv2d").set_attr<…>("…", InferTypeConv2d);`
- an entry of a table: `{"aten::conv2d", op::translate_convnd},`
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from fuzzing.prioritize.change.cpp_lexer import Source, blank
from fuzzing.prioritize.change.symbols import Outline, Registration, Symbol

_HEAD = 1_000  # characters examined before a brace
_CALL = 300  # characters examined before a parenthesis
_STATEMENT = 2_000  # characters examined of a registration
_MOST = 3_000  # scopes, and registrations of each kind; few files have a tenth of that
_NAME = r"~?[A-Za-z_]\w*"
_WORD = re.compile(r"[A-Za-z_]\w*")
_LAST_NAMES = re.compile(r"(?<!\w)[A-Za-z_]\w*(?!\w|\s*::)")
_NAMESPACE = re.compile(r"\bnamespace\b\s*([\w:\s]*)\Z")
_TYPE = re.compile(
    rf"\b(?:class|struct|union)\s+(?:\w+\([^()]*\)\s*|\w+_API\s+)*({_NAME}(?:\s*::\s*{_NAME})*)"
)
_BASES = re.compile(r"(?<!:):(?!:)(.*)\Z", re.DOTALL)
_CALLED = re.compile(rf"((?:{_NAME}\s*::\s*)*(?:operator\W{{1,3}}|{_NAME}))\s*\Z")
_VARIABLE = re.compile(rf"({_NAME})\s*(?:\[[^\[\]]*\]\s*)?=\s*\Z")
#: Between a constructor's parameters and the brace of a member: `: OpKernel(info), sizes_`
_INITIALIZES = re.compile(r"\s*(?:noexcept\s*)?:(?!:).*[\w>]\s*\Z", re.DOTALL)
_QUALIFIES = re.compile(r"\s*(?:const|noexcept|override|final|try|requires)\b")
#: googletest's macros, whose arguments name the test: `TEST_F(Suite, Case) {`
_TEST = re.compile(r"(?:\w+_)?TEST(?:_[FPT])?\Z")
_CONTROL = frozenset(
    {"if", "for", "while", "switch", "catch", "return", "sizeof", "decltype", "alignas", "noexcept"}
)
_REGISTERS = re.compile(
    r"\b([A-Z]\w*REGISTER\w*|REG_\w+|REGISTER\w*|ONNX_(?:OP|OPERATOR|CPU|CUDA)\w*|[A-Z]\w*_KERNEL(?:_\w+)?|OPENVINO_OP)"
    r"\s*\("
)
#: The first argument of macros that bind by element type, which is not an operator.
_TYPE_NAME = re.compile(
    r"(?:u?int\d*(?:_t)?|float\d*|double|bool|BFloat16|MLFloat16|Float8\w*|Int4x2|T\d?)\Z"
)
#: A name in another namespace: `v1::MatMul`, `opset10::Relu`, `ov::op::v0::Abs`.
_VERSIONED = re.compile(r"\b(?:v\d+|opset\d+|op|internal)\s*::\s*([A-Z]\w*)")
_OPERATOR = re.compile(r"[A-Za-z_][\w.:]{0,60}\Z")


@dataclass
class _Scope:
    kind: str  # namespace, type, function, table, block
    name: str
    owner: str
    head: int
    start: int
    bases: tuple[str, ...] = ()
    end: int = 0
    is_test: bool = False


def outline(text: str) -> Outline:
    """The outline of a C++ source; unrecognized parts are left out."""
    source = blank(text)
    lines = _Lines(text)
    scopes = islice(_scopes(source.code), _MOST)
    symbols = tuple(_symbol(source, scope, lines) for scope in scopes if scope.name)
    found = (islice(_macros(source, lines), _MOST), islice(_entries(source, lines), _MOST))
    return Outline(symbols, tuple(chain(*found)), _code(text, source, lines))


class _Lines:
    """The line of an offset in the text."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def __call__(self, place: int) -> int:
        return bisect_right(self._starts, place)


def _code(text: str, source: Source, lines: _Lines) -> frozenset[int]:
    """The lines that hold more than blanks and comments; strings and directives count."""
    found = {line for line, content in enumerate(source.code.split("\n"), 1) if content.strip()}
    found |= {line for line, content in enumerate(text.split("\n"), 1) if content.lstrip().startswith("#")}
    return frozenset(found | {lines(place) for place in source.strings})


def _scopes(code: str) -> Iterator[_Scope]:
    """The scopes outside of functions, and whole functions."""
    stack: list[_Scope] = []
    head = 0
    for match in re.finditer(r"[;{}]", code):
        place = match.start()
        inside = bool(stack) and stack[-1].kind in ("function", "table", "block")
        if match.group() == "{":
            stack.append(
                _scope(code, head, place, stack) if not inside else _Scope("block", "", "", place, place)
            )
        elif match.group() == "}" and stack:
            scope = stack.pop()
            scope.end = place
            if scope.kind in ("namespace", "type", "function", "table"):
                yield scope
            if scope.kind == "initializer":
                continue  # its head continues
        if not (stack and stack[-1].kind in ("function", "table", "block", "initializer")):
            head = place + 1
    for scope in stack:  # never closed: they extend to the end
        scope.end = len(code)
        if scope.kind != "block":
            yield scope


def _scope(code: str, head: int, place: int, stack: list[_Scope]) -> _Scope:
    start = max(head, place - _HEAD)
    text = _without_templates(code[start:place])
    first = start + len(code[start:place]) - len(code[start:place].lstrip())
    owner = next((scope.name for scope in reversed(stack) if scope.kind == "type"), "")
    if text.count("(") > text.count(")"):
        return _Scope("initializer", "", "", first, place)  # a parameter's default
    if (found := _NAMESPACE.search(text)) is not None:
        return _Scope("namespace", "", "", first, place)
    if (function := _function(text)) is not None:
        name, rest = function
        if _INITIALIZES.match(rest):
            return _Scope("initializer", "", "", first, place)
        if _TEST.match(name):
            arguments = text[text.rfind("(", 0, text.rfind(")")) + 1 : text.rfind(")")]
            return _Scope("function", "_".join(_WORD.findall(arguments)), "", first, place, is_test=True)
        names = re.split(r"\s*::\s*", name)
        return _Scope("function", names[-1], names[-2] if len(names) > 1 else owner, first, place)
    if (found := _TYPE.search(text)) is not None:
        bases = _BASES.search(text, found.end())
        named = tuple(_LAST_NAMES.findall(bases.group(1))) if bases else ()
        return _Scope("type", re.split(r"\s*::\s*", found.group(1))[-1], "", first, place, named)
    if (found := _VARIABLE.search(text)) is not None:
        return _Scope("table", found.group(1), owner, first, place)
    if re.search(r"\bextern\s*\Z", text):
        return _Scope("namespace", "", "", first, place)
    return _Scope("block", "", "", first, place)


def _function(head: str) -> tuple[str, str] | None:
    """The name before the parameters of a possible function head, and the text after them.

    None if it is not a function head.
    """
    opening = head.find("(")
    while opening >= 0:
        found = _CALLED.search(head[max(opening - _CALL, 0) : opening])
        if found is None or found.group(1) in _CONTROL:
            return None
        closing = _closing(head, opening, len(head))
        rest = head[closing + 1 :]
        if not re.match(r"\s*[A-Za-z_~]", rest) or _QUALIFIES.match(rest):
            return found.group(1), rest
        opening = head.find("(", closing)  # it was an attribute or a macro before the function's own name
    return None


def _closing(text: str, opening: int, end: int) -> int:
    """Offset of the parenthesis that closes the one at `opening`; `end` if there is none before it."""
    depth = 0
    for place in range(opening, end):
        if text[place] == "(":
            depth += 1
        elif text[place] == ")":
            depth -= 1
            if depth == 0:
                return place
    return end


def _without_templates(head: str) -> str:
    """The head with the content of angle brackets blanked; `<<`, `->`, `<=` are left."""
    out = list(head)
    depth = 0
    for place, sign in enumerate(head):
        if sign == "<" and head[place + 1 : place + 2] not in ("<", "=") and head[place - 1 : place] != "<":
            depth += 1
            out[place] = " "
        elif sign == ">" and depth and head[place - 1] not in "-=":
            depth -= 1
            out[place] = " "
        elif depth and sign != "\n":
            out[place] = " "
    return "".join(out) if depth == 0 else head


def _symbol(source: Source, scope: _Scope, lines: _Lines) -> Symbol:
    body = source.code[scope.start : scope.end]
    is_class = scope.kind == "type"
    names = {text for text in source.between(scope.start, scope.end) if _OPERATOR.match(text)}
    names.update(_VERSIONED.findall(body))
    return Symbol(
        scope.name,
        "" if is_class else scope.owner,
        lines(scope.head),
        lines(max(scope.end - 1, scope.head)) if scope.end == len(source.code) else lines(scope.end),
        frozenset() if is_class else frozenset(_WORD.findall(body)),
        scope.bases,
        frozenset(names),
        is_class,
        scope.is_test,
    )


def _macros(source: Source, lines: _Lines) -> Iterator[Registration]:
    """Registering macros in the code, and in the bodies of macros that wrap them."""
    for code in (source.code, source.defines):
        for match in _REGISTERS.finditer(code):
            limit = min(match.end() + _STATEMENT, len(code)) - 1
            last = _closing(code, match.end() - 1, limit)
            end = max(code.find(";", match.end(), limit), last)
            quoted = next(iter(source.between(match.end(), last)), None)
            first = _WORD.match(code, match.end() + _spaces(code, match.end()))
            operator = quoted if first is None else first.group()
            if operator and _OPERATOR.match(operator) and not _TYPE_NAME.match(operator):
                words = frozenset(_LAST_NAMES.findall(code, match.end(), end))
                yield Registration(operator, words, lines(match.start()), lines(end))


def _spaces(text: str, start: int) -> int:
    return len(text[start : start + 200]) - len(text[start : start + 200].lstrip())


def _entries(source: Source, lines: _Lines) -> Iterator[Registration]:
    """All entries `{"operator", function}`."""
    for place, text in source.strings.items():
        before = source.code[max(place - 80, 0) : place].rstrip()
        after = place + len(text) + 2
        if not before.endswith("{") or not _OPERATOR.match(text):
            continue
        end = source.code.find("}", after, after + _STATEMENT)
        rest = source.code[after : max(end, after)]
        if rest.lstrip().startswith(",") and (words := _LAST_NAMES.findall(rest)):
            yield Registration(text, frozenset(words), lines(place), lines(end))
