"""Tell where in a compiler a failing case goes wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
from rich.markup import escape

from bot.cli.common.case_lookup import find_case
from bot.cli.common.console import stdout
from bot.cli.common.execution import Event, build_shard, find_toolchain, run_tool_on_shard
from bot.cli.common.options import (
    configuration_options,
    configure_backend,
    corpus_option,
    data_set_option,
    json_option,
    python_option,
    split_names,
)
from bot.cli.common.progress import StatusLine
from bot.cli.exits import Exit
from bot.errors import InfrastructureError
from bot.reports.templates import seconds
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome


@click.command()
@click.argument("case")
@click.option("--backend", required=True, help="Compiler that fails the case.")
@click.option(
    "--method",
    "methods",
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
    methods: tuple[str, ...],
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
    ablation, the passes that must be left out for the case to pass, the pass that raises, the stage
    after which the result is wrong, the converter, the first part of the graph that differs. Exit code 1,
    since a compiler is at fault; 2 if the case does not fail.
    """
    configuration = configure_backend(backend, device, given, profile)
    toolchain = find_toolchain(configuration.name, python)
    with find_case(case, corpus, data_set) as (store, found):
        shard = build_shard(configuration, toolchain, store.root, [found.id], workers=1)
        named = [text for method in split_names(methods) for text in ("--method", method)]
        result = _localize(shard, ["--runs", str(runs), "--seconds", str(budget), *named])
    if as_json:
        click.echo(json.dumps(result))
    else:
        _show(result)
    return Exit.FOUND


def _localize(shard: Shard, arguments: Sequence[str]) -> Event:
    """Runs the localization; its last event, with the facts themselves."""
    facts: list[Event] = []
    ended: Event = {}
    with StatusLine() as line:
        line.show("running the case")

        def take(event: Event) -> None:
            kind = event.pop("event", "")
            if kind == "fact":
                facts.append(event)
                line.show(f"localizing: {event['what']} told after {event['runs']} runs")
            elif kind == "end":
                ended.update(event)

        run_tool_on_shard(shard, "fuzzing.localize", arguments, take)
    if "id" not in ended:
        raise InfrastructureError("the localization stopped before its end; begin it again")
    return ended | {"facts": facts}


def _show(result: Event) -> None:
    console = stdout()
    outcome = Outcome.from_json(result["outcome"])
    console.print(f"[red]{outcome.verdict.value}[/] on {outcome.backend}: {escape(outcome.summary)}")
    for fact in result["facts"]:
        found = ", ".join(fact["found"])
        doubt = "; not so in a process of its own" if fact["confirmed"] is False else ""
        console.print(f"  {fact['what']:10} [bold]{escape(found) or '–'}[/]")
        console.print(f"  {'':10} {escape(fact['how'])}{doubt}")
    if not result["facts"]:
        console.print(f"  {outcome.backend} cannot be taken apart, and the case is no graph of several nodes")
    console.print(f"  {result['runs']} runs, {seconds(result['seconds'])}")
