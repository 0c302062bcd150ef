"""The grammar of commands: what a comment asks for. Pure: text in, commands and mistakes out.

    /assay VERB [WORD] [NAME=VALUE …] [the rest of the line]

A command stands at the start of a line, with at most three spaces before it. What is quoted, code or hidden
is no command: lines that begin with `>`, fenced and indented code, HTML comments. What a line means is
decided by the verb's own description, a `Verb`; the files in `bot/commands/actions` register them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

PREFIX = "/assay"
#: Ours: what a person may still write by hand. A comment with more is answered for the first ones.
MAX_COMMANDS = 10
MAX_LINE = 500  # characters of one command

#: Turns an argument's text into its value; raises ValueError with what is allowed, for people.
Convert = Callable[[str], Any]


@dataclass(frozen=True)
class Argument:
    """One argument of a verb.

    name      its name; `NAME=VALUE` unless it is a word
    metavar     what stands for its value in a usage line, such as DURATION
    convert   text → value
    positional      a bare word at its place, such as `#12`
    remainder      everything that is left of the line, spaces and all; only the last argument may be
    """

    name: str
    metavar: str
    convert: Convert
    required: bool = False
    positional: bool = False
    remainder: bool = False

    @property
    def usage(self) -> str:
        """How it is written."""
        text = self.metavar if self.positional or self.remainder else f"{self.name}={self.metavar}"
        return text if self.required else f"[{text}]"


@dataclass(frozen=True)
class Verb:
    """What a command may say after `/assay`: its name, its arguments, one line of help."""

    name: str
    help: str
    arguments: tuple[Argument, ...] = ()

    @property
    def usage(self) -> str:
        """The whole command, as one writes it."""
        return " ".join([PREFIX, self.name, *(argument.usage for argument in self.arguments)])


@dataclass(frozen=True)
class ParsedCommand:
    """A command as it was given. `values` holds the arguments that were, under their names."""

    verb: str
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class InvalidCommand:
    """A line that begins like a command and is none; `why` says what is wrong and what to write."""

    text: str
    why: str


def parse(body: str, verbs: Mapping[str, Verb]) -> list[ParsedCommand | InvalidCommand]:
    """The commands of a comment in order, at most MAX_COMMANDS; never raises."""
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
    """The lines that begin with the prefix and are neither code, quoted nor hidden."""
    fence, hidden = "", False
    for line in body.splitlines():
        mark = _FENCE.match(line)
        if hidden:  # what follows the end of an HTML comment stands at the start of no line
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
    """Whether an HTML comment begins on the line and goes on behind it."""
    return line.rfind("<!--") > line.rfind("-->")


def _parse_line(line: str, verbs: Mapping[str, Verb]) -> ParsedCommand | InvalidCommand:
    if len(line) > MAX_LINE:
        return InvalidCommand(
            line[:MAX_LINE], f"a command has {MAX_LINE} characters at most; this one has {len(line)}"
        )
    name, rest = _split(line.removeprefix(PREFIX))
    if not name:
        return InvalidCommand(line, f"say what to do: {_list_commands(verbs)}")
    verb = verbs.get(name.lower())
    if verb is None:
        near = difflib.get_close_matches(name.lower(), verbs, n=1)
        hint = f"did you mean `{PREFIX} {near[0]}`?" if near else f"there are {_list_commands(verbs)}"
        return InvalidCommand(line, f"`{_sanitize(name)}` is no command; {hint}")
    try:
        return ParsedCommand(verb.name, line, _arguments(verb, rest))
    except ValueError as error:
        return InvalidCommand(line, f"{error}; write `{verb.usage}`")


def _arguments(verb: Verb, rest: str) -> dict[str, Any]:
    """The values given; raises ValueError with what is wrong."""
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
    """The first word, and what follows it."""
    first, *rest = text.split(maxsplit=1) or [""]
    return first, rest[0] if rest else ""


def _sanitize(text: str) -> str:
    """A word of a stranger's, fit to stand between backticks."""
    return re.sub(r"[`\s]|[^\x20-\x7e]", "?", text[:40])


def _list_commands(verbs: Mapping[str, Verb]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(verbs))
