"""The formatting that a repository configures, and ruff's formatter with it.

Only the settings below are read; the repository's configuration is not given to ruff, because it may name
other files and plug-ins.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Mapping
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
    """The style in force for a file: that of the nearest folder with settings, else `default`."""
    tool, settings, _ = read_settings(tree, path)
    return _apply(settings, default) if tool else default


def read_settings(tree: Tree, path: str) -> tuple[str, Mapping[str, Any], str]:
    """`ruff` or `black`, "" for neither, its settings for a file, and the nearest folder, which has them."""
    for folder in PurePosixPath(path).parents:
        for name in _FILES:
            text = tree.read(str(folder / name))
            tool, settings = _settings(text, name) if text is not None else ("", {})
            if tool:
                return tool, settings, str(folder)
    return "", {}, "."


def _settings(text: str, name: str) -> tuple[str, Mapping[str, Any]]:
    """The settings of ruff, else of black; "" if the file has none or is invalid."""
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return "", {}
    if name != "pyproject.toml":
        return "ruff", parsed
    tools = parsed.get("tool", {})
    tool = next((one for one in ("ruff", "black") if isinstance(tools.get(one), dict)), "")
    return tool, tools[tool] if tool else {}


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
