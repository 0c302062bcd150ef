"""Tests for repositories without a known suite: the short reproducer as a function of pytest."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from bot.errors import RefusalError
from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import Place, ProposalSettings, Writer, writer
from bot.reports.reproducer_short import render_short
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict


@writer
class PytestFunctionWriter(Writer):
    """The file that the configuration names, for any compiler with a short reproducer."""

    name = "pytest-function"

    def place(self, regression: Regression, tree: Tree, settings: ProposalSettings) -> Place | None:
        """The configured file, new or not."""
        del regression, tree
        return Place(settings.path)

    def suite_files(self, place: Place) -> tuple[str, ...]:
        """The tests beside the file."""
        folder = PurePosixPath(place.path).parent
        return (f"{folder}/test_*.py",) if folder.name else ()

    def values(self, regression: Regression, tree: Tree) -> Mapping[str, Any]:
        """The statements of the short reproducer."""
        del tree
        script = render_short(regression.case, _checked(regression), regression.toolchain, regression.code)
        if not script:
            raise RefusalError("the program has no short reproducer; reduce the bug first")
        return {"imports": _imports(script), "statements": _statements(script)}


def _checked(regression: Regression) -> Outcome:
    """The outcome; of a passing case as if its first output were wrong, so that the test compares it."""
    outcome, case = regression.outcome, regression.case
    if outcome.verdict is not Verdict.PASS:
        return outcome
    rtol, atol = regression.tolerance
    output = case.expected[0][0] if case.expected else "0"
    evidence = Evidence(mismatches=(Mismatch(output, "value", "", rtol=rtol, atol=atol),))
    return replace(outcome, verdict=Verdict.WRONG_RESULT, phase=Phase.RUN, evidence=evidence)


def _imports(script: str) -> list[str]:
    return [
        ast.unparse(node) for node in ast.parse(script).body if isinstance(node, (ast.Import, ast.ImportFrom))
    ]


def _statements(script: str) -> str:
    """All but the imports and the comments, which name a release and its failure."""
    lines = script.splitlines()
    taken = {
        number
        for node in ast.parse(script).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for number in range(node.lineno - 1, (node.end_lineno or node.lineno))
    }
    kept = [line for at, line in enumerate(lines) if at not in taken and not line.startswith("#")]
    return "\n".join(kept).strip("\n")
