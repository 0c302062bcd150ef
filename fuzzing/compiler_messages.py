"""Normalizes compiler messages: removes everything that changes between runs of one bug.

Two messages of one bug become equal whatever the version, machine, path, line, address, name, shape or seed;
messages of two bugs should not. Compilers wrap the message of the layer below, so the last source location in
a message is the innermost one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from fuzzing.outcomes import MAX_TEXT

MAX_TEMPLATE = 240  # characters; the longest check seen on ONNX's node tests has 130

Rule = tuple[str, str, str]

_QUOTED = r"(?:'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`)"
_NAMES = "names of nodes and tensors are the test's"

# Every pattern takes linear time, even on hostile text: a repetition ends before the next place where its
# pattern could begin, or is possessive (counted by tests/test_hostile_texts.py).

#: Phrases that layers put around the message of the layer below: (pattern, replacement, reason).
WRAPPERS: tuple[Rule, ...] = (
    (r"\[ONNXRuntimeError\] : \d+ : \w+ : ", "", "repeats the exception's class"),
    (r"\bException during initialization: ", "", "names the phase, which the signature has"),
    (
        r"\bThis is an invalid model\. In Node, (?:(?!This is an invalid model\. )[^\n])*? , Error ",
        "",
        "the node's signature, of the test",
    ),
    (
        r"\bNon-zero status code returned while running (\w+) node\. Name:'[^']*' Status Message: ",
        r"\1: ",
        "onnxruntime's executor; the kernel's operator is kept",
    ),
    (r"\bFrontEnd API failed with \w+:", "", "the kind of error changed between releases"),
    (r"\bErrors during ONNX translation:", "", "until 2024"),
    (r"\bModel wasn't fully converted\.", "", "since 2025"),
    (r"\bFailed operations detailed log:", "", "since 2025"),
    (r"(?m)^-- [\w.:]+-\d+ with a message:", "", "the failed node and its opset"),
    (r"(?s)\bSummary:\s+-- Conversion is failed for: .*", "", "the failed nodes once more"),
    (r"(?s)\bTo facilitate the conversion of unsupported operations, .*", "", "advice"),
    (r"(?m)^(?:Summary|Details|Not Implemented|Additional error message):?\s*$", "", "a heading"),
    (r"(?m)^-- ", "", "a list's dash"),
    (
        r"\n# Metadata omitted\. Use show_meta=True in script\(\) method to show it\.",
        "",
        "TVM's script printer",
    ),
    (r"While validating ONNX node '<(?:(?!While validating )[^\n])*?>': ?", "", "tensors, of the test"),
    (
        r"While validating node '(?>(?:(?!While validating )[^\n])*?' with friendly_name ')"
        r"(?:(?!While validating )[^\n])*?':",
        "",
        "nodes and shapes, of the test",
    ),
)

#: Parts that differ between two runs of one bug: (pattern, replacement, reason).
VARIABLE_PARTS: tuple[Rule, ...] = (
    (r"https?://\S+", "URL", "documentation moves with the release"),
    (r"\bmetadata\[\"[\w.]+\"\]\[\d+\]", "CONSTANT", "an array in TVM's Relax, as a variable is"),
    (r"\bR\.(\w++)\([\w, ]*\)", r"R.\1(…)", "variables of a call in TVM's Relax"),
    (
        r"\bR\.(\w++)\((?:\w++, R\.const\([^()\n]*+\)|R\.const\([^()\n]*+\), \w++)\)",
        r"R.\1(…, R.const)",
        "the same, of a variable and a constant",
    ),
    (r"\bR\.Tensor\((?:[^()\n]|\([^()\n]*\))*+\)", "R.Tensor", "a type in Relax, with its shape"),
    (r"\bT\.(?:bfloat16|float\d+|u?int\d+|bool)\b", "T.TYPE", "an element type in TVM's script"),
    (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "UUID", "drawn per run"),
    (r"\b0x[0-9a-fA-F]+\b", "ADDRESS", "differs per process"),
    (r"(?<![\w.])\.{0,2}(?:/[\w.+@~-]+)+/([\w.+-]+)", r"\1", "the machine's folders; the file is kept"),
    (r"(\.(?:cc?|cpp|cxx|cuh?|h|hh|hpp|inl|py)):\d+(?::\d+)?", r"\1", "lines move with each commit"),
    (r"(\.py\"?), line \d+", r"\1", "lines move with each commit"),
    (rf"(?i)\b(name)\s*(?:is|[:=])?\s*{_QUOTED}", r"\1 NAME", _NAMES),
    (r"\b(name): [\w./:-]+", r"\1 NAME", _NAMES),
    (r"(?i)\b(node|input|output|parameter|initializer) \([\w./:-]*\)", r"\1 NAME", _NAMES),
    (
        rf"(?i)\b((?:node|input|output|parameter|tensor|value|initializer)s?:?) (?:named )?{_QUOTED}",
        r"\1 NAME",
        _NAMES,
    ),
    (
        r"(?i)\b(node|tensor|value|input|output|edge) v(?:n\d+_\w+|\d+)\b",
        r"\1 NAME",
        "what fuzzing.graph.onnx_writer calls nodes and edges that have no name",
    ),
    (r"(?<![\w./:-])[\w./:-]++ (node not found)\b", r"NAME \1", "OpenVINO's graph cache, before 2025"),
    (r"\b(opset\d+::\w+) [\w./:-]+", r"\1 NAME", "OpenVINO's type and name of a node"),
    (
        r"\b(Multiple dispatch failed for) 'torch\._ops\.[\w.]+'",
        r"\1 NAME",
        "the operator at which torch's modes refuse: the program's",
    ),
    (r"\b\w*test_\w+", "NAME", "a test's name, or that of a node expanded from it"),
    (r"\bexpected: (?:\w+, )+\w+", "expected: …", "lists of what is supported grow"),
    (r"\b(element type:? )(?:bf?16|[fiu]\d+|boolean)\b", r"\1TYPE", "OpenVINO's element types: the case's"),
    (r"\b(tensor|memref|vector)<(?:(?:\d+|\?)x)+", r"\1<…x", "shapes in MLIR"),
    (r"\[[\d\s,.?:x*-]*\]", "[…]", "shapes and indices"),
    (r"\{[\d\s,.?:x*-]*\}", "{…}", "shapes, as onnxruntime prints them"),
    (r"\((?:\d+|\?)(?:[,.] ?(?:\d+|\?))*,?\)", "(…)", "shapes, as Python and OpenVINO's plugins print them"),
    (r"\b([A-Za-z]\w*?)[_-]\d+\b", r"\1_N", "counters behind made-up names"),
    (r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w)", "N", "sizes, seeds, versions, values"),
)

_COMPILED = {
    rules: tuple((re.compile(pattern), replacement) for pattern, replacement, _ in rules)
    for rules in (WRAPPERS, VARIABLE_PARTS)
}

#: A place in a compiler's source, with the check that failed there if the message quotes it. The quantifiers
#: are possessive or bounded by a lookahead, so that hostile text takes linear time.
_PLACE = re.compile(
    r"(?:Exception from |Check '(?P<check>(?:(?!Check ').){0,2000}?)' failed at )?"
    r"(?<![\w./\\+-])(?P<file>[\w./\\+-]++):\d++(?::\d++)?(?P<colon>:?)",
    re.DOTALL,
)
_SOURCE = re.compile(r"\.(?:c|cc|cpp|cxx|cu|cuh|h|hh|hpp|hxx|inl)$")

#: Begins what OpenVINO says of one of the operators that it could not convert, in the order of their names.
_FAILED_OPERATOR = re.compile(r"^-- [\w.:]+-\d+ with a message:", re.MULTILINE)
#: The same of a torch program, whose operators are those of ATen: `aten.std.correction`, `aten::lstm`.
_FAILED_ATEN_OPERATOR = re.compile(r"^-- aten(?:\.|::)(\w+)[\w.]* with a message:", re.MULTILINE)
#: The number of a node, as `fuzzing.graph.onnx_writer` names those without a name: operands come first.
_NODE_NUMBER = re.compile(r"\bvn(\d+)_\w")

#: OpenVINO's text before the reason of a failed check: the node's outputs and their shapes.
_PREAMBLE = re.compile(r"^(?:NAME,? )+(?=\w)|^Shape inference input shapes .*")

#: c10's text between a message and its source file, before a list of frames; within a Python exception of
#: another's repr, line breaks are backslashes.
_RAISED_FROM, _AT, _LINE_BREAKS = "Exception raised from ", " at ", ("\n", r"\n")
_REPR = re.compile(r"^.*(?:Error|Exception)\(['\"]")

#: Checks without information: the conditions of macros that always throw.
_EMPTY_CHECKS = frozenset({"false", "0", ""})


#: Words of a template; shorter ones are units and variables.
_WORD = re.compile(r"[A-Za-z_]{3,}")
#: What VARIABLE_PARTS put in the place of what varies.
_STAND_INS = frozenset({"ADDRESS", "NAME", "TYPE", "URL", "UUID"})


@dataclass(frozen=True)
class ParsedMessage:
    """The parts of a message.

    template  the complaint without variable parts, on one line
    frame     the C++ source file that failed, without its folders; "" if none is named
    headline  the complaint verbatim, for people
    reason    why the check failed, if the message explains it, otherwise the check or the complaint; without
              variable parts
    """

    template: str
    frame: str
    headline: str
    reason: str


def normalize_message(text: str) -> str:
    """The first MAX_TEXT characters of `text` on one line, without variable parts."""
    return " ".join(_apply(VARIABLE_PARTS, text[:MAX_TEXT]).split())


@lru_cache(maxsize=1024)  # a campaign meets the same few messages again and again
def parse_message(message: str) -> ParsedMessage:
    """Parses the innermost place that `message` names, and the complaint there."""
    message = _first_failed_operator(message[:MAX_TEXT])
    place = _find_innermost_place(message)
    if place is None:
        return _parse_complaint("", _complaint(message))
    file = re.split(r"[/\\]", place["file"])[-1]
    after = message[place.end() :]
    if raised := _line_before_frames(message[: place.start()]):
        return _parse_complaint(file, _complaint(_REPR.sub("", raised)))
    check = _strip_parentheses(" ".join((place["check"] or "").split()))
    if check not in _EMPTY_CHECKS:
        quoted = _truncate(f"Check '{check}'")
        return ParsedMessage(quoted, file, quoted, _truncate(_reason(after) or f"the check {check}"))
    complaint = _complaint(after if place["colon"] else _without_function(after))
    if complaint:
        return _parse_complaint(file, complaint)
    # A heading may follow the place; then it is the only reason.
    return _parse_complaint(file, _complaint(message[: place.start()]), normalize_message(after))


def failed_aten_operator(message: str) -> str:
    """ATen's operator of which `message` says that it could not be converted, the first of several; "" if it
    names none.
    """
    found = _FAILED_ATEN_OPERATOR.search(message[:MAX_TEXT])
    return found[1] if found else ""


def _first_failed_operator(message: str) -> str:
    """What `message` says of the first of several operators that failed: the later ones may fail for lack of
    its output. All of it, if the nodes have no numbers.
    """
    begins = [found.start() for found in _FAILED_OPERATOR.finditer(message)]
    if len(begins) < 2:
        return message
    parts = [message[begin:end] for begin, end in zip(begins, [*begins[1:], len(message)], strict=True)]
    numbers = [_NODE_NUMBER.search(part) for part in parts]
    numbered = [(int(found[1]), part) for found, part in zip(numbers, parts, strict=True) if found]
    return min(numbered)[1] if len(numbered) == len(parts) else message


def _line_before_frames(text: str) -> str:
    """The line before c10's "Exception raised from FUNCTION at ", if the text ends with it; else ""."""
    before, found, function = text.rpartition(_RAISED_FROM)
    if found and function.endswith(_AT) and "\n" not in function:
        for line_break in _LINE_BREAKS:
            if before.endswith(line_break):
                return before.removesuffix(line_break).rpartition("\n")[2]
    return ""


def message_words(message: str) -> tuple[str, ...]:
    """The words of the complaint that are the same in every run of a bug, in the order of `message`.

    Another message of the bug has them in this order, among others (`has_words`).
    """
    message, found, at = message[:MAX_TEXT], [], 0
    for word in _WORD.findall(parse_message(message).template):
        place = message.find(word, at)
        if word not in _STAND_INS and place >= 0:
            found.append(word)
            at = place + len(word)
    return tuple(found)


def has_words(text: str, words: Sequence[str]) -> bool:
    """Whether `text` has the words in this order, each possibly as a part of a longer one."""
    at = 0
    for word in words:
        place = text.find(word, at)
        if place < 0:
            return False
        at = place + len(word)
    return True


def _parse_complaint(file: str, complaint: str, reason: str = "") -> ParsedMessage:
    template = _truncate(normalize_message(complaint))
    return ParsedMessage(template, file, _truncate(complaint), _truncate(reason) or template)


def _apply(rules: tuple[Rule, ...], text: str) -> str:
    for pattern, replacement in _COMPILED[rules]:
        text = pattern.sub(replacement, text)
    return text


def _find_innermost_place(message: str) -> re.Match[str] | None:
    places = [place for place in _PLACE.finditer(message) if _SOURCE.search(place["file"])]
    return places[-1] if places else None


def _complaint(text: str) -> str:
    """The first line that remains after the wrappers are removed; "" if none does."""
    lines = (" ".join(line.split()) for line in _apply(WRAPPERS, text).splitlines())
    return next(filter(None, lines), "")


def _reason(text: str) -> str:
    """The first line that explains why a check failed; "" if there is none."""
    lines = (_PREAMBLE.sub("", normalize_message(line)) for line in _apply(WRAPPERS, text).splitlines())
    return next(filter(None, lines), "")


def _strip_parentheses(check: str) -> str:
    """Removes parentheses around the whole of `check`, which depend on the macro."""
    while check.startswith("(") and _closing(check, 1) == len(check) - 1:
        check = check[1:-1].strip()
    return check


def _closing(text: str, start: int) -> int:
    """Index of the parenthesis that closes the one opened before `start`; -1 if there is none."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return -1


#: Text that may separate a C++ function's parameters from what follows.
_TRAILER = re.compile(r"(?:::<lambda\([^()\n]*\)>| const| \[with [^\]\n]*\])*")


def _without_function(text: str) -> str:
    """`text` without the C++ function that onnxruntime's macros write after a place.

    "… ns::Class::Method(const ns::Type&, int) const x > 0 was false." becomes "x > 0 was false."
    """
    head = re.match(r"[^\n(]*?::~?\w+\(", text)
    if head is None:
        return text
    end = _closing(text, head.end()) + 1
    trailer = _TRAILER.match(text, end) if end else None
    return text[trailer.end() :] if trailer else text


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_TEMPLATE else text[: MAX_TEMPLATE - 1] + "…"
