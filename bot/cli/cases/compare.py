"""Run one case on several compilers and show which one disagrees."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from bot.cli.common.case_lookup import cases_to_json, find_cases
from bot.cli.common.console import stderr, stdout
from bot.cli.common.execution import compare_backends
from bot.cli.common.options import (
    compatible_backends,
    corpus_option,
    data_set_option,
    device_option,
    json_option,
    python_option,
)
from bot.cli.exits import Exit
from bot.config.names import suggestion
from bot.errors import UsageError
from bot.terminal import echo
from fuzzing import backends
from fuzzing.cases import Corpus, TestCase
from fuzzing.outcomes import Verdict

_STYLE = {"pass": "green", "unsupported": "yellow", "invalid": "yellow", "": "dim"}


@click.command()
@click.argument("case")
@corpus_option
@data_set_option
@click.option(
    "--backend",
    "names",
    multiple=True,
    help="Compiler to use; may be repeated. [default: all that take the case]",
)
@python_option
@device_option
@click.option(
    "--option",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="Add a row for each backend with this option; may be repeated.",
)
@json_option
def command(
    case: str,
    corpus: Path | None,
    data_set: int | None,
    names: tuple[str, ...],
    python: str,
    device: str | None,
    given: tuple[str, ...],
    as_json: bool,
) -> Exit:
    """Run one case on several compilers and show which one disagrees.

    CASE is an ONNX model, the folder of a case, or the beginning of its id in the corpus. A model with
    several data sets runs each; with --json they are a list of "cases". Shows how far the outputs of each
    compiler are from the library's and from a float64 run, and which agree. Exit code 1 if one disagrees or
    fails.
    """
    with (
        find_cases(case, corpus, data_set) as (store, found),
        stderr().status("running the case on each compiler"),
    ):
        compatible = [
            backends.get(name) for name in compatible_backends(found[0].program.kind, names, device)
        ]
        contenders = list(_contenders(compatible, given, python, device))
        result = [_compare(store, one, contenders) for one in found]
    for one in result:
        if not names:  # hide compilers that are neither requested nor installed
            one["rows"] = [row for row in one["rows"] if row["verdict"]]
        if not one["rows"]:
            raise UsageError(f"{python} has no compiler that takes it; see `assay doctor`")
        one["outlier"] = next((row["label"] for row in one["rows"] if row["outlier"]), None)
    if as_json:
        echo(cases_to_json(result))
    else:
        for place, (origin, one) in enumerate(zip(found, result, strict=True)):
            if place:
                echo()
            _print(origin, one)
    return Exit.FOUND if any(map(_has_failure, result)) else Exit.OK


def _compare(store: Corpus, case: TestCase, contenders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The result of each compiler; raises UsageError if the case's own library fails it."""
    result = compare_backends(store.root, case.id, contenders)
    if result["invalid"]:
        raise UsageError(f"{case.id[:16]} cannot be compared: its own library fails it: {result['invalid']}")
    return {"test": case.provenance.test} | result


def _has_failure(result: Mapping[str, Any]) -> bool:
    """Whether a compiler fails or disagrees."""
    failed = any(row["verdict"] and Verdict(row["verdict"]).is_failure for row in result["rows"])
    return bool(failed or result["outlier"])


def _contenders(
    compatible: list[type[backends.Backend]], given: Iterable[str], python: str, device: str | None
) -> Iterable[dict[str, Any]]:
    """One for each backend and combination of option values."""
    values: dict[str, list[str]] = {}
    for text in given:
        name, equals, value = text.partition("=")
        known = sorted({option for one in compatible for option in one.options})
        if not equals:
            raise UsageError(f"--option {text}: write NAME=VALUE, such as optimization=basic")
        if name not in known:
            raise UsageError(f"--option {name}: no selected backend has it; {suggestion(name, known)}")
        values.setdefault(name, []).append(value)
    for one in compatible:
        own = [[(name, value) for value in values[name]] for name in one.options if name in values]
        for options in itertools.product(*own):
            one.resolve_options(dict(options))
            yield {
                "backend": one.name,
                "options": dict(options),
                "device": device or one.devices[0],
                "python": python,
            }


def _print(case: TestCase, result: dict[str, Any]) -> None:
    console = stdout()
    origin = case.provenance
    console.print(
        f"{escape(origin.test or 'case')} ({escape(origin.operator or 'no single operator')}; "
        f"{escape(origin.library)} {escape(origin.version)})"
    )
    console.print(f"{case.id}\n")
    console.print(_table(result["rows"]))
    if result["outlier"]:
        console.print(
            f"\n[bold]{escape(result['outlier'])}[/] disagrees with the library and with the others"
        )


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("compiler", "verdict", "agrees", "to library", "to float64", "time", "result"):
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
    """What a row agrees with: group 0 is the library."""
    if row["outlier"]:
        return "with none"
    if row["group"] is None:
        return "–"
    return "with library" if row["group"] == 0 else f"in group {row['group']}"


def _distance(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
