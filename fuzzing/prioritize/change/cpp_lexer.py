"""Blanks everything in C++ source that would mislead a scan for braces and names.

One pass, linear in the text: comments, strings (raw ones too), characters and preprocessor directives become
blanks of the same length, so that offsets and lines stay valid; the strings' content is kept separately. Of
an `#if … #else … #endif` the first branch is kept, since the braces of both together seldom match.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

#: Openings of blanked parts: a comment, a raw string with its delimiter, a string, a character. A quote after
#: a digit or letter separates digits (1'000'000).
_OPENING = re.compile(r'//|/\*|\bu?8?[LUR]*R"[^\s()\\"]{0,16}\(|"|(?<![0-9A-Za-z_])\'')
_STRING_END = re.compile(r'(?:[^"\\\n]|\\[\s\S])*+"?')
_CHARACTER_END = re.compile(r"(?:[^'\\\n]|\\[\s\S])*+'?")
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w*)")


@dataclass(frozen=True)
class Source:
    """A blanked source.

    code     as long as the text
    defines  as long, with only the bodies of `#define`s, which `code` lacks
    strings  the offset of each opening quote, ascending, and the string's content
    """

    code: str
    defines: str
    strings: dict[int, str]

    def between(self, start: int, end: int) -> list[str]:
        """The content of strings that open in [start, end)."""
        first, last = bisect_left(self._places, start), bisect_left(self._places, end)
        return [self.strings[place] for place in self._places[first:last]]

    @cached_property
    def _places(self) -> list[int]:
        return list(self.strings)


def blank(text: str) -> Source:
    """The source with comments, strings and directives blanked."""
    pieces: list[str] = []
    strings: dict[int, str] = {}
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        start, end = opening.start(), _end(text, opening)
        pieces.append(text[at:start])
        if opening.group()[-1] in '"(':
            strings[start] = text[opening.end() : end].rstrip('"')
        pieces.append(_blanks(text[start:end]))
        at = end
    pieces.append(text[at:])
    return Source(*_without_directives("".join(pieces)), strings)


def _end(text: str, opening: re.Match[str]) -> int:
    """End of the part that opens there; the end of the text if it is never closed."""
    kind = opening.group()
    if kind == "//":
        end = opening.end()
        while (end := text.find("\n", end)) > 0 and text[end - 1] == "\\":
            end += 1
        return len(text) if end < 0 else end
    if kind == "/*":
        closing = "*/"
    elif kind.endswith("("):
        closing = f'){kind[kind.index(chr(34)) + 1 : -1]}"'
    else:
        pattern = _STRING_END if kind == '"' else _CHARACTER_END
        found = pattern.match(text, opening.end())
        return opening.end() if found is None else found.end()
    end = text.find(closing, opening.end())
    return len(text) if end < 0 else end + len(closing)


def _blanks(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _without_directives(code: str) -> tuple[str, str]:
    """The code without directives and branches not taken, and the macro definitions alone."""
    lines = code.split("\n")
    defines = [" " * len(line) for line in lines]
    kept: list[bool] = []  # for each open #if: whether its current branch is kept
    word, continued = "", False
    for place, line in enumerate(lines):
        directive = None if continued else _DIRECTIVE.match(line)
        if directive:
            word = directive.group(1)
        if (continued or directive) and word == "define" and all(kept):
            defines[place] = line[:-1] + " " if line.endswith("\\") else line
        if continued or directive or not all(kept):
            lines[place] = " " * len(line)
        if directive:
            _branch(word, kept)
        continued = (continued or directive is not None) and line.rstrip().endswith("\\")
    return "\n".join(lines), "\n".join(defines)


def _branch(word: str, kept: list[bool]) -> None:
    if word in ("if", "ifdef", "ifndef"):
        kept.append(True)
    elif word in ("else", "elif") and kept:
        kept[-1] = False
    elif word == "endif" and kept:
        kept.pop()
