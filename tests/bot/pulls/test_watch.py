"""The thread that keeps check runs true."""

from __future__ import annotations

import threading

import pytest

from bot.pulls.watch import CheckRuns
from tests.bot.pulls.pulls_kit import Room


def test_it_looks_and_ends_when_it_is_told(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = threading.Event()

    def look() -> int:
        looked.set()
        return 0

    monkeypatch.setattr(room.checks, "look", look)
    loop, stop = CheckRuns(room.checks), threading.Event()
    thread = threading.Thread(target=loop.run_forever, args=(stop,))
    thread.start()
    assert looked.wait(600)
    stop.set()
    loop.wake()
    thread.join(600)
    assert not thread.is_alive()
