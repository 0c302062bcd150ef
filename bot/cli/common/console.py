"""Where commands print what they found, and what they print in columns."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_UNBROKEN_WIDTH = 500  # columns where nobody sees a screen: there, a row is a line


class _PipeSafeConsole(Console):
    """A console whose reader may leave (`assay … | head`).

    What is still said goes nowhere then: the command does its work, and its exit code tells what came of it.
    """

    def on_broken_pipe(self) -> None:
        """Lets the rest be lost."""
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, self.file.fileno())
        os.close(devnull)


def stdout() -> Console:
    """Standard output, as wide as the terminal; elsewhere no row is broken."""
    return _PipeSafeConsole(
        soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else _UNBROKEN_WIDTH
    )


def stderr() -> Console:
    """Standard error, for what is said while work goes on."""
    return _PipeSafeConsole(stderr=True, highlight=False)


def metrics_table(metrics: Mapping[str, Mapping[str, Any]]) -> Table:
    """What `fuzzing.coverage` told of its metrics: both readings of each, and what it counts."""
    table = Table("metric", "paper", "released", "what it counts", box=None, pad_edge=False)
    for column in table.columns[1:3]:
        column.justify = "right"
    for name, metric in metrics.items():
        table.add_row(
            name, format_metric(metric["paper"]), format_metric(metric["released"]), escape(metric["meaning"])
        )
    return table


def format_metric(reading: Mapping[str, Any]) -> str:
    """A metric's value for people: `98.27 %`, `618.4`; never 0 or 100 % for what is not quite."""
    value = float(reading["value"])
    if reading["unit"] != "share":
        return f"{value:,.2f}"
    percent = 100 * value
    digits = 2 if percent >= 0.1 or not percent else 2 - math.floor(math.log10(percent))
    rounded = round(percent, digits)
    return f"{min(rounded, 99.99) if value < 1 else rounded:.{digits}f} %"
