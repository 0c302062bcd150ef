"""List the equivalence rules of a library, and the APIs of the installed library they apply to."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from bot.cli.common.console import stdout
from bot.cli.common.options import json_option
from bot.runners import run_tool
from bot.terminal import echo


@click.command()
@click.argument("rules", nargs=-1, metavar="[RULE…]")
@click.option(
    "--library",
    type=click.Choice(("torch", "keras")),
    default="torch",
    show_default=True,
    help="Library whose rules are listed: of the source eagle, or of eagle-keras.",
)
@click.option("--apis", is_flag=True, help="List the APIs of each rule too.")
@json_option
def command(rules: tuple[str, ...], library: str, apis: bool, as_json: bool) -> None:
    """List the equivalence rules of the sources eagle and eagle-keras.

    A number is that of EAGLE's table; rules without one go beyond it. `assay run --source eagle --rules
    NAMES` runs some of them.
    """
    found: list[dict[str, Any]] = []

    def take(event: dict[str, Any]) -> None:
        if event.pop("event", "") == "rule":
            found.append(event)

    run_tool("fuzzing.equivalence", ["--rules", ",".join(rules) or "all", "--library", library], take)
    if as_json:
        echo(json.dumps({"rules": found}))
        return
    table = Table("rule", "EAGLE", "APIs", "equality", box=None, pad_edge=False)
    for one in found:
        number = str(one["number"] or "")
        table.add_row(one["name"], number, str(one["count"]), escape(one["equation"]))
    stdout().print(table)
    if apis:
        for one in found:
            stdout().print(f"\n[bold]{one['name']}[/]: {escape(', '.join(one['apis']))}")
