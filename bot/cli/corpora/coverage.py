"""Measure which operators, pairs of them and shapes a set of ONNX models covers."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from bot.cli.common.console import metrics_table, stdout
from bot.cli.common.options import json_option
from bot.cli.common.progress import StatusLine
from bot.cli.corpora import coverage_page
from bot.errors import InfrastructureError, UsageError
from bot.reports.templates import pluralize
from bot.runners import run_tool

_SHOWN = 12  # operators listed on the terminal; the report and --json have all
_PAGE = "index.html"


@click.command()
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True), metavar="PATH…"
)
@click.option(
    "--operators",
    default="isra",
    show_default=True,
    metavar="NAME",
    help="What to measure against: isra, onnx, specified, or a file of names; see docs/coverage.md.",
)
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Processes that read.")
@json_option
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for index.html, a page with pictures. [default: none is written]",
)
def command(paths: tuple[Path, ...], operators: str, jobs: int, as_json: bool, report: Path | None) -> None:
    """Measure what a set of ONNX models covers.

    A PATH is a model, or a folder that holds *.onnx at any depth, such as a corpus of cases. Gives Isra's
    eleven metrics in both readings: as the paper says them, and as its released code counts them. Files that
    are no models are named and left out.
    """
    if report is not None:
        _prepare(report)
    result = _run_coverage(paths, operators, jobs)
    if not result["models"]:
        where = ", ".join(map(str, paths))
        raise UsageError(f"there is no ONNX model in {where}; name models, or a folder that holds *.onnx")
    if report is not None:
        _write(report / _PAGE, coverage_page.html(result))
    if as_json:
        click.echo(json.dumps(result | {"report": str(report) if report else None}))
    else:
        _show(result, report)


def _run_coverage(paths: tuple[Path, ...], operators: str, jobs: int) -> dict[str, Any]:
    """What the program told at its end; `left_out` has the files that are no models."""
    if Path(operators).is_file():
        operators = str(Path(operators).absolute())
    ends: list[dict[str, Any]] = []
    broken: list[dict[str, str]] = []

    words = ["--operators", operators, "--jobs", str(jobs), "--", *(str(path.absolute()) for path in paths)]
    with StatusLine() as line:

        def take(event: dict[str, Any]) -> None:
            kind = event.pop("event", "")
            if kind == "end":
                ends.append(event)
            elif kind == "progress":
                line.note(event)
            elif kind == "broken":
                broken.append({"file": str(event["file"]), "reason": str(event["reason"])})
                line.print_line("left out {file}: {reason}".format(**broken[-1]))

        run_tool("fuzzing.coverage", words, take)
    if len(ends) != 1:
        raise InfrastructureError("the measuring ended without its figures; see its log above")
    return ends[0] | {"left_out": broken}


def _prepare(folder: Path) -> None:
    """The folder of the page, made now: an hour of reading must not end in nothing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"--report {folder}: cannot be written to: {error.strerror}") from None


def _write(path: Path, text: str) -> None:
    """Writes the page, whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _show(result: dict[str, Any], report: Path | None) -> None:
    screen = stdout()
    covered = [name for name, one in result["by_operator"].items() if one["nodes"]]
    screen.print(
        f"[bold]{pluralize(result['models'], 'model')}[/] of {pluralize(result['nodes'], 'node')}, with "
        f"{len(covered)} of the {pluralize(len(result['by_operator']), 'operator')} of {escape(result['operators'])}"
    )
    screen.print(metrics_table(result["metrics"]))
    missing = [name for name in result["by_operator"] if name not in covered]
    if missing:
        screen.print(escape(f"never met: {_listed(missing)}"))
    if result["outside"]:
        nodes = sum(result["outside"].values())
        screen.print(
            escape(f"{pluralize(nodes, 'node')} of other operators: {_listed(list(result['outside']))}")
        )
    if result["broken"]:
        screen.print(f"{pluralize(result['broken'], 'file')} left out, named above")
    if report is not None:
        screen.print(f"report: {report / _PAGE}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
