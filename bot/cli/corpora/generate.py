"""Generate models that every specification of their operators admits, as a corpus of cases."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from bot.cli.common.console import metrics_table, stdout
from bot.cli.common.options import json_option
from bot.errors import InfrastructureError, UsageError
from bot.reports.templates import pluralize
from bot.runners import run_tool
from fuzzing import backends

#: Options that are handed on as they are; those without a value under None.
_FLAGS = ("mixed", "patterns", "initializers", "joined", "zero_size", "scalars", "no_metrics")


@click.command()
@click.option("--generator", default="isra", show_default=True, help="What makes them.")
@click.option("--count", required=True, type=click.IntRange(1), help="How many models.")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder that keeps them, as cases; what it holds already is not made twice.",
)
@click.option("--nodes", default="1:10", show_default=True, metavar="A:B", help="Least and most nodes.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of all random choices.")
@click.option(
    "--operators", default="all", show_default=True, metavar="NAMES", help="isra (65), all, or with commas."
)
@click.option("--opset", type=int, metavar="O", help="Of the models. [default: 21]")
@click.option(
    "--dtypes",
    default="float32",
    show_default=True,
    metavar="NAMES",
    help="Of the data; all, or with commas.",
)
@click.option("--mixed", is_flag=True, help="Let nodes take edges of other element types too, as Cast gives.")
@click.option("--backend", help="Leave out what this compiler says that it does not support.")
@click.option(
    "--picking-rate", type=click.FloatRange(0, 1), help="How often an edge is reused. [default: 0.97]"
)
@click.option("--ranks", metavar="A:B", help="Of new tensors. [default: 1:5]")
@click.option("--dims", metavar="A:B", help="Lengths of new tensors. [default: 1:5]")
@click.option("--patterns", is_flag=True, help="Use patterns of several operators too, such as attention.")
@click.option("--initializers", is_flag=True, help="Put the data into the models; else they are inputs.")
@click.option(
    "--concatenate-outputs", is_flag=True, help="End each model in one output for each element type."
)
@click.option("--zero-size", is_flag=True, help="Lengths may be 0 too.")
@click.option("--scalars", is_flag=True, help="Ranks may be 0 too.")
@click.option("--no-metrics", is_flag=True, help="Do not count what the models cover.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Processes that share it.")
@json_option
def command(out: Path, backend: str | None, as_json: bool, **given: Any) -> None:
    """Generate models that every specification of their operators admits.

    The same seed gives the same cases, however many processes share the work; a run that was interrupted is
    completed by running it again. `assay run --cases DIR` runs what was generated.
    """
    if backend is not None and backends.get(backend).reference:
        raise UsageError(f"--backend {backend}: is a reference; there are {', '.join(backends.compilers())}")
    result = _run_generator(_words(out, given) + (["--backend", backend] if backend else []))
    if as_json:
        click.echo(json.dumps(result | {"out": str(out)}))
    else:
        _show(result, out)


def _words(out: Path, given: dict[str, Any]) -> list[str]:
    """The options as the data plane's program takes them."""
    words = ["--out", str(out.absolute())]
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if name in _FLAGS:
            words += [option] * bool(value)
        elif value is not None:
            words += [f"{option}={value}"]
    return words


def _run_generator(words: list[str]) -> dict[str, Any]:
    """What the program told at its end."""
    ends: list[dict[str, Any]] = []

    def take(event: dict[str, Any]) -> None:
        if event.pop("event", "") == "end":
            ends.append(event)

    run_tool("fuzzing.generate", words, take, echo=sys.stderr.buffer)
    if len(ends) != 1:
        raise InfrastructureError("the generating ended without its figures; see its log above")
    return ends[0]


def _show(result: dict[str, Any], out: Path) -> None:
    screen = stdout()
    screen.print(
        f"[bold]{pluralize(result['models'], 'model')}[/] of {pluralize(result['nodes'], 'node')} by "
        f"{escape(result['generator'])}, {result['new']:,} of them new in {escape(str(out))}"
    )
    screen.print(
        f"  {result['models_per_second']:,.0f} models and {result['nodes_per_second']:,.0f} nodes a second; "
        f"{result['nodes_per_making_second']:,.0f} nodes a second of making and writing alone, "
        f"{result['nodes_per_cpu_second']:,.0f} a CPU second of it"
    )
    left_out = result.get("left_out") or {}
    if left_out:
        listed = ", ".join(f"{name} ({', '.join(dtypes)})" for name, dtypes in left_out.items())
        screen.print(escape(f"  left out, for want of support: {listed}"))
    measured = result["measured"]
    if measured:
        screen.print(f"  measured against the operator set {escape(measured['operators'])}:")
        screen.print(metrics_table(measured["metrics"]))
    screen.print(escape(f"run them with: assay run --backend BACKEND --cases {out}"))
