"""Tell which failing cases are one bug, and show the smallest case of each."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from rich.markup import escape

from bot.cli._cases import corpus_at
from bot.cli._options import (
    configuration_options,
    configured,
    json_option,
    python_option,
    workers_option,
)
from bot.cli._shards import Event, installed, run_on, shard_of
from bot.cli._tables import stdout
from bot.cli._watch import Line
from bot.cli.exits import Exit
from bot.errors import InfrastructureError, UsageError
from bot.reports.templating import seconds
from bot.settings import load_settings
from fuzzing.cases import Corpus
from fuzzing.execute.shard import Shard


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, exists=True))
@click.option("--backend", required=True, help="Compiler that fails the cases.")
@click.option(
    "--from",
    "told_by",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Take the failing cases that this output of `assay run --json` names, and no others.",
)
@click.option(
    "--strategy",
    default="signature",
    show_default=True,
    help="What makes failures one bug: signature, key; of the papers opera, isra, isra-exact, gbft, eagle.",
)
@click.option(
    "--reduce/--no-reduce", default=True, show_default=True, help="Make each failing case small first."
)
@click.option("--runs", default=500, show_default=True, type=click.IntRange(1), help="Runs for each case.")
@click.option(
    "--budget", default=60.0, show_default=True, type=click.FloatRange(1), help="Seconds for each case."
)
@python_option
@configuration_options
@workers_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for reduced cases and what is known of them. [default: triage in the data folder]",
)
@json_option
def command(
    directory: Path,
    backend: str,
    told_by: Path | None,
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
    """Tell which failing cases are one bug, and show the smallest case of each.

    DIR is a corpus folder, or one of ONNX models: its cases are run, and those that fail are reduced and
    told apart by what is left of them. What was learnt is remembered: a triage that was stopped runs nothing
    of its reductions again. Exit code 1 if a case fails.
    """
    how = configured(backend, device, given, profile)
    directory = corpus_at(directory)
    cases, known = _cases(directory, told_by)
    shard = shard_of(how, installed(how.name, python), directory, cases, workers=workers)
    folder = (out or load_settings().data_dir / "triage").absolute()
    arguments = ["--strategy", strategy, "--out", str(folder), "--runs", str(runs), "--seconds", str(budget)]
    told = _group(shard, [*arguments, *([] if reduce else ["--keep"])], known)
    if as_json:
        click.echo(json.dumps(told))
    else:
        _show(told, Corpus(folder / "corpus"), Corpus(directory))
    return Exit.FOUND if told["failing"] else Exit.OK


def _cases(directory: Path, told_by: Path | None) -> tuple[list[str], list[Event]]:
    """The ids of the cases that are meant, and what is known of some; raises UsageError if there is none."""
    found, known = (list(Corpus(directory).ids()), []) if told_by is None else _told(told_by)
    if not found:
        raise UsageError(
            f"there are no cases in {told_by or directory}; name a corpus folder that holds some"
        )
    return found, known


def _told(told_by: Path) -> tuple[list[str], list[Event]]:
    """The ids that what `assay run --json` printed names, in its order, and the outcomes that it holds."""
    try:
        groups = json.loads(told_by.read_bytes())["groups"]
        rows = [row for group in groups for row in (group["example"], *group["shown"])]
        outcomes = [group["example"]["head"] for group in groups if group["example"].get("head")]
        return list(dict.fromkeys(str(row["case"]) for row in rows)), outcomes
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--from {told_by}: not what `assay run --json` prints ({error!r})") from None


def _group(shard: Shard, arguments: Sequence[str], known: Sequence[Event]) -> Event:
    """Runs the triage; its last event, with the bugs."""
    ended: Event = {"bugs": [], "runs": 0, "replayed": 0}
    with Line() as line, tempfile.NamedTemporaryFile("w", prefix="assay-known-", suffix=".json") as file:
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

        run_on(shard, "fuzzing.triage.group", [*arguments, "--known", file.name], take)
    if "failing" not in ended:
        raise InfrastructureError("the triage stopped before its end; begin it again, it goes on")
    return ended


def _show(told: Event, small: Corpus, found: Corpus) -> None:
    console = stdout()
    for bug in told["bugs"]:
        count = len(bug["cases"])
        console.print(f"[bold]{count:4} {'case ' if count == 1 else 'cases'}[/]  {escape(bug['title'])}")
        if needs := _needs(bug["fields"].get("needs", [])):
            console.print(f"            with {escape(needs)}")
        console.print(f"            {(small if bug['reduced'] else found).folder(bug['case'])}")
    bugs = f"{told['distinct']} {'bug' if told['distinct'] == 1 else 'bugs'}"
    console.print(
        f"{bugs} in {told['failing']} failing of {told['cases']} cases, by {told['strategy']}, "
        f"{seconds(told['seconds'])}"
    )


def _needs(needs: Sequence[str]) -> str:
    """What a signature needs, for people: of ranks the highest says it all."""
    ranks = [need for need in needs if need.startswith("rank ")]
    return ", ".join([*(need for need in needs if need not in ranks), *sorted(ranks)[-1:]])
