"""Make a failing case as small as it gets, with the same bug in it."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.markup import escape

from bot.cli._cases import stored_case
from bot.cli._options import (
    configuration_options,
    configured,
    corpus_option,
    data_set_option,
    json_option,
    python_option,
    workers_option,
)
from bot.cli._shards import Event, installed, run_on, shard_of
from bot.cli._tables import stdout
from bot.cli._watch import Line
from bot.cli.exits import Exit
from bot.errors import InfrastructureError
from bot.reports import reproducer
from bot.reports.templating import seconds
from bot.settings import load_settings
from bot.toolchains import Ready
from fuzzing.cases import Corpus
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome


@click.command()
@click.argument("case")
@click.option("--backend", required=True, help="Compiler that fails the case.")
@corpus_option
@data_set_option
@python_option
@configuration_options
@click.option("--runs", default=2000, show_default=True, type=click.IntRange(1), help="Runs to spend.")
@click.option(
    "--budget", default=600.0, show_default=True, type=click.FloatRange(1), help="Seconds to spend."
)
@workers_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the reduced case and its reproducer. [default: reduced/ID in the data folder]",
)
@json_option
def command(
    case: str,
    backend: str,
    corpus: Path | None,
    data_set: int | None,
    python: str,
    device: str | None,
    given: tuple[str, ...],
    profile: str,
    runs: int,
    budget: float,
    workers: int,
    out: Path | None,
    as_json: bool,
) -> Exit:
    """Make a failing case as small as it gets, with the same bug in it.

    CASE is an ONNX model, the folder of a case, or the beginning of its id in the corpus. Whatever is tried
    counts only if it fails with the same signature; other bugs met on the way are kept as cases of their
    own. Where it only shows what a part of it computes wrongly by itself, that part is named. What was
    learnt is remembered: a reduction that was stopped goes on where it was. Exit code 1, since a compiler is
    at fault; 2 if the case does not fail.
    """
    how = configured(backend, device, given, profile)
    toolchain = installed(how.name, python)
    with stored_case(case, corpus, data_set) as (store, found):
        folder = (out or load_settings().data_dir / "reduced" / found.id[:16]).absolute()
        kept = Corpus(folder / "corpus")
        kept.add(store.get(found.id))
        shard = shard_of(how, toolchain, kept.root, [found.id], workers=workers)
        ended = _reduce(shard, runs, budget, folder / f"{toolchain.digest[:16]}.journal")
    told = _written(ended, kept, toolchain, folder)
    if as_json:
        click.echo(json.dumps(told))
    else:
        _show(told)
    return Exit.FOUND


def _reduce(shard: Shard, runs: int, budget: float, journal: Path) -> Event:
    """Runs the reduction; its last event, with the others that were met."""
    ended: Event = {"others": []}
    with Line() as line:

        def take(event: Event) -> None:
            kind = event.pop("event", "")
            if kind == "step":
                line.show(f"reducing: size {_size(event['size'])} after {event['run']} runs")
            elif kind == "other":
                ended["others"].append(event["id"])
            elif kind == "end":
                ended.update(event)

        arguments = ["--runs", str(runs), "--seconds", str(budget), "--journal", str(journal)]
        run_on(shard, "fuzzing.reduce", arguments, take)
    if "id" not in ended:
        raise InfrastructureError("the reduction stopped before its end; begin it again, it goes on")
    return ended


def _size(numbers: list[float]) -> str:
    return " · ".join(f"{number:g}" for number in numbers[:4])


def _written(ended: Event, kept: Corpus, toolchain: Ready, folder: Path) -> Event:
    """What came of it, with the reproducer written beside the case."""
    outcome = Outcome.from_json(ended["outcome"])
    case = kept.get(ended["id"])
    told = ended | {"case": str(kept.folder(case.id)), "reproducer": ""}
    if reproducer.can_render(outcome.backend, case.program.frontend):
        path = folder / f"{case.id[:16]}.py"
        path.write_text(reproducer.render(case, outcome, toolchain, filename=path.name), encoding="utf-8")
        told["reproducer"] = str(path)
    return told


def _show(told: Event) -> None:
    console = stdout()
    outcome = Outcome.from_json(told["outcome"])
    console.print(f"[red]{outcome.verdict.value}[/] on {outcome.backend}: {escape(outcome.summary)}")
    for word, before, after in zip(told["words"], told["before"], told["after"], strict=False):
        console.print(f"  {word:12} {before:g} → {after:g}")
    if told.get("root"):
        console.print(
            f"  it shows what case {told['root'][:16]} computes wrongly by itself: the bug is there"
        )
    known = f", {told['replayed']} known from before" if told["replayed"] else ""
    console.print(f"  {told['runs']} runs{known}, {seconds(told['seconds'])}; {_ending(told)}")
    console.print(f"\ncase        {told['case']}")
    if told["reproducer"]:
        console.print(f"reproducer  {told['reproducer']}")
    if told["others"]:
        console.print(f"other bugs met on the way: {', '.join(other[:16] for other in told['others'])}")


def _ending(told: Event) -> str:
    """How far the reduction came."""
    if not told["confirmed"]:
        return "[yellow]left as it was, since the smallest one did not fail in a fresh process[/]"
    if not told["minimal"]:
        return "not to the end: the budget was spent"
    same = told["before"] == told["after"]
    return "as small as it gets already" if same else "nothing of it can be left out"
