"""The table of `assay coverage --attributes`: the values of ONNX's attributes that cases exercise."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from bot.cli.common.console import stdout
from bot.cli.common.progress import StatusLine
from bot.errors import InfrastructureError
from bot.runners import run_tool
from bot.terminal import echo


def show(corpora: tuple[Path, ...], backend: str, as_json: bool) -> None:
    """Measures and prints the table, or one JSON object with a row for each value class."""
    cells: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    with StatusLine() as line:
        line.show(f"running cases on {backend}")
        words = ["--backend", backend, "--", *(str(path.absolute()) for path in corpora)]
        run_tool(
            "fuzzing.coverage.attributes",
            words,
            lambda event: (cells if event.pop("event", "") == "cell" else ends).append(event),
        )
    if len(ends) != 1:
        raise InfrastructureError("the measurement stopped early; see its log above")
    if as_json:
        echo(json.dumps(ends[0] | {"cells": cells}))
    else:
        _print(cells, ends[0])


def _print(cells: list[dict[str, Any]], end: dict[str, Any]) -> None:
    """Each operator with the value classes that no case exercises, then counts."""
    missing: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        if cell["status"] != "exercised":
            missing[cell["operator"]][cell["status"]].append(f"{cell['attribute']} {cell['class']}")
    columns = [status for status in end["counts"] if status != "exercised"]
    table = Table("operator", *columns)
    for operator, found in sorted(missing.items()):
        table.add_row(operator, *(escape(", ".join(found.get(status, ()))) for status in columns))
    screen = stdout()
    screen.print(table)
    counts = ", ".join(f"{count} {status}" for status, count in end["counts"].items())
    screen.print(f"{len(cells)} value classes of attributes on {escape(end['backend'])}: {counts}")
