"""Show the findings of a run as annotations, SARIF and JUnit."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path

import click

from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.reports.junit import build_junit
from bot.reports.run_findings import read_run
from bot.reports.sarif import build_sarif
from bot.reports.workflow_commands import build_annotations, build_outputs, build_step_summary
from bot.terminal import echo

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("run", type=_FILE)
@click.option("--sarif", type=_FILE, help="Write SARIF 2.1.0 to this file.")
@click.option("--junit", type=_FILE, help="Write JUnit XML to this file.")
def command(run: Path, sarif: Path | None, junit: Path | None) -> Exit:
    """Show the findings of a run as annotations, SARIF and JUnit.

    RUN holds what `assay run --json` printed. Prints GitHub Actions' workflow commands; in a workflow also
    writes the job's summary and the outputs headline, findings, sarif and junit.
    """
    result = read_run(run)
    if sarif is not None:
        _write(sarif, json.dumps(build_sarif(result, version("assay")), indent=1).encode())
    if junit is not None:
        _write(junit, build_junit(result))
    outputs = {
        "headline": result.headline,
        "findings": str(len(result.counted)),
        "sarif": str(sarif or ""),
        "junit": str(junit or ""),
    }
    _append("GITHUB_STEP_SUMMARY", build_step_summary(result))
    _append("GITHUB_OUTPUT", build_outputs(outputs))
    for line in build_annotations(result):
        echo(line)
    return Exit.OK


def _append(variable: str, content: str) -> None:
    """Appends to the file that a variable of the workflow names, if there is one."""
    if path := os.environ.get(variable):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(content)


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
