"""Every `assay …` command line of the README and the documentation is one that the command line accepts."""

from __future__ import annotations

import ast
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

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def commands(text: str) -> Iterator[str]:
    """The command lines of a page, without comments and without what follows `&&`, `|` or `>`."""
    for match in _COMMAND.finditer(text):
        line = (match[1] or match[2]).replace("\n", " ")
        yield from (part.strip() for part in line.split("&&") if part.strip().startswith("assay "))


def _raised_texts(path: Path) -> Iterator[str]:
    """The texts in a file's `raise` statements, without command lines in them."""
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.Raise):
            parts = (part.value for part in ast.walk(statement) if isinstance(part, ast.Constant))
            yield from (_COMMAND.sub("", text) for text in parts if isinstance(text, str))


def _options(command: click.Command) -> set[str]:
    """The options of a command and of its subcommands."""
    found = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    nested = command.commands.values() if isinstance(command, click.Group) else ()
    return found.union(*map(_options, nested))


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


def test_documented_runs_name_what_they_test() -> None:
    """Each example in a block of code; elsewhere a command is named with the option in question only."""
    lines = [
        line
        for page in _PAGES
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL)
        for line in commands(block)
        if line.startswith("assay run ")
    ]
    assert len(lines) > 4
    assert [one for one in lines if not {"--backend", "--library", "--repo"} & set(_words(one))] == []


def test_there_are_documented_commands_and_wrong_ones_are_found() -> None:
    lines = [line for page in _PAGES for line in commands(page.read_text())]
    assert len(lines) > 60
    assert problem("assay bisect 1 --backend tvm --no-such-option") == "no option '--no-such-option'"
    assert problem("assay no-such-command") == "no command 'no-such-command'"


def _command_files() -> Iterator[tuple[str, Path]]:
    """Each command with the files whose errors it shows: its own, and those of the tool that it runs."""
    for path in (_ROOT / "bot" / "cli").glob("*/*.py"):
        name = path.stem.replace("_", "-")
        if cli.get_command(click.Context(cli), name) is not None:
            yield name, path
    tool = _ROOT / "fuzzing" / "prioritize"
    yield from (("prioritize", path) for path in tool.rglob("*.py") if path.name != "coverage_measurement.py")


def test_errors_name_options_that_the_command_has() -> None:
    named = [
        (name, option)
        for name, path in _command_files()
        for text in _raised_texts(path)
        for option in _OPTION.findall(text)
    ]
    assert len(named) > 30
    context = click.Context(cli)
    known = {name: cli.get_command(context, name) for name, _ in named}
    options = {name: _options(command) for name, command in known.items() if command is not None}
    assert [f"assay {name} {option}" for name, option in named if option not in options[name]] == []
