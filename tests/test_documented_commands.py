"""Every `assay …` command line of the README and the documentation is one that the command line accepts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bot.cli import cli

_ROOT = Path(__file__).parents[1]
_PAGES = [_ROOT / "README.md", _ROOT / "CONTRIBUTING.md", *sorted((_ROOT / "docs").glob("*.md"))]
#: Lines of code blocks, and code in running text.
_COMMAND = re.compile(r"^(?:    |\$ )?(assay \w[^\n]*)|`(assay \w[^`]*)`", re.MULTILINE)


def commands(text: str) -> Iterator[str]:
    """The command lines of a page, without comments and without what follows `&&`, `|` or `>`."""
    for match in _COMMAND.finditer(text):
        line = (match[1] or match[2]).replace("\n", " ")
        yield from (part.strip() for part in line.split("&&") if part.strip().startswith("assay "))


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";|>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word[0] in ";|>":
            break
        words.append(word)
    return words[1:]


def problem(command: str) -> str:
    """Why the command line does not accept these words; "" if each command and option exists."""
    group: click.Command = cli
    context = click.Context(cli)
    for word in _words(command):
        if isinstance(group, click.Group) and not word.startswith("-"):
            found = group.get_command(context, word)
            if found is None:
                return f"no command {word!r}"
            group = found
        elif word.startswith("--"):
            options = {
                name for parameter in group.params for name in (*parameter.opts, *parameter.secondary_opts)
            }
            if word.partition("=")[0] not in options | {"--help", "--version"}:
                return f"no option {word!r}"
    return ""


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_documented_commands_and_options_exist(page: Path) -> None:
    assert {line: why for line in commands(page.read_text()) if (why := problem(line))} == {}


def test_there_are_documented_commands_and_wrong_ones_are_found() -> None:
    lines = [line for page in _PAGES for line in commands(page.read_text())]
    assert len(lines) > 60
    assert problem("assay bisect 1 --backend tvm --no-such-option") == "no option '--no-such-option'"
    assert problem("assay no-such-command") == "no command 'no-such-command'"
