"""Progress of a campaign, printed to stderr."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from bot.campaigns.progress import Progress as Step
from bot.cli.common.console import stderr
from bot.store.models import CampaignState

#: Seconds between progress lines if stderr is not a terminal.
LINE_INTERVAL_S = 5.0

#: Minimum columns for a bar beside name, count and time.
_MIN_WIDTH_FOR_BAR = 72

_STEP_NAMES = {
    "planning": "collecting cases",
    "provisioning": "installing toolchains",
    "running": "running cases at head",
    "confirming": "repeating failures in fresh processes",
    "comparing": "running cases at base",
    "reducing": "reducing failing cases",
    "reporting": "writing reports",
}


class ProgressBars:
    """A bar for each step on a terminal, periodic lines elsewhere."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or stderr()
        narrow = self._console.width < _MIN_WIDTH_FOR_BAR
        self._bars = Progress(
            TextColumn("{task.description}"),
            *([] if narrow else [BarColumn()]),
            TextColumn("{task.fields[count]}", justify="right"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self._current = ""
        self._last_shown = ("", "", 0.0)
        self._started = time.monotonic()

    def __enter__(self) -> ProgressBars:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._finish_tasks()
        self._bars.stop()

    def __call__(self, step: Step) -> None:
        """Shows the progress of a step."""
        name = _STEP_NAMES.get(step.state.value, step.state.value)
        if step.lasting:
            self._print(step.note)
        elif self._console.is_terminal:
            self._update_bar(name, step)
        else:
            self._print_line(name, step)

    def note(self, note: str) -> None:
        """Takes what is done while toolchains are made, before there is a campaign."""
        self(Step(0, CampaignState.PROVISIONING, 0, 0, note))

    def _update_bar(self, name: str, step: Step) -> None:
        if name != self._current:
            self._finish_tasks()
            self._current = name
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=None, count="")
        self._bars.tasks[self._tasks[name]].stop_time = None  # a step may be interrupted by the next one
        count = f"{step.done:,}/{step.total:,}" if step.total else ""
        total = step.total or None
        self._bars.update(self._tasks[name], completed=step.done, total=total, count=count)

    def _finish_tasks(self) -> None:
        """Stops the bars of finished steps."""
        for task in self._bars.tasks:
            if task.total is None:
                self._bars.update(task.id, total=1, completed=1)
            self._bars.stop_task(task.id)

    def _print_line(self, name: str, step: Step) -> None:
        present = time.monotonic()
        last, note, at = self._last_shown
        ended = step.total and step.done == step.total and step.note != note
        if name == last and present - at < LINE_INTERVAL_S and not ended:
            return
        self._last_shown = (name, step.note, present)
        self._print(f"{name}: {step.note}".removesuffix(": "))

    def _print(self, text: str) -> None:
        seconds = time.monotonic() - self._started
        self._console.print(f"[{seconds:6.1f} s] {text}", highlight=False, markup=False, soft_wrap=True)


class StatusLine:
    """Status of commands without steps: one changing line on a terminal, periodic lines elsewhere."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or stderr()
        self._status = self._console.status("starting") if self._console.is_terminal else None
        self._started = time.monotonic()
        self._last_shown = -LINE_INTERVAL_S

    def __enter__(self) -> StatusLine:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, note: str) -> None:
        """Shows what is being done; may be called from any thread."""
        if self._status is not None:
            self._status.update(escape(note))
        elif time.monotonic() - self._last_shown >= LINE_INTERVAL_S:
            self._last_shown = time.monotonic()
            self.print_line(f"[{self._last_shown - self._started:6.1f} s] {note}")

    def note(self, event: Mapping[str, Any]) -> None:
        """Shows the note of an event."""
        self.show(str(event["note"]))

    def print_line(self, text: str) -> None:
        """Prints a permanent line."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)
