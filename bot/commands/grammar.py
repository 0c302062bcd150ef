"""The grammar of commands. Pure: text in, commands and mistakes out, in linear time for any text.

    /assay VERB [WORD] [NAME=VALUE …] [the rest of the line]

A command starts a line, after at most three spaces. Quoted lines (`>`), fenced and indented code and HTML
comments hold no commands. `Verb` describes one command; the files in `bot/commands/actions` register them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

PREFIX = "/assay"
#: More than people write by hand; the rest of a longer comment is ignored.
MAX_COMMANDS = 10
MAX_LINE = 500  # characters of one command

#: Turns text into a value; raises ValueError with the allowed form.
Convert = Callable[[str], Any]


@dataclass(frozen=True)
class Argument:
    """One argument of a verb.

    name        written `NAME=VALUE` unless positional
    metavar     its value in a usage line, such as DURATION
    positional  a bare word, such as `#12`
    remainder   the rest of the line, spaces included; only the last argument may be
    """

    name: str
    metavar: str
    convert: Convert
    required: bool = False
    positional: bool = False
    remainder: bool = False

    @property
    def usage(self) -> str:
        """Its form in a usage line."""
        text = self.metavar if self.positional or self.remainder else f"{self.name}={self.metavar}"
        return text if self.required else f"[{text}]"


@dataclass(frozen=True)
class Verb:
    """The description of one command: name, arguments, one line of help."""

    name: str
    help: str
    arguments: tuple[Argument, ...] = ()

    @property
    def usage(self) -> str:
        """The usage line."""
        return " ".join([PREFIX, self.name, *(argument.usage for argument in self.arguments)])


@dataclass(frozen=True)
class ParsedCommand:
    """A valid command; `values` holds the given arguments by name."""

    verb: str
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class InvalidCommand:
    """A line that starts like a command and is not valid; `why` names what to write instead."""

    text: str
    why: str


def parse(body: str, verbs: Mapping[str, Verb]) -> list[ParsedCommand | InvalidCommand]:
    """The commands of a comment in order, at most MAX_COMMANDS. Never raises."""
    found: list[ParsedCommand | InvalidCommand] = []
    for line in _lines(body):
        if len(found) == MAX_COMMANDS:
            found.append(
                InvalidCommand(line[:MAX_LINE], f"a comment may hold {MAX_COMMANDS} commands at most")
            )
            break
        found.append(_parse_line(line, verbs))
    return found


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_COMMAND = re.compile(rf" {{0,3}}({re.escape(PREFIX)}(?![^\s]).*)")


def _lines(body: str) -> Iterator[str]:
    """The lines that start with the prefix and are neither code, quoted nor hidden."""
    fence, hidden = "", False
    for line in body.splitlines():
        mark = _FENCE.match(line)
        if hidden:  # text after the end of an HTML comment starts no line
            hidden = _opens_html_comment(line.partition("-->")[2]) if "-->" in line else True
        elif fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            command = _COMMAND.match(line.partition("<!--")[0])
            if command:
                yield command[1].rstrip()
            hidden = _opens_html_comment(line)


def _opens_html_comment(line: str) -> bool:
    """Whether an HTML comment opens on the line and does not close there."""
    return line.rfind("<!--") > line.rfind("-->")


def _parse_line(line: str, verbs: Mapping[str, Verb]) -> ParsedCommand | InvalidCommand:
    if len(line) > MAX_LINE:
        return InvalidCommand(
            line[:MAX_LINE], f"a command has {MAX_LINE} characters at most; this one has {len(line)}"
        )
    name, rest = _split(line.removeprefix(PREFIX))
    if not name:
        return InvalidCommand(line, f"name a command: {_list_commands(verbs)}")
    verb = verbs.get(name.lower())
    if verb is None:
        near = difflib.get_close_matches(name.lower(), verbs, n=1)
        hint = f"did you mean `{PREFIX} {near[0]}`?" if near else f"there are {_list_commands(verbs)}"
        return InvalidCommand(line, f"`{_sanitize(name)}` is not a command; {hint}")
    try:
        return ParsedCommand(verb.name, line, _arguments(verb, rest))
    except ValueError as error:
        return InvalidCommand(line, f"{error}; write `{verb.usage}`")


def _arguments(verb: Verb, rest: str) -> dict[str, Any]:
    """The given values; raises ValueError."""
    named = {each.name: each for each in verb.arguments if not each.positional and not each.remainder}
    words = [each for each in verb.arguments if each.positional]
    ending = next((each for each in verb.arguments if each.remainder), None)
    values: dict[str, Any] = {}
    while rest:
        first, after = _split(rest)
        name, equals, text = first.partition("=")
        if equals and name.lower() in named:
            _set(values, named[name.lower()], text)
        elif words and (not ending or words[0].required):
            _set(values, words.pop(0), first)
        elif ending:
            _set(values, ending, rest)
            break
        else:
            raise ValueError(_unexpected(verb, first, name if equals else "", list(named)))
        rest = after
    if missing := [each.name for each in verb.arguments if each.required and each.name not in values]:
        raise ValueError(f"`{missing[0]}` is missing")
    return values


def _set(values: dict[str, Any], argument: Argument, text: str) -> None:
    if argument.name in values:
        raise ValueError(f"`{argument.name}` is given twice")
    try:
        values[argument.name] = argument.convert(text)
    except ValueError as error:
        raise ValueError(f"`{argument.name}` {error}") from None


def _unexpected(verb: Verb, first: str, name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"; did you mean `{near[0]}`?" if near else ""
    return f"`{verb.name}` does not take `{_sanitize(first)}`{hint}"


def _split(text: str) -> tuple[str, str]:
    """The first word and the rest."""
    first, *rest = text.split(maxsplit=1) or [""]
    return first, rest[0] if rest else ""


def _sanitize(text: str) -> str:
    """Foreign text that is safe between backticks."""
    return re.sub(r"[`\s]|[^\x20-\x7e]", "?", text[:40])


def _list_commands(verbs: Mapping[str, Verb]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(verbs))
