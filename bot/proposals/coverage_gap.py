"""What a proposed test adds to its file: operators and parameters that no test there named before.

Tests are read as text: an operator counts as covered where a test names it, whatever it then checks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.proposals.candidate_names import parameters
from bot.proposals.regression import Regression


@dataclass(frozen=True)
class Gap:
    """Operators without a test, and parameters that no test of their operators sets."""

    operators: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.operators or self.parameters)


def find_gap(before: str | None, regression: Regression) -> Gap:
    """What the tests of a file, None if it is new, do not name of a regression's program."""
    tests = list(_tests(before or ""))
    operators = {name: name.rpartition(".")[2] for name in regression.operators}
    missing = tuple(name for name, word in operators.items() if not any(_names(word, one) for one in tests))
    of_operators = [one for one in tests if any(_names(word, one) for word in operators.values())]
    given = dict.fromkeys(name for name, _ in parameters(regression))
    unset = tuple(name for name in given if not any(_names(name, one) for one in of_operators))
    return Gap(missing, unset)


def _tests(source: str) -> Iterator[str]:
    """The texts of functions, of methods of classes with several tests, and of classes with one test."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return
    lines = source.splitlines()
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield _text(lines, node)
        elif isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            several = sum(one.name.startswith("test") for one in methods) > 1
            yield from (_text(lines, one) for one in (methods if several else [node]))


def _text(lines: list[str], node: ast.FunctionDef | ast.ClassDef) -> str:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return "\n".join(lines[first - 1 : node.end_lineno])


def _names(word: str, text: str) -> bool:
    """Whether a text has the word, be it a part of a name with underscores."""
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", text) is not None
