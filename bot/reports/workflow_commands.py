"""A run as GitHub Actions shows it: annotations, the job's summary and the step's outputs.

The formats are those of GitHub's documentation, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from bot.reports import text
from bot.reports.run_findings import RunFinding, RunResult

#: GitHub shows ten errors and ten warnings of a step ("Workflow commands", limits of annotations); ours is
#: one less, for the line that says how many are not shown.
MAX_ANNOTATIONS = 9


def build_annotations(run: RunResult) -> list[str]:
    """The workflow commands: an error for each finding that fails the run, a notice with the headline."""
    shown = [_error(one) for one in run.counted[:MAX_ANNOTATIONS]]
    left = len(run.counted) - len(shown)
    if left:
        shown.append(f"::error title=Assay::{left} more findings are in the report")
    return [*shown, f"::notice title=Assay::{_escape(run.headline)}"]


def build_step_summary(run: RunResult) -> str:
    """The job's summary, in Markdown that links and mentions nothing."""
    lines = [f"### Assay: {text.plain(run.compiler)}", "", text.plain(run.headline), ""]
    if run.findings:
        lines += ["| finding | cases | classification | again |", "|---|--:|---|---|"]
        for one in run.findings:
            cells = (
                text.cell(one.title),
                str(one.cases),
                text.cell(one.classification),
                text.cell(one.replay),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def build_outputs(values: Mapping[str, str]) -> str:
    """Lines of a step's output file. A random word ends each value, so that none can add another output."""
    written = []
    for name, value in values.items():
        end = secrets.token_hex(16)
        written.append(f"{name}<<{end}\n{value}\n{end}\n")
    return "".join(written)


def _error(finding: RunFinding) -> str:
    title = _escape(text.cut(finding.title, 200)).replace(":", "%3A").replace(",", "%2C")
    return f"::error title={title}::{_escape(finding.message)}"


def _escape(message: str) -> str:
    return message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
