"""Measure which operators, pairs of them and shapes a set of ONNX models covers."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bot.cli import _coverage_page
from bot.cli._watch import Line
from bot.errors import InfrastructureError, UsageError
from bot.reports.templating import counted
from bot.runners import run_tool

_WIDE = 500  # columns where nobody sees a screen: there, a row is a line
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
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
    told = _measure(paths, operators, jobs)
    if report is not None:
        _write(report / _PAGE, _coverage_page.html(told))
    if as_json:
        click.echo(json.dumps(told | {"report": str(report) if report else None}))
    else:
        _show(told, report)


def _measure(paths: tuple[Path, ...], operators: str, jobs: int) -> dict[str, Any]:
    """What the program told at its end; `left_out` has the files that are no models."""
    if Path(operators).is_file():
        operators = str(Path(operators).absolute())
    ends: list[dict[str, Any]] = []
    broken: list[dict[str, str]] = []

    words = ["--operators", operators, "--jobs", str(jobs), "--", *(str(path.absolute()) for path in paths)]
    with Line() as line:

        def take(event: dict[str, Any]) -> None:
            kind = event.pop("event", "")
            if kind == "end":
                ends.append(event)
            elif kind == "progress":
                line.note(event)
            elif kind == "broken":
                broken.append({"file": str(event["file"]), "reason": str(event["reason"])})
                line.keep("left out {file}: {reason}".format(**broken[-1]))

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


def _show(told: dict[str, Any], report: Path | None) -> None:
    console = Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else _WIDE)
    met = [name for name, one in told["by_operator"].items() if one["nodes"]]
    console.print(
        f"[bold]{counted(told['models'], 'model')}[/] of {counted(told['nodes'], 'node')}, with "
        f"{len(met)} of the {counted(len(told['by_operator']), 'operator')} of {escape(told['operators'])}"
    )
    table = Table("metric", "paper", "released", "what it counts", box=None, pad_edge=False)
    for column in table.columns[1:3]:
        column.justify = "right"
    for name, metric in told["metrics"].items():
        values = [_coverage_page.figure(metric[reading]) for reading in ("paper", "released")]
        table.add_row(name, *values, escape(metric["meaning"]))
    console.print(table)
    missing = [name for name in told["by_operator"] if name not in met]
    if missing:
        console.print(escape(f"never met: {_listed(missing)}"))
    if told["outside"]:
        nodes = sum(told["outside"].values())
        console.print(
            escape(f"{counted(nodes, 'node')} of other operators: {_listed(list(told['outside']))}")
        )
    if told["broken"]:
        console.print(f"{counted(told['broken'], 'file')} left out, named above")
    if report is not None:
        console.print(f"report: {report / _PAGE}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
