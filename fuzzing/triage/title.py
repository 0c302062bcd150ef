"""Titles: what fails, how and where, in one line that a maintainer reads in a list of issues.

    [ONNX] Split: conversion fails: The split number is invalid (split.cpp)
    frontend, subject, what happens, its message, and the place

A title is no part of a bug's identity; it may become better where a key may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Characters of a title: what GitHub's list of issues shows on one line, less what a repository's form begins
#: titles with.
MAX_TITLE = 100
#: Characters of a pattern of operators that a title has room for.
_MAX_SUBJECT = 40
#: Fewest characters of a message that mean something; where the place would leave fewer, it is left out.
_MIN_MESSAGE = 32
_WORD = re.compile(r"\w+|[^\w\s]")


def choose_subject(pattern: str, operators: Iterable[str], message: str) -> str:
    """What fails in a reduced program: its operators, or of many those that the compiler complains of.

    pattern    the operators, and which feeds which; long parts are digests
    operators  all there are
    message    the compiler's message
    """
    if "#" not in pattern and len(pattern) <= _MAX_SUBJECT:
        return pattern
    # A message names constants as what they feed was given, hardly ever as what fails.
    named = ", ".join(name for name in operators if name != "Constant" and _names_operator(message, name))
    if 0 < len(named) <= _MAX_SUBJECT:
        return named
    outermost = re.split(r"[(\[;]", pattern, maxsplit=1)[0]
    return f"{outermost}(…)"


def name_part(call: str, part: str) -> str:
    """A call of a library and what it is made of that fails, as in "torch.std (var)"; the call alone if the
    part is its own, or there is no room.
    """
    name = call.rpartition(".")[2]
    own = ("", name, name.rstrip("_"), call.removeprefix("torch.").replace(".", "_"))
    spelled = (f"{one} ({part})" for one in (call, name) if part not in own)
    return next((one for one in spelled if len(one) <= _MAX_SUBJECT), call)


def _names_operator(message: str, operator: str) -> bool:
    """Whether a message names an operator as one: `Split-20`, `opset1::Split`, `(Split)`, `Split node`.

    The bare word does not count: Not, If, Where and others are words of English too.
    """
    name = re.escape(operator)
    named = (
        rf"\b{name}[-_]\d+\b|\b{name}\(\d+\)|::{name}\b|\({name}\)|['\"`]{name}['\"`]"
        rf"|\b{name} node\b|\b(?:node|op|operator|type) {name}\b"
    )
    return re.search(named, message) is not None


def title(frontend: str, subject: str, what: str, message: str, where: str) -> str:
    """One printable line of at most MAX_TITLE characters. No word is cut in two.

    The message is shortened to fit; where too little of it would be left, the place is left out.

    subject  "" if the operator is not known
    """
    frontend, subject, what, message, where = map(_printable, (frontend, subject, what, message, where))
    head = shorten(f"[{frontend}] {subject + ': ' if subject else ''}{what}", MAX_TITLE)
    place = f" ({where})" if where and len(head) + len(where) + 3 <= MAX_TITLE else ""
    if not message:
        return head + place
    for end in (place, ""):
        length = MAX_TITLE - len(head) - len(end) - 2
        shown = shorten(message, length)
        if shown and (shown == message or not end or len(shown) >= _MIN_MESSAGE):
            return f"{head}: {shown}{end}"
    return head + place


def shorten(text: str, length: int) -> str:
    """`text`, or as many of its words as there is room for, and "…"; "" if there is room for none."""
    if len(text) <= length:
        return text
    ends = [word.end() for word in _WORD.finditer(text) if word.end() < length]
    return text[: ends[-1]].rstrip(" ,;:.(['\"`") + "…" if ends else ""


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in " ".join(text.split())).strip()
