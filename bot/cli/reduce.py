"""Make a failing case as small as it gets, with the same bug in it."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from bot.cli._cases import stored_case
from bot.cli._options import check_device, option_option, parse_options
from bot.cli.exits import Exit
from bot.errors import InfrastructureError
from bot.reports import reproducer
from bot.reports.templating import seconds
from bot.runners import run_tool
from bot.settings import load_settings
from bot.toolchains import Ready, provision
from bot.toolchains.existing import existing_spec
from fuzzing import backends
from fuzzing.cases import Corpus, TestCase
from fuzzing.execute.shard import Shard
from fuzzing.oracles.profiles import DEFAULT, profile_named
from fuzzing.outcomes import Outcome

Event = dict[str, Any]


@click.command()
@click.argument("case")
@click.option("--backend", required=True, help="Compiler that fails the case.")
@click.option(
    "--corpus", type=click.Path(path_type=Path), help="Where CASE is looked up. [default: the service's]"
)
@click.option("--python", default=sys.executable, help="Interpreter that holds it. [default: Assay's own]")
@click.option("--device", help="Device to compile for. [default: the backend's first]")
@option_option
@click.option("--profile", default=DEFAULT, show_default=True, help="Tolerance profile of the oracle.")
@click.option("--runs", default=2000, show_default=True, type=click.IntRange(1), help="Runs to spend.")
@click.option(
    "--budget", default=600.0, show_default=True, type=click.FloatRange(1), help="Seconds to spend."
)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="Runs at once.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the reduced case and its reproducer. [default: reduced/ID in the data folder]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    case: str,
    backend: str,
    corpus: Path | None,
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

    CASE is the folder of a case, or the beginning of its id in the corpus. Whatever is tried counts only if
    it fails with the same signature; other bugs met on the way are kept as cases of their own. What was
    learnt is remembered: a reduction that was stopped goes on where it was. Exit code 1, since a compiler is
    at fault; 2 if the case does not fail.
    """
    profile_named(profile)
    options = parse_options(given)
    settled = backends.get(backend).settle(options)
    if device is not None:
        check_device(backend, device)
    toolchain = provision(existing_spec(backend, python), Path(), lambda _line: None)
    with stored_case(case, corpus) as (store, found):
        folder = (out or load_settings().data_dir / "reduced" / found.id[:16]).absolute()
        kept = Corpus(folder / "corpus")
        kept.add(store.get(found.id))
        shard = Shard(
            corpus=str(kept.root),
            cases=(found.id,),
            backend=backend,
            toolchain=toolchain.digest,
            python=toolchain.python,
            device=device or backends.get(backend).devices[0],
            options={name: value for name, value in settled.items() if name in options},
            profile=profile,
            workers=workers,
        )
        ended = _reduce(shard, runs, budget, folder / f"{toolchain.digest[:16]}.journal")
    told = _written(ended, kept, toolchain, folder)
    if as_json:
        click.echo(json.dumps(told))
    else:
        _show(found, told)
    return Exit.FOUND


def _reduce(shard: Shard, runs: int, budget: float, journal: Path) -> Event:
    """Runs the reduction; its last event, with the others that were met."""
    ended: Event = {"others": []}
    with tempfile.TemporaryDirectory(prefix="assay-reduce-") as scratch:
        file = Path(scratch) / "shard.json"
        file.write_text(json.dumps(shard.to_json()), encoding="utf-8")
        with Console(stderr=True).status("reducing") as status:

            def take(event: Event) -> None:
                kind = event.pop("event", "")
                if kind == "step":
                    status.update(f"reducing: size {_size(event['size'])} after {event['run']} runs")
                elif kind == "other":
                    ended["others"].append(event["id"])
                elif kind == "end":
                    ended.update(event)

            arguments = [str(file), "--runs", str(runs), "--seconds", str(budget), "--journal", str(journal)]
            run_tool("fuzzing.reduce", arguments, take)
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


def _show(found: TestCase, told: Event) -> None:
    console = Console(soft_wrap=True, highlight=False)
    outcome = Outcome.from_json(told["outcome"])
    console.print(f"[red]{outcome.verdict.value}[/] on {outcome.backend}: {escape(outcome.summary)}")
    for word, before, after in zip(told["words"], told["before"], told["after"], strict=False):
        console.print(f"  {word:12} {before:g} → {after:g}")
    how = "nothing of it can be left out" if told["minimal"] else "not to the end: the budget was spent"
    known = f", {told['replayed']} known from before" if told["replayed"] else ""
    console.print(f"  {told['runs']} runs{known}, {seconds(told['seconds'])}; {how}")
    if not told["confirmed"]:
        console.print(
            "  [yellow]the smallest one did not fail in a fresh process; the case is left as it was[/]"
        )
    console.print(f"\ncase        {told['case']}")
    if told["reproducer"]:
        console.print(f"reproducer  {told['reproducer']}")
    if told["others"]:
        console.print(f"other bugs met on the way: {', '.join(other[:16] for other in told['others'])}")
    if told["id"] == found.id:
        console.print("it is as small as it gets already")
