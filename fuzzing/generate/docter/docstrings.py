"""Parses docstrings in Google's and torch's style: signatures, prose, parameters, shapes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

#: Headings of sections whose entries are parameters; a torch docstring spells them in a dozen ways.
_PARAMETERS = re.compile(
    r"(args|arguments|parameters?|keywords? ?(args|arguments)?|keyword args/kwargs|inputs?)\s*:{1,2}.*",
    re.IGNORECASE,
)
_SHAPE = re.compile(r"shapes?\s*:{1,2}", re.IGNORECASE)
_OTHER = re.compile(
    r"(examples?|returns?|raises|outputs?|notes?|variables|attributes|references?|warnings?|see also|yields)"
    r"\s*:{1,2}.*|\.\. (note|warning|seealso|code|code-block|math|deprecated|versionadded|_[\w -]+)\s*::?.*",
    re.IGNORECASE,
)
_ENTRY = re.compile(
    r"(?:[-*]\s+)?\*{0,2}`{0,2}(?P<names>\*?\w+(?:`{0,2}\s*,\s*`{0,2}\w+)*)`{0,2}\*{0,2}\s*"
    r"(?:\((?P<type>(?:[^()]|\([^()]*\))*)\))?\s*(?::|\s-|–)(?!:)\s*(?P<text>.*)"
)
_SIGNATURE = re.compile(
    r"(?:\.\. function:: )?(?:torch\.|linalg\.|\w+\.)*(?P<name>\w+)\s*\((?P<inside>.*)\)\s*(?:->.*)?"
)


@dataclass(frozen=True)
class Entry:
    """The docstring's entry of one parameter.

    type  the text in brackets behind the name, or ""
    text  the description, on one line
    """

    name: str
    type: str
    text: str


@dataclass(frozen=True)
class Documentation:
    """A parsed docstring.

    signatures  the parameter lists on lines of their own, without their brackets
    prose       everything outside the sections, as paragraphs on one line each
    entries     parameters, in order
    shapes      the entries of the Shape (or Inputs) section: "Input", "Target", …
    """

    signatures: tuple[str, ...] = ()
    prose: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    shapes: tuple[Entry, ...] = ()
    shape_text: str = field(default="")

    def entry(self, name: str) -> Entry | None:
        """The entry of a parameter."""
        return next((entry for entry in self.entries if entry.name == name), None)


def parse_docstring(docstring: str, name: str) -> Documentation:
    """Parses a docstring; `name` is the function's own, which marks its signatures."""
    lines = inspect.cleandoc(docstring).splitlines()
    sections = list(_sections(lines))
    entries: list[Entry] = []
    shapes: list[Entry] = []
    shape_text: list[str] = []
    for heading, body in sections:
        if _SHAPE.fullmatch(heading) or heading.lower().startswith("inputs:"):
            shapes.extend(_entries(body))
            shape_text.extend(body)
        elif _PARAMETERS.fullmatch(heading):
            entries.extend(_entries(body))
    prose = [line for heading, body in sections if not heading for line in body]
    notes = [body for heading, body in sections if heading.lower().startswith(("note", ".. note"))]
    return Documentation(
        tuple(_signatures(lines, name)),
        tuple(_paragraphs([*prose, "", *(line for body in notes for line in [*body, ""])])),
        tuple(entries),
        tuple(shapes),
        "\n".join(shape_text),
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _sections(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    heading, depth, body = "", -1, list[str]()
    for line in lines:
        text = line.strip()
        if text and heading and _indent(line) <= depth:
            yield heading, body
            heading, depth, body = "", -1, []
        if not heading and any(kind.fullmatch(text) for kind in (_PARAMETERS, _SHAPE, _OTHER)):
            yield heading, body
            heading, depth, body = text, _indent(line), []
        else:
            body.append(line)
    yield heading, body


def _entries(body: list[str]) -> Iterator[Entry]:
    """The parameters of a section: lines indented as its first, with what follows."""
    filled = [line for line in body if line.strip()]
    if not filled:
        return
    depth = min(map(_indent, filled))
    current: tuple[str, str, list[str]] | None = None
    for line in filled:
        match = _ENTRY.fullmatch(line.strip()) if _indent(line) == depth else None
        if match:
            if current:
                yield from _named(*current)
            current = match["names"], match["type"] or "", [match["text"]]
        elif current:
            current[2].append(line.strip())
    if current:
        yield from _named(*current)


def _named(names: str, kind: str, lines: list[str]) -> Iterator[Entry]:
    for name in re.split(r"`*\s*,\s*`*", names):
        yield Entry(name.lstrip("*"), kind.strip(), " ".join(lines).strip())


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    current: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            current.append(line.strip())
        elif current:
            yield " ".join(current)
            current = []


def _signatures(lines: Iterable[str], name: str) -> Iterator[str]:
    for line in lines:
        match = _SIGNATURE.fullmatch(line.strip())
        if match and match["name"] in (name, "__init__"):
            yield match["inside"]
