"""Tell where in a compiler a failing case goes wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
    split_names,
)
from bot.cli._shards import Event, installed, run_on, shard_of
from bot.cli._tables import stdout
from bot.cli._watch import Line
from bot.cli.exits import Exit
from bot.errors import InfrastructureError
from bot.reports.templating import seconds
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome


@click.command()
@click.argument("case")
@click.option("--backend", required=True, help="Compiler that fails the case.")
@click.option(
    "--way",
    "ways",
    multiple=True,
    help="Use this way only, such as parts; several with commas, or repeated. "
    "[default: all that the backend allows]",
)
@corpus_option
@data_set_option
@python_option
@configuration_options
@click.option("--runs", default=500, show_default=True, type=click.IntRange(1), help="Runs to spend.")
@click.option(
    "--budget", default=300.0, show_default=True, type=click.FloatRange(1), help="Seconds to spend."
)
@json_option
def command(
    case: str,
    backend: str,
    ways: tuple[str, ...],
    corpus: Path | None,
    data_set: int | None,
    python: str,
    device: str | None,
    given: tuple[str, ...],
    profile: str,
    runs: int,
    budget: float,
    as_json: bool,
) -> Exit:
    """Tell where in a compiler a failing case goes wrong.

    CASE is an ONNX model, the folder of a case, or the beginning of its id in the corpus; reduce it first,
    so that there is one bug in it. What is told are facts, each with how it was got: the rung of the
    ablation ladder, the passes that must be left out for the case to pass, the pass that raises, the stage
    after which the result is wrong, the converter, the first part of the graph that differs. Exit code 1,
    since a compiler is at fault; 2 if the case does not fail.
    """
    how = configured(backend, device, given, profile)
    toolchain = installed(how.name, python)
    with stored_case(case, corpus, data_set) as (store, found):
        shard = shard_of(how, toolchain, store.root, [found.id], workers=1)
        named = [text for way in split_names(ways) for text in ("--way", way)]
        told = _localise(shard, ["--runs", str(runs), "--seconds", str(budget), *named])
    if as_json:
        click.echo(json.dumps(told))
    else:
        _show(told)
    return Exit.FOUND


def _localise(shard: Shard, arguments: Sequence[str]) -> Event:
    """Runs the localisation; its last event, with the facts themselves."""
    facts: list[Event] = []
    ended: Event = {}
    with Line() as line:
        line.show("running the case")

        def take(event: Event) -> None:
            kind = event.pop("event", "")
            if kind == "fact":
                facts.append(event)
                line.show(f"localising: {event['what']} told after {event['runs']} runs")
            elif kind == "end":
                ended.update(event)

        run_on(shard, "fuzzing.localise", arguments, take)
    if "id" not in ended:
        raise InfrastructureError("the localisation stopped before its end; begin it again")
    return ended | {"facts": facts}


def _show(told: Event) -> None:
    console = stdout()
    outcome = Outcome.from_json(told["outcome"])
    console.print(f"[red]{outcome.verdict.value}[/] on {outcome.backend}: {escape(outcome.summary)}")
    for fact in told["facts"]:
        found = ", ".join(fact["found"])
        doubt = "; not so in a process of its own" if fact["confirmed"] is False else ""
        console.print(f"  {fact['what']:10} [bold]{escape(found) or '–'}[/]")
        console.print(f"  {'':10} {escape(fact['how'])}{doubt}")
    if not told["facts"]:
        console.print(f"  {outcome.backend} cannot be taken apart, and the case is no graph of several nodes")
    console.print(f"  {told['runs']} runs, {seconds(told['seconds'])}")
