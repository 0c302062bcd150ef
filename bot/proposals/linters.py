"""Runs the linters that a repository configures on a proposed test: ruff, black and flake8.

Black itself is run where it is installed, else ruff's formatter, which differs from it in a few places
(docs.astral.sh/ruff/formatter/black). Flake8's own rules are run through ruff, which has them. Only the
settings below are read; see `code_style`.
"""

from __future__ import annotations

import configparser
import difflib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from bot.proposals.code_style import CodeStyle, format_code, python_settings, read_style
from bot.proposals.proposal import Proposal
from bot.proposals.tree import Tree

_TIMEOUT_S = 60.0
_FLAKE8_FILES = (".flake8", "setup.cfg", "tox.ini")
#: Rules that ruff selects by itself (docs.astral.sh/ruff/rules), and flake8 (flake8.pycqa.org, "select").
_RUFF_DEFAULT, _FLAKE8_DEFAULT = ("E4", "E7", "E9", "F"), ("E", "F", "W", "C90")


@dataclass(frozen=True)
class _Rules:
    """Rules of one linter: codes or their beginnings."""

    linter: str
    selected: tuple[str, ...]
    ignored: tuple[str, ...]
    line_length: int


def check_proposal(proposal: Proposal, tree: Tree) -> tuple[str, ...]:
    """What each configured linter has against the test, one sentence each; none for files of other languages.

    Findings that the file had before do not count.
    """
    if not proposal.path.endswith(".py"):
        return ()
    tool, settings = python_settings(tree, proposal.path)
    style = read_style(tree, proposal.path, CodeStyle())
    found = [_format(proposal, tool, settings, style)] if tool else []
    rules = (_ruff_rules(settings, style) if tool == "ruff" else None, _flake8_rules(tree))
    found += [_lint(proposal, one) for one in rules if one]
    return tuple(filter(None, found))


def _format(proposal: Proposal, tool: str, settings: Mapping[str, Any], style: CodeStyle) -> str:
    """What the formatter does to the lines that were added; "" if it is off."""
    form = settings.get("format")
    if isinstance(form, dict) and "*" in form.get("exclude", ()):
        return ""
    own = _black(proposal.after, style) if tool == "black" else None
    formatted = format_code(proposal.after, style) if own is None else own
    kept = _changed(proposal.after, formatted) & _added(proposal)
    name = "ruff format" if own is None else "black"
    result = f"changes line {min(kept)}" if kept else "changes nothing"
    return f"`{name}` at {style.line_length} columns {result}"


def _black(text: str, style: CodeStyle) -> str | None:
    """The text as black writes it; None if it is not installed."""
    quotes = ["--skip-string-normalization"] if style.quotes == "preserve" else []
    options = ["--quiet", "--line-length", str(style.line_length), *quotes, "-"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "black", "--config", os.devnull, *options],
            input=text,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if not done.returncode else None


def _added(proposal: Proposal) -> set[int]:
    """The lines of the new file, from 1, that the test adds."""
    return _changed(proposal.after, proposal.before or "")


def _changed(text: str, other: str) -> set[int]:
    """The lines of a text, from 1, that another text lacks."""
    matcher = difflib.SequenceMatcher(a=text.splitlines(), b=other.splitlines(), autojunk=False)
    return {
        at + 1 for tag, low, high, _, _ in matcher.get_opcodes() if tag != "equal" for at in range(low, high)
    }


def _ruff_rules(settings: Mapping[str, Any], style: CodeStyle) -> _Rules:
    """The rules of ruff's settings; those of its newer section `lint` count more."""
    lint = {**settings, **(settings["lint"] if isinstance(settings.get("lint"), dict) else {})}

    def codes(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        given = lint.get(name, default)
        return tuple(map(str, given)) if isinstance(given, (list, tuple)) else default

    selected = (*codes("select", _RUFF_DEFAULT), *codes("extend-select"))
    return _Rules("ruff check", selected, (*codes("ignore"), *codes("extend-ignore")), style.line_length)


def _flake8_rules(tree: Tree) -> _Rules | None:
    for path in _FLAKE8_FILES:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(tree.read(path) or "")
        except configparser.Error:
            continue
        if parser.has_section("flake8"):
            given = {key.replace("_", "-"): value for key, value in parser["flake8"].items()}
            ignored = (*_codes(given.get("ignore", "")), *_codes(given.get("extend-ignore", "")))
            width = given.get("max-line-length", "79")
            return _Rules("flake8", _FLAKE8_DEFAULT, ignored, int(width) if width.isdecimal() else 79)
    return None


def _codes(text: str) -> list[str]:
    """Codes between commas; comments are left out."""
    lines = [line.partition("#")[0] for line in text.splitlines()]
    return [code for line in lines for code in line.replace(",", " ").split()]


def _lint(proposal: Proposal, rules: _Rules) -> str:
    """What the linter finds that it did not find before; "" if ruff knows too few of its rules."""
    after, before = (
        _findings(text, proposal.path, rules) for text in (proposal.after, proposal.before or "")
    )
    if after is None or before is None:
        return ""
    new = sorted((after - before).elements())
    named = f"`{rules.linter}` ({', '.join(rules.selected[:8])}{', …' if len(rules.selected) > 8 else ''})"
    return f"{named} finds {'new: ' + ', '.join(new) if new else 'nothing new'}"


def _findings(text: str, path: str, rules: _Rules) -> Counter[str] | None:
    """Codes of findings; None if ruff does not run with the rules."""
    known = [code for code in rules.ignored if rules.linter != "flake8" or code.startswith(_FLAKE8_DEFAULT)]
    options: Sequence[str] = ("--isolated", "--no-cache", "--exit-zero", "--output-format", "json")
    options = (*options, "--line-length", str(rules.line_length), "--select", ",".join(rules.selected))
    options = (*options, *(("--ignore", ",".join(known)) if known else ()))
    name = PurePosixPath(path).name
    command = [sys.executable, "-m", "ruff", "check", *options, "--stdin-filename", name, "-"]
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        return Counter(str(one["code"]) for one in json.loads(done.stdout)) if not done.returncode else None
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
