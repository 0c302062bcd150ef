"""The loop: what its thread outlives."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from bot import loop
from bot.errors import InfrastructureError
from bot.loop import Loop


class Fed(Loop):
    """Does what it is given, one thing after another, then sleeps for ever."""

    def __init__(self, *does: Callable[[], object]) -> None:
        super().__init__("fed", 3600.0)
        self.does = list(does)
        self.asleep = threading.Event()

    def run_once(self, _stop: threading.Event | None = None, /) -> bool:
        if not self.does:
            self.asleep.set()
            return False
        self.does.pop(0)()
        return True


def trouble() -> None:
    raise InfrastructureError("the database is away")


def test_it_outlives_a_database_that_does_not_answer_and_ends_when_told() -> None:
    did: list[str] = []
    loop, stop = Fed(trouble, lambda: did.append("done")), threading.Event()
    with capture_logs() as logs:
        thread = threading.Thread(target=loop.run_forever, args=(stop,))
        thread.start()
        while not loop.asleep.wait(0.01):
            loop.wake()  # after the trouble it waits as if nothing were due
        stop.set()
        loop.wake()
        thread.join(600)
    assert not thread.is_alive()
    assert did == ["done"]
    assert [line["reason"] for line in logs] == ["the database is away"]


class Failing(Loop):
    """A loop whose first turns are bugs."""

    def __init__(self, failures: int, stop: threading.Event) -> None:
        super().__init__("failing", 60.0)
        self.left, self.stop = failures, stop

    def run_once(self, _stop: threading.Event | None = None, /) -> bool:
        if self.left:
            self.left -= 1
            raise ZeroDivisionError("a bug")
        assert self.fault == "ZeroDivisionError: a bug"
        self.stop.set()
        return False


def test_a_bug_in_a_turn_does_not_end_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MIN_FAULT_PAUSE_S", 0.001)
    stop = threading.Event()
    before = loop.FAULTS.labels(loop="failing")._value.get()
    with capture_logs() as logs:
        failing = Failing(3, stop)
        failing.run_forever(stop)
    assert failing.fault == ""
    assert [one["event"] for one in logs] == ["loop.fault_contained"] * 3
    assert [one["retry_in_s"] for one in logs] == [0.001, 0.002, 0.004]
    assert loop.FAULTS.labels(loop="failing")._value.get() - before == 3
