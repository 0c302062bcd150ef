"""Consoles and tables of commands."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook
from rich.markup import escape
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table

from bot.terminal import replace_controls

_UNBROKEN_WIDTH = 500  # columns if stdout is not a terminal: each row is one line


class _WithoutControls:
    """What another object renders, without control characters but those of the console."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(replace_controls(segment.text), segment.style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._renderable)


class _RemovesControls(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Wraps each one."""
        return [_WithoutControls(one) for one in renderables]


class _CommandConsole(Console):
    """A console that prints no control characters of others, and ignores a closed pipe (`assay … | head`).

    The command finishes, and its exit code counts.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.push_render_hook(_RemovesControls())

    def on_broken_pipe(self) -> None:
        """Discards further output."""
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, self.file.fileno())
        os.close(devnull)


def stdout() -> Console:
    """Standard output, as wide as the terminal; rows are not wrapped elsewhere."""
    return _CommandConsole(
        soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else _UNBROKEN_WIDTH
    )


def stderr(*, soft_wrap: bool = False) -> Console:
    """Standard error, for progress."""
    return _CommandConsole(stderr=True, highlight=False, soft_wrap=soft_wrap)


def metrics_table(metrics: Mapping[str, Mapping[str, Any]]) -> Table:
    """A table of the metrics of `fuzzing.coverage`, in all readings."""
    table = Table("metric", "paper", "released", "graph fuzzing", "what it counts", box=None, pad_edge=False)
    for column in table.columns[1:4]:
        column.justify = "right"
    for name, metric in metrics.items():
        readings = [format_metric(metric.get(one)) for one in ("paper", "released", "graph_fuzzing")]
        table.add_row(name, *readings, escape(metric["meaning"]))
    return table


def format_metric(reading: Mapping[str, Any] | None) -> str:
    """A metric's value for people: `98.27 %`, `618.4`, "" for a reading that does not have it.

    Never rounded to 0 or 100 %.
    """
    if reading is None:
        return ""
    value = float(reading["value"])
    if reading["unit"] != "share":
        return f"{value:,.2f}"
    percent = 100 * value
    digits = 2 if percent >= 0.1 or not percent else 2 - math.floor(math.log10(percent))
    rounded = round(percent, digits)
    return f"{min(rounded, 99.99) if value < 1 else rounded:.{digits}f} %"
