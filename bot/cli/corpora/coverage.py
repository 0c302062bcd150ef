"""Measure which operators, operator pairs and shapes a set of ONNX models covers."""

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
from bot.cli.corpora import attribute_table, coverage_page
from bot.errors import InfrastructureError, UsageError
from bot.reports.templates import pluralize
from bot.runners import run_tool
from bot.terminal import echo

_SHOWN = 12  # operators listed on the terminal; the report and --json have all
_PAGE = "index.html"
#: Options that say how metrics are measured.
_OF_METRICS = ("operators", "jobs", "report")
_DEFAULT = click.core.ParameterSource.DEFAULT


@click.command()
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True), metavar="PATH…"
)
@click.option(
    "--operators",
    default="isra",
    show_default=True,
    metavar="NAME",
    help="Operator set: isra, onnx, specified, or a file of names; see docs/coverage.md.",
)
@click.option(
    "--attributes",
    is_flag=True,
    help="Run the cases of corpora on --backend: which values of ONNX's attributes they exercise.",
)
@click.option("--backend", default="", metavar="NAME", help="The compiler, for --attributes.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Number of processes.")
@json_option
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for index.html, a page with charts. [default: none is written]",
)
def command(
    paths: tuple[Path, ...],
    operators: str,
    attributes: bool,
    backend: str,
    jobs: int,
    as_json: bool,
    report: Path | None,
) -> None:
    """Measure what a set of ONNX models covers.

    A PATH is a model, or a folder with *.onnx files at any depth, such as a corpus. Prints Isra's eleven
    metrics in two readings: as the paper defines them and as its released code counts them. A third is the
    operator-level coverage of graph-based fuzzing. Files that are not models are listed and left out.
    """
    if attributes != bool(backend):
        raise UsageError("--attributes and --backend go together: give a compiler to run the cases on")
    context = click.get_current_context()
    of_metrics = [name for name in _OF_METRICS if context.get_parameter_source(name) is not _DEFAULT]
    if attributes and of_metrics:
        raise UsageError(f"--{of_metrics[0]} is for metrics: leave it out with --attributes")
    if attributes:
        attribute_table.show(paths, backend, as_json)
        return
    if report is not None:
        _prepare(report)
    result = _run_coverage(paths, operators, jobs)
    if not result["models"]:
        where = ", ".join(map(str, paths))
        raise UsageError(f"no ONNX model in {where}; give models or a folder with *.onnx files")
    if report is not None:
        _write(report / _PAGE, coverage_page.html(result))
    if as_json:
        echo(json.dumps(result | {"report": str(report) if report else None}))
    else:
        _show(result, report)


def _run_coverage(paths: tuple[Path, ...], operators: str, jobs: int) -> dict[str, Any]:
    """The final event of the program; `left_out` lists the files that are not models."""
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
        raise InfrastructureError("the measurement stopped early; see its log above")
    return ends[0] | {"left_out": broken}


def _prepare(folder: Path) -> None:
    """Creates the folder before the measurement, so that an error is reported early."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"--report {folder}: cannot be written: {error.strerror}") from None


def _write(path: Path, text: str) -> None:
    """Writes the page atomically."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _show(result: dict[str, Any], report: Path | None) -> None:
    screen = stdout()
    covered = [name for name, one in result["by_operator"].items() if one["nodes"]]
    screen.print(
        f"[bold]{pluralize(result['models'], 'model')}[/] of {pluralize(result['nodes'], 'node')}, with "
        f"{len(covered)} of the {pluralize(len(result['by_operator']), 'operator')} of "
        f"{escape(result['operators'])}"
    )
    screen.print(metrics_table(result["metrics"]))
    missing = [name for name in result["by_operator"] if name not in covered]
    if missing:
        screen.print(escape(f"not covered: {_listed(missing)}"))
    if result["outside"]:
        nodes = sum(result["outside"].values())
        screen.print(
            escape(f"{pluralize(nodes, 'node')} of other operators: {_listed(list(result['outside']))}")
        )
    if result["broken"]:
        screen.print(f"{pluralize(result['broken'], 'file')} left out, listed above")
    if report is not None:
        screen.print(f"report: {report / _PAGE}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
