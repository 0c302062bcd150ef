"""Run one stored case on several compilers and show who stands alone."""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bot.cli._cases import stored_case
from bot.cli._options import check_device
from bot.cli.exits import Exit
from bot.config.names import meant
from bot.errors import InfrastructureError, UsageError
from bot.runners import run_tool
from fuzzing import backends
from fuzzing.cases import TestCase
from fuzzing.outcomes import Verdict

_WIDE = 500  # columns where nobody sees a screen: there, a row is a line
_STYLE = {"pass": "green", "unsupported": "yellow", "invalid": "yellow", "": "dim"}


@click.command()
@click.argument("case")
@click.option(
    "--corpus", type=click.Path(path_type=Path), help="Where CASE is looked up. [default: the service's]"
)
@click.option(
    "--backend", "names", multiple=True, help="Compiler to use; may be repeated. [default: all that take it]"
)
@click.option("--python", default=sys.executable, help="Interpreter that holds them. [default: Assay's own]")
@click.option("--device", help="Device to compile for. [default: each backend's first]")
@click.option(
    "--option",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="Add a row for each backend that has the option; may be repeated, also for one name.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    case: str,
    corpus: Path | None,
    names: tuple[str, ...],
    python: str,
    device: str | None,
    given: tuple[str, ...],
    as_json: bool,
) -> Exit:
    """Run one stored case on several compilers and show who stands alone.

    CASE is the folder of a case, or the beginning of its id in the corpus. Says of each compiler how far
    its outputs are from the library's own and from a float64 run, and which agree. Exit code 1 if one
    stands alone or is at fault.
    """
    for name in names:
        if device is not None:
            check_device(name, device)
    with (
        stored_case(case, corpus) as (store, found),
        Console(stderr=True).status("running it on every compiler"),
    ):
        wanted = list(_contenders(_suitable(found, names, device), given, python, device))
        told = _compare({"corpus": str(store.root.resolve()), "case": found.id, "backends": wanted})
    if told["invalid"]:
        raise UsageError(
            f"{found.id[:16]} cannot be compared, as its own library fails it: {told['invalid']}"
        )
    if not names:  # who was not asked for and is not here need not be told of
        told["rows"] = [row for row in told["rows"] if row["verdict"]]
    if not told["rows"]:
        raise UsageError(f"{python} holds no compiler that takes it; see `assay doctor`")
    told["lonely"] = next((row["label"] for row in told["rows"] if row["lonely"]), None)
    if as_json:
        click.echo(json.dumps({"test": found.provenance.test} | told))
    else:
        _print(found, told)
    accused = any(row["verdict"] and Verdict(row["verdict"]).accuses for row in told["rows"])
    return Exit.FOUND if accused or told["lonely"] else Exit.OK


def _suitable(case: TestCase, names: tuple[str, ...], device: str | None) -> list[type[backends.Backend]]:
    kind = case.program.kind
    for name in names:
        if kind not in backends.get(name).kinds:
            raise UsageError(f"--backend {name}: it takes {', '.join(backends.get(name).kinds)}, not {kind}")
    found = [backends.get(name) for name in names or backends.compilers()]
    return [one for one in found if kind in one.kinds and (device is None or device in one.devices)]


def _contenders(
    suitable: list[type[backends.Backend]], given: Iterable[str], python: str, device: str | None
) -> Iterable[dict[str, Any]]:
    """One for each backend and each combination of the values given for its options."""
    values: dict[str, list[str]] = {}
    for text in given:
        name, equals, value = text.partition("=")
        known = sorted({option for one in suitable for option in one.options})
        if not equals:
            raise UsageError(f"--option {text}: write NAME=VALUE, such as optimization=basic")
        if name not in known:
            raise UsageError(f"--option {name}: no backend here has it; {meant(name, known)}")
        values.setdefault(name, []).append(value)
    for one in suitable:
        own = [[(name, value) for value in values[name]] for name in one.options if name in values]
        for options in itertools.product(*own):
            one.settle(dict(options))
            yield {
                "backend": one.name,
                "options": dict(options),
                "device": device or one.devices[0],
                "python": python,
            }


def _compare(spec: dict[str, Any]) -> dict[str, Any]:
    answers: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="assay-compare-") as folder:
        file = Path(folder) / "spec.json"
        file.write_text(json.dumps(spec), encoding="utf-8")
        run_tool("fuzzing.execute.comparison", [str(file)], answers.append)
    if len(answers) != 1:
        raise InfrastructureError("the comparison ended without a table; see its log above")
    return answers[0]


def _print(case: TestCase, told: dict[str, Any]) -> None:
    console = Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else _WIDE)
    origin = case.provenance
    console.print(
        f"{escape(origin.test or 'case')} ({escape(origin.operator or 'no single operator')}; "
        f"{escape(origin.library)} {escape(origin.version)})"
    )
    console.print(f"{case.id}\n")
    console.print(_table(told["rows"]))
    if told["lonely"]:
        console.print(
            f"\n[bold]{escape(told['lonely'])}[/] stands alone: the others agree, with the library too"
        )


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("compiler", "verdict", "agrees", "to the library", "to float64", "time", "what it did"):
        table.add_column(heading, justify="right" if heading.startswith("t") else "left")
    for row in rows:
        verdict = row["verdict"]
        table.add_row(
            escape(row["label"]),
            f"[{_STYLE.get(verdict, 'red')}]{verdict or 'not run'}[/]",
            _agreement(row),
            _distance(row["to_reference"]),
            _distance(row["to_float64"]),
            f"{row['seconds']:.2f} s",
            escape(row["summary"]),
        )
    return table


def _agreement(row: dict[str, Any]) -> str:
    """Whom a row agrees with: group 0 is the library's own."""
    if row["lonely"]:
        return "with nobody"
    if row["group"] is None:
        return "–"
    return "with the library" if row["group"] == 0 else f"in group {row['group']}"


def _distance(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
