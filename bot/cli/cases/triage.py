"""Group failing cases into bugs, and show the smallest case of each."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from rich.markup import escape

from bot.cli.common.case_lookup import open_corpus
from bot.cli.common.console import stdout
from bot.cli.common.execution import Event, build_shard, find_toolchain, run_tool_on_shard
from bot.cli.common.options import (
    configuration_options,
    configure_backend,
    json_option,
    python_option,
    workers_option,
)
from bot.cli.common.progress import StatusLine
from bot.cli.exits import Exit
from bot.errors import InfrastructureError, UsageError
from bot.reports.templates import seconds
from bot.settings import load_settings
from bot.terminal import echo
from fuzzing.cases import Corpus
from fuzzing.execute.shard import Shard


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, exists=True))
@click.option("--backend", required=True, help="Compiler that fails the cases.")
@click.option(
    "--from",
    "report_file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Take only the failing cases in this output of `assay run --json`.",
)
@click.option(
    "--strategy",
    default="signature",
    show_default=True,
    help="How failures are grouped: signature, key, or as in a paper: opera, isra, isra-exact, gbft, eagle.",
)
@click.option("--reduce/--no-reduce", default=True, show_default=True, help="Reduce each failing case first.")
@click.option(
    "--runs", default=500, show_default=True, type=click.IntRange(1), help="Maximum runs for each case."
)
@click.option(
    "--budget",
    default=60.0,
    show_default=True,
    type=click.FloatRange(1),
    help="Time limit for each case in seconds.",
)
@python_option
@configuration_options
@workers_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for reduced cases and results. [default: triage in the data folder]",
)
@json_option
def command(
    directory: Path,
    backend: str,
    report_file: Path | None,
    strategy: str,
    reduce: bool,
    runs: int,
    budget: float,
    python: str,
    device: str | None,
    given: tuple[str, ...],
    profile: str,
    workers: int,
    out: Path | None,
    as_json: bool,
) -> Exit:
    """Group failing cases into bugs, and show the smallest case of each.

    DIR is a corpus folder or a folder of ONNX models. Runs its cases, reduces those that fail and groups the
    reduced cases. An interrupted triage resumes. Exit code 1 if a case fails.
    """
    configuration = configure_backend(backend, device, given, profile)
    directory = open_corpus(directory)
    cases, known = _cases(directory, report_file)
    shard = build_shard(
        configuration, find_toolchain(configuration.name, python), directory, cases, workers=workers
    )
    folder = (out or load_settings().data_dir / "triage").absolute()
    arguments = ["--strategy", strategy, "--out", str(folder), "--runs", str(runs), "--seconds", str(budget)]
    result = _group(shard, [*arguments, *([] if reduce else ["--keep"])], known)
    if as_json:
        echo(json.dumps(result))
    else:
        _show(result, Corpus(folder / "corpus"), Corpus(directory))
    return Exit.FOUND if result["failing"] else Exit.OK


def _cases(directory: Path, report_file: Path | None) -> tuple[list[str], list[Event]]:
    """The ids of the cases, and known outcomes of some; raises UsageError if there are no cases."""
    found, known = (list(Corpus(directory).ids()), []) if report_file is None else _read_report(report_file)
    if not found:
        raise UsageError(
            f"there are no cases in {report_file or directory}; give a corpus folder that holds some"
        )
    return found, known


def _read_report(report_file: Path) -> tuple[list[str], list[Event]]:
    """The case ids in the output of `assay run --json`, in order, and its outcomes."""
    try:
        groups = json.loads(report_file.read_bytes())["groups"]
        rows = [row for group in groups for row in (group["example"], *group["shown"])]
        outcomes = [group["example"]["head"] for group in groups if group["example"].get("head")]
        return list(dict.fromkeys(str(row["case"]) for row in rows)), outcomes
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--from {report_file}: not the output of `assay run --json` ({error!r})") from None


def _group(shard: Shard, arguments: Sequence[str], known: Sequence[Event]) -> Event:
    """Runs the triage; returns its last event with the bugs."""
    ended: Event = {"bugs": [], "runs": 0, "replayed": 0}
    with (
        StatusLine() as line,
        tempfile.NamedTemporaryFile("w", prefix="assay-known-", suffix=".json") as file,
    ):
        json.dump(known, file)
        file.flush()

        def take(event: Event) -> None:
            kind = event.pop("event", "")
            if kind == "outcome":
                line.show(f"{event['done']} of {event['of']} cases run, {event['failing']} fail")
            elif kind == "reduced":
                ended["runs"] += event["runs"]
                ended["replayed"] += event["replayed"]
                line.show(f"{event['from'][:16]} reduced, {ended['runs']} runs by now")
            elif kind == "bug":
                ended["bugs"].append(event)
            elif kind == "end":
                distinct = event.pop("bugs")
                ended.update(event, distinct=distinct)

        run_tool_on_shard(shard, "fuzzing.deduplicate", [*arguments, "--known", file.name], take)
    if "failing" not in ended:
        raise InfrastructureError("the triage stopped early; run it again to resume")
    return ended


def _show(result: Event, small: Corpus, found: Corpus) -> None:
    console = stdout()
    for bug in result["bugs"]:
        count = len(bug["cases"])
        console.print(f"[bold]{count:4} {'case ' if count == 1 else 'cases'}[/]  {escape(bug['title'])}")
        if needs := _describe_needs(bug["fields"].get("needs", [])):
            console.print(f"            with {escape(needs)}")
        console.print(f"            {(small if bug['reduced'] else found).folder(bug['case'])}")
    bugs = f"{result['distinct']} {'bug' if result['distinct'] == 1 else 'bugs'}"
    console.print(
        f"{bugs} in {result['failing']} failing of {result['cases']} cases, by {result['strategy']}, "
        f"{seconds(result['seconds'])}"
    )


def _describe_needs(needs: Sequence[str]) -> str:
    """The needs of a signature as text; of ranks only the highest."""
    ranks = [need for need in needs if need.startswith("rank ")]
    return ", ".join([*(need for need in needs if need not in ranks), *sorted(ranks)[-1:]])
