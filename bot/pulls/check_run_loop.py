"""The thread that keeps check runs true: apart from jobs, which may wait for git or GitHub for minutes."""

from __future__ import annotations

import threading

from bot.loop import Loop
from bot.pulls.check_run_updater import CheckRunUpdater

UPDATE_INTERVAL_S = 1.0  # how soon a new step of a campaign is seen


class CheckRunLoop(Loop):
    """Keeps check runs true for as long as the service runs."""

    def __init__(self, checks: CheckRunUpdater) -> None:
        super().__init__("check-runs", UPDATE_INTERVAL_S)
        self._checks = checks

    def run_once(self, _stop: threading.Event | None = None, /) -> bool:
        """Brings up to date what is due. Never more at once: what changes is told every second at most."""
        self._checks.update_due()
        return False
