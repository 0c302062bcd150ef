"""Find where in a compiler a failing case goes wrong."""

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
from bot.terminal import echo
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome


@click.command()
@click.argument("case")
@click.option("--backend", required=True, help="Compiler that fails the case.")
@click.option(
    "--method",
    "methods",
    multiple=True,
    help="Method to use, such as parts; comma-separated or repeated. [default: all supported]",
)
@corpus_option
@data_set_option
@python_option
@configuration_options
@click.option(
    "--runs", default=500, show_default=True, type=click.IntRange(1), help="Maximum number of runs."
)
@click.option(
    "--budget", default=300.0, show_default=True, type=click.FloatRange(1), help="Time limit in seconds."
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
    """Find where in a compiler a failing case goes wrong.

    CASE is an ONNX model, the folder of a case, or the beginning of its id in the corpus; reduce it first, so
    that it holds one bug. Prints facts and how each was found: the ablation level, the passes to disable for
    the case to pass, the pass that raises, the stage after which the result is wrong, the converter, the
    first part of the graph that differs. Exit code 1; 2 if the case does not fail.
    """
    configuration = configure_backend(backend, device, given, profile)
    toolchain = find_toolchain(configuration.name, python)
    with find_case(case, corpus, data_set) as (store, found):
        shard = build_shard(configuration, toolchain, store.root, [found.id], workers=1)
        named = [text for method in split_names(methods) for text in ("--method", method)]
        result = _localize(shard, ["--runs", str(runs), "--seconds", str(budget), *named])
    if as_json:
        echo(json.dumps(result))
    else:
        _show(result)
    return Exit.FOUND


def _localize(shard: Shard, arguments: Sequence[str]) -> Event:
    """Runs the localization; returns its last event with the facts."""
    facts: list[Event] = []
    ended: Event = {}
    with StatusLine() as line:
        line.show("running the case")

        def take(event: Event) -> None:
            kind = event.pop("event", "")
            if kind == "fact":
                facts.append(event)
                line.show(f"localizing: {event['what']} found after {event['runs']} runs")
            elif kind == "end":
                ended.update(event)

        run_tool_on_shard(shard, "fuzzing.localize", arguments, take)
    if "id" not in ended:
        raise InfrastructureError("the localization stopped early; run it again")
    return ended | {"facts": facts}


def _show(result: Event) -> None:
    console = stdout()
    outcome = Outcome.from_json(result["outcome"])
    console.print(f"[red]{outcome.verdict.value}[/] on {outcome.backend}: {escape(outcome.summary)}")
    for fact in result["facts"]:
        found = ", ".join(fact["found"])
        caveat = "; not confirmed in a fresh process" if fact["confirmed"] is False else ""
        console.print(f"  {fact['what']:10} [bold]{escape(found) or '–'}[/]")
        console.print(f"  {'':10} {escape(fact['how'])}{caveat}")
    if not result["facts"]:
        console.print(f"  {outcome.backend} has no parts to disable, and the case has a single node")
    console.print(f"  {result['runs']} runs, {seconds(result['seconds'])}")
