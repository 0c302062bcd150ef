"""Generate a corpus of valid models."""

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
from bot.terminal import echo
from fuzzing import backends

#: Options without a value, passed through.
_FLAGS = ("mixed", "patterns", "initializers", "concatenate_outputs", "zero_size", "scalars", "no_metrics")


@click.command()
@click.option("--generator", default="isra", show_default=True, help="Generator to use.")
@click.option("--count", required=True, type=click.IntRange(1), help="Number of models.")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Corpus folder; models that it already holds are not generated again.",
)
@click.option(
    "--nodes", default="1:10", show_default=True, metavar="A:B", help="Minimum and maximum number of nodes."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Random seed.")
@click.option(
    "--operators",
    default="all",
    show_default=True,
    metavar="NAMES",
    help="isra (65), all, or a comma-separated list.",
)
@click.option("--opset", type=int, metavar="O", help="Opset of the models. [default: 21]")
@click.option(
    "--dtypes",
    default="float32",
    show_default=True,
    metavar="NAMES",
    help="Element types: all, or a comma-separated list.",
)
@click.option("--mixed", is_flag=True, help="Allow mixed element types, as after Cast.")
@click.option("--backend", help="Leave out operators that this compiler does not support.")
@click.option(
    "--picking-rate", type=click.FloatRange(0, 1), help="Probability of reusing an edge. [default: 0.97]"
)
@click.option("--ranks", metavar="A:B", help="Ranks of new tensors. [default: 1:5]")
@click.option("--dims", metavar="A:B", help="Dimensions of new tensors. [default: 1:5]")
@click.option("--patterns", is_flag=True, help="Include multi-operator patterns, such as attention.")
@click.option("--initializers", is_flag=True, help="Store data as initializers instead of inputs.")
@click.option(
    "--concatenate-outputs", is_flag=True, help="Concatenate outputs into one for each element type."
)
@click.option("--zero-size", is_flag=True, help="Allow dimensions of 0.")
@click.option("--scalars", is_flag=True, help="Allow tensors of rank 0.")
@click.option("--no-metrics", is_flag=True, help="Do not measure coverage.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Number of processes.")
@json_option
def command(out: Path, backend: str | None, as_json: bool, **given: Any) -> None:
    """Generate a corpus of models that satisfy the specifications of their operators.

    The same seed gives the same cases for any number of processes; an interrupted run resumes when repeated.
    `assay run --cases DIR` runs the models.
    """
    if backend is not None and backends.get(backend).reference:
        raise UsageError(
            f"--backend {backend}: a reference, not a compiler; choose from {', '.join(backends.compilers())}"
        )
    result = _run_generator(_words(out, given) + (["--backend", backend] if backend else []))
    if as_json:
        echo(json.dumps(result | {"out": str(out)}))
    else:
        _show(result, out)


def _words(out: Path, given: dict[str, Any]) -> list[str]:
    """The arguments of `python -m fuzzing.generate`."""
    words = ["--out", str(out.absolute())]
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if name in _FLAGS:
            words += [option] * bool(value)
        elif value is not None:
            words += [f"{option}={value}"]
    return words


def _run_generator(words: list[str]) -> dict[str, Any]:
    """Runs the generator; returns its final event."""
    ends: list[dict[str, Any]] = []

    def take(event: dict[str, Any]) -> None:
        if event.pop("event", "") == "end":
            ends.append(event)

    run_tool("fuzzing.generate", words, take, echo=sys.stderr.buffer)
    if len(ends) != 1:
        raise InfrastructureError("the generator stopped early; see its log above")
    return ends[0]


def _show(result: dict[str, Any], out: Path) -> None:
    screen = stdout()
    screen.print(
        f"[bold]{pluralize(result['models'], 'model')}[/] of {pluralize(result['nodes'], 'node')} by "
        f"{escape(result['generator'])}, {result['new']:,} of them new in {escape(str(out))}"
    )
    screen.print(
        f"  {result['models_per_second']:,.0f} models/s and {result['nodes_per_second']:,.0f} nodes/s; "
        f"{result['nodes_per_making_second']:,.0f} nodes/s of generating and writing alone, "
        f"{result['nodes_per_cpu_second']:,.0f} per CPU second"
    )
    left_out = result.get("left_out") or {}
    if left_out:
        listed = ", ".join(f"{name} ({', '.join(dtypes)})" for name, dtypes in left_out.items())
        screen.print(escape(f"  left out as unsupported: {listed}"))
    measured = result["measured"]
    if measured:
        screen.print(f"  measured against the operator set {escape(measured['operators'])}:")
        screen.print(metrics_table(measured["metrics"]))
    screen.print(escape(f"run them with: assay run --backend BACKEND --cases {out}"))
