"""The formatting that a repository configures, and ruff's formatter with it.

Only the settings below are read; the repository's configuration is not given to ruff, because it may name
other files and plug-ins.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from bot.errors import InfrastructureError, InternalError
from bot.proposals.tree import Tree

#: Files with settings of ruff or black, in ruff's order of precedence.
_FILES = (".ruff.toml", "ruff.toml", "pyproject.toml")
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class CodeStyle:
    """Columns of a line, spaces of an indent, and the quotes of strings: double, single or preserve."""

    line_length: int = 88
    indent: int = 4
    quotes: str = "double"


def read_style(tree: Tree, path: str, default: CodeStyle) -> CodeStyle:
    """The style in force for a file: that of its formatter, else `default`."""
    tool, settings = read_formatter(tree, path)
    # Ruff may only be the linter, which says nothing but the columns and the indent.
    is_formatter = tool == "black" or isinstance(settings.get("format"), dict)
    return _apply(settings, CodeStyle() if is_formatter else default)


def read_formatter(tree: Tree, path: str) -> tuple[str, Mapping[str, Any]]:
    """`ruff` or `black`, "" for neither, and its settings; of both, ruff if it has a section `format`."""
    for _, tools in _nearest(tree, path):
        ruff = tools.get("ruff")
        if ruff is not None and ("black" not in tools or isinstance(ruff.get("format"), dict)):
            return "ruff", ruff
        return "black", tools["black"]
    return "", {}


def read_ruff(tree: Tree, path: str) -> tuple[str, Mapping[str, Any]] | None:
    """The folder whose settings of ruff hold for a file, the nearest, and the settings; None without any."""
    found = ((folder, tools["ruff"]) for folder, tools in _nearest(tree, path) if "ruff" in tools)
    return next(found, None)


def _nearest(tree: Tree, path: str) -> Iterator[tuple[str, Mapping[str, Mapping[str, Any]]]]:
    """The settings of ruff and black for a file, by tool, with their folder, the nearest first."""
    for folder in PurePosixPath(path).parents:
        for name in _FILES:
            text = tree.read(str(folder / name))
            if text is not None and (tools := _settings(text, name)):
                yield str(folder), tools
                break


def _settings(text: str, name: str) -> Mapping[str, Mapping[str, Any]]:
    """The settings of ruff and black; none if the file is invalid."""
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
    tools = {"ruff": parsed} if name != "pyproject.toml" else parsed.get("tool", {})
    return {tool: tools[tool] for tool in ("ruff", "black") if isinstance(tools.get(tool), dict)}


def _apply(settings: Mapping[str, Any], default: CodeStyle) -> CodeStyle:
    style = default
    if isinstance(width := settings.get("line-length"), int):
        style = replace(style, line_length=width)
    if isinstance(indent := settings.get("indent-width"), int):
        style = replace(style, indent=indent)
    form = settings.get("format")
    quotes = form.get("quote-style") if isinstance(form, dict) else None
    if settings.get("skip-string-normalization") is True:
        quotes = "preserve"
    return replace(style, quotes=quotes) if quotes in ("double", "single", "preserve") else style


def format_code(text: str, style: CodeStyle) -> str:
    """The text as ruff's formatter writes it. Raises InternalError if it is no Python."""
    options = ["--line-length", str(style.line_length), "--config", f"indent-width={style.indent}"]
    return _ruff(text, "format", *options, "--config", f'format.quote-style="{style.quotes}"')


def sort_imports(text: str, first_party: str) -> str:
    """The text with its imports in isort's order; those of the package `first_party` come last."""
    options = ["--select", "I", "--fix", "--exit-zero", "--no-cache"]
    known = f'lint.isort.known-first-party=["{first_party}"]'
    return _ruff(text, "check", *options, *(["--config", known] if first_party else []))


def _ruff(text: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, "--isolated", "--quiet"]
    try:
        done = subprocess.run(
            [*command, "--stdin-filename", "proposal.py", "-"],
            input=text,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(f"ruff, which formats proposed tests, does not run: {error}") from error
    if done.returncode:
        raise InternalError(f"a proposed test is no Python: {done.stderr.strip()}\n{text}")
    return done.stdout
