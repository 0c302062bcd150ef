"""The thread that updates check runs, separate from jobs, which may wait for git or GitHub."""

from __future__ import annotations

import threading

from bot.loop import Loop
from bot.pulls.check_run_updater import CheckRunUpdater

UPDATE_INTERVAL_S = 1.0  # the delay until a new step of a campaign is shown


class CheckRunLoop(Loop):
    """Updates check runs while the service runs."""

    def __init__(self, checks: CheckRunUpdater) -> None:
        super().__init__("check-runs", UPDATE_INTERVAL_S)
        self._checks = checks

    def run_once(self, _stop: threading.Event | None = None, /) -> bool:
        """Updates the check runs that are due. Returns False, so the loop sleeps between two calls."""
        self._checks.update_due()
        return False
