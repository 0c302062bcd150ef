"""Ctrl-C and SIGTERM while `assay run` works: the first ends the campaign with a report, the next at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType

from bot.campaigns.progress import OnProgress, Progress
from bot.store.models import CampaignState

#: What a shell adds to a signal's number in an exit code.
_SIGNAL_BASE = 128
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: States of a campaign that has nothing to report yet.
_BEFORE_RUNNING = (CampaignState.PLANNING, CampaignState.PROVISIONING)
_STDERR = 2
#: Seconds within which a second signal is the first one again: `timeout` (coreutils) sends it to its command,
#: then to the whole group, of which that is a part.
_SAME_S = 1.0


class Interruption:
    """Handles both signals in its block, which must be entered on the main thread.

    end_early  set by the first signal that comes after a campaign began to run cases

    A signal before that, or a second one, raises KeyboardInterrupt. One that was ignored, as SIGINT is in
    the background of a shell, stays ignored.

    clock  seconds, of any origin
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.end_early = threading.Event()
        self._clock, self._first = clock, 0.0
        self._ran, self._number = False, 0
        self._before: dict[signal.Signals, signal.Handlers] = {}

    def __enter__(self) -> Interruption:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)  # type: ignore[assignment]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def exit_code(self) -> int | None:
        """The exit code of what was ended early, as in shells; None if nothing was."""
        return _SIGNAL_BASE + self._number if self.end_early.is_set() else None

    def watched(self, on_progress: OnProgress) -> OnProgress:
        """`on_progress`, which tells from now on whether cases ran."""

        def watch(progress: Progress) -> None:
            self._ran = self._ran or progress.state not in _BEFORE_RUNNING
            on_progress(progress)

        return watch

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.end_early.is_set() and self._clock() - self._first < _SAME_S:
            return
        if not self._ran or self.end_early.is_set():
            raise KeyboardInterrupt
        self._number, self._first = number, self._clock()
        self.end_early.set()
        # Not through a buffered stream, which the signal may have interrupted while it was writing.
        os.write(_STDERR, b"\nassay: ending early with a report of what ran; once more ends at once\n")
