"""The thread that keeps check runs true."""

from __future__ import annotations

import threading

import pytest

from bot.pulls.check_run_loop import CheckRunLoop
from tests.bot.pulls.pulls_kit import PullHarness


def test_it_looks_and_ends_when_it_is_told(harness: PullHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = threading.Event()

    def update_due() -> int:
        looked.set()
        return 0

    monkeypatch.setattr(harness.checks, "update_due", update_due)
    loop, stop = CheckRunLoop(harness.checks), threading.Event()
    thread = threading.Thread(target=loop.run_forever, args=(stop,))
    thread.start()
    assert looked.wait(600)
    stop.set()
    loop.wake()
    thread.join(600)
    assert not thread.is_alive()
