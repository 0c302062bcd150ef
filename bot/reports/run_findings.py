"""The findings of a finished run, read from what `assay run --json` printed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.errors import UsageError
from bot.reports.text import one_line
from bot.store.models import Classification


@dataclass(frozen=True)
class RunFinding:
    """Failing cases with one cause.

    operators   the operators of its cases, "" for none
    reproducer  path of its script below the report's folder, "" for none
    counts      whether it fails a run: a regression, or any failure of a run without base
    """

    signature: str
    title: str
    classification: str
    summary: str
    cases: int
    operators: tuple[str, ...]
    reproducer: str
    replay: str
    counts: bool

    @property
    def message(self) -> str:
        """What fails, and how to see it, in a few lines."""
        count = "1 case" if self.cases == 1 else f"{self.cases} cases"
        without_base = self.counts and self.classification == Classification.INCONCLUSIVE
        word = "failing" if without_base else self.classification.replace("_", " ")
        lines = [f"{count}, {word}: {self.summary or self.title}"]
        if self.reproducer:
            lines.append(f"Reproducer: {self.reproducer} in the report.")
        if self.replay:
            lines.append(f"Again: {self.replay}")
        return "\n".join(lines)


@dataclass(frozen=True)
class RunResult:
    """A finished run: its headline, the compiler, verdicts at head by operator, and its findings."""

    headline: str
    compiler: str
    operators: Mapping[str, Mapping[str, int]]
    findings: tuple[RunFinding, ...]

    @property
    def counted(self) -> tuple[RunFinding, ...]:
        """The findings that fail the run."""
        return tuple(one for one in self.findings if one.counts)


def read_run(path: Path) -> RunResult:
    """The run whose JSON is in a file, of one or several rungs; raises UsageError."""
    try:
        found = json.loads(path.read_bytes())
        runs = found.get("rungs", [found])
        findings = tuple(one for run in runs for one in _findings(run))
        operators: dict[str, Mapping[str, int]] = {}
        for run in runs:
            operators |= {row["operator"]: row["head"] for row in run.get("operators", ())}
        headline = "; ".join(dict.fromkeys(one_line(run["headline"]) for run in runs))
        return RunResult(headline, _compiler(runs[0]), operators, findings)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise UsageError(
            f"{path} is not what `assay run --json` printed ({type(error).__name__}: {error}); "
            "give the file that its output was written to"
        ) from None


def _compiler(run: Mapping[str, Any]) -> str:
    toolchains = run["toolchains"]  # of a run that ended early, labels of head and base
    return str(toolchains["head"]["label"] if isinstance(toolchains, dict) else toolchains[0])


def _findings(run: Mapping[str, Any]) -> Iterator[RunFinding]:
    failing = {Classification.REGRESSION}
    if not run.get("base"):
        failing.add(Classification.INCONCLUSIVE)
    for group in run["groups"]:
        example = group["example"]
        outcome = example["head"] or example["base"] or {}
        yield RunFinding(
            signature=group["signature"],
            title=one_line(group["title"]),
            classification=group["classification"],
            summary=one_line(outcome.get("summary", "")),
            cases=group["cases"],
            operators=tuple(dict.fromkeys(row["operator"] for row in group["shown"])),
            reproducer=group["reproducer"] or "",
            replay=group["replay"] or "",
            counts=group["classification"] in failing,
        )
