"""Runs a repository's linters on a proposed test: ruff, black, flake8, lintrunner and clang-format.

Black itself is run where it is installed, else ruff's formatter, which differs from it in a few places
(docs.astral.sh/ruff/formatter/black). Only the settings that `code_style`, `linter_rules` and `lintrunner`
name are read.
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from bot.proposals.code_style import CodeStyle, format_code, read_formatter, read_style
from bot.proposals.cpp_style import format_cpp, read_clang_format
from bot.proposals.linter_rules import Rules, flake8_rules, ruff_rules
from bot.proposals.lintrunner import CPP_FORMATTERS, FORMATTERS, Lintrunner, check_lines, read_lintrunner
from bot.proposals.proposal import Proposal
from bot.proposals.tree import Tree
from bot.proposals.writer import get_writer

_TIMEOUT_S = 60.0


def check_proposal(proposal: Proposal, tree: Tree) -> tuple[str, ...]:
    """What each configured linter has against the test, one sentence each; none for files of other languages.

    Findings that the file had before do not count.
    """
    if not proposal.path.endswith(".py"):
        return ()
    path, lintrunner = proposal.path, read_lintrunner(tree)
    tool, settings = read_formatter(tree, path)
    style = read_style(tree, path, get_writer(proposal.writer).style)
    found = [_format(proposal, tool, settings, style)] if tool and lintrunner.runs(FORMATTERS, path) else []
    rules = (
        ruff_rules(tree, path) if lintrunner.runs(["RUFF"], path) else None,
        flake8_rules(tree, path) if lintrunner.runs(["FLAKE8"], path) else None,
    )
    found += [_lint(proposal, one) for one in rules if one]
    lines = proposal.after.splitlines()
    found.append(check_lines(lintrunner.forbidden(path), [lines[at - 1] for at in sorted(_added(proposal))]))
    found.append(_format_other(proposal, tree, lintrunner))
    return tuple(filter(None, found))


def _format_other(proposal: Proposal, tree: Tree, lintrunner: Lintrunner) -> str:
    """What clang-format does to the test for the C++ suite; "" if it is not configured there."""
    path = get_writer(proposal.writer).other_path
    if not proposal.other or not lintrunner.runs(CPP_FORMATTERS, path):
        return ""
    configuration = read_clang_format(tree, path)
    formatted = format_cpp(proposal.other, configuration) if configuration is not None else None
    if formatted is None:
        return ""
    changed = _changed(proposal.other, formatted)
    result = f"changes line {min(changed)}" if changed else "changes nothing"
    return f"`clang-format` of the test for the C++ suite {result}"


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


def _lint(proposal: Proposal, rules: Rules) -> str:
    """What the linter finds that it did not find before; "" if ruff knows too few of its rules."""
    after, before = (
        _findings(text, proposal.path, rules) for text in (proposal.after, proposal.before or "")
    )
    if after is None or before is None:
        return ""
    new = sorted((after - before).elements())
    named = f"`{rules.linter}` ({', '.join(rules.named[:8])}{', …' if len(rules.named) > 8 else ''})"
    return f"{named} finds {'new: ' + ', '.join(new) if new else 'nothing new'}"


def _findings(text: str, path: str, rules: Rules) -> Counter[str] | None:
    """Codes of findings; None if ruff does not run with the rules."""
    options = ("--isolated", "--no-cache", "--exit-zero", "--output-format", "json", *rules.options)
    name = PurePosixPath(path).name
    command = [sys.executable, "-m", "ruff", "check", *options, "--stdin-filename", name, "-"]
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        found = [str(one["code"]) for one in json.loads(done.stdout)] if not done.returncode else None
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    if found is None:
        return None
    renamed = dict(rules.renamed)
    return Counter(renamed.get(one, one) for one in found if not one.startswith(rules.ignored))
