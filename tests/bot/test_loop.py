"""The loop: how turns end, and what the loop itself outlives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from bot import loop
from bot.errors import InfrastructureError, ProvisionError, RefusalError, ToolchainError, UsageError
from bot.leases import POLL_S, RENEW_S, Interrupted, Lease, LeaseLost
from bot.loop import Loop


@dataclass
class Told:
    """A turn that raises what it is told to, and keeps what was then asked of it."""

    raises: BaseException | None = None
    seconds: float | None = None
    recording: BaseException | None = None
    said: list[str] = field(default_factory=list)

    @property
    def log_fields(self) -> Mapping[str, object]:
        return {"turn": 1}

    def work(self) -> None:
        if self.raises is not None:
            raise self.raises

    def release_lease(self) -> None:
        self.said.append("given back")

    def wait(self) -> float | None:
        return self.seconds

    def postpone(self, error: Exception, seconds: float) -> None:
        self._say(f"again in {seconds:g}: {error}")

    def fail(self, error: Exception) -> None:
        self._say(f"failed: {error}")

    def record_internal_error(self, bug: Exception) -> None:
        self.said.append(f"buried: {type(bug).__name__}")

    def _say(self, words: str) -> None:
        if self.recording is not None:
            raise self.recording
        self.said.append(words)


def do(turn: Told) -> list[str]:
    Loop("loop", 60.0).process(turn)
    return turn.said


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        (Told(), []),
        (Told(LeaseLost(1)), []),
        (Told(Interrupted()), ["given back"]),
        (Told(InfrastructureError("net"), seconds=5.0), ["again in 5: net"]),
        (Told(ToolchainError("net"), seconds=5.0), ["again in 5: net"]),
        (Told(InfrastructureError("net")), ["failed: net"]),
        (Told(ProvisionError("no such release"), seconds=5.0), ["failed: no such release"]),
        (Told(UsageError("typo"), seconds=5.0), ["failed: typo"]),
        (Told(RefusalError("quota"), seconds=5.0), ["failed: quota"]),
        (Told(KeyError("ours"), seconds=5.0), ["buried: KeyError"]),
        (Told(RefusalError("no"), recording=KeyError("ours")), ["buried: KeyError"]),
        (Told(RefusalError("no"), recording=LeaseLost(1)), []),
    ],
    ids=lambda one: repr(getattr(one, "raises", "")),
)
def test_a_turn_ends_as_what_it_raised_asks_for(turn: Told, said: list[str]) -> None:
    assert do(turn) == said


@pytest.mark.parametrize("signal", [KeyboardInterrupt(), SystemExit(1)])
def test_signals_of_the_process_go_on_once_the_turn_is_given_back(signal: BaseException) -> None:
    turn = Told(signal)
    with pytest.raises(type(signal)):
        do(turn)
    assert turn.said == ["given back"]


def test_where_nothing_can_be_written_the_lease_runs_out() -> None:
    turn = Told(RefusalError("no"), recording=InfrastructureError("the disk is full"))
    with pytest.raises(InfrastructureError, match="the disk is full"):
        do(turn)
    assert turn.said == []


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


def test_a_lease_is_looked_at_often_and_renewed_seldom() -> None:
    present, did = [0.0], list[str]()
    lease = Lease(
        threading.Event(),
        lambda: did.append("renew"),
        lambda: did.append("check"),
        monotonic=lambda: present[0],
    )
    for _ in range(4 * int(RENEW_S / POLL_S)):
        present[0] += POLL_S / 2
        lease.heartbeat()
    assert did.count("renew") == 2
    assert did.count("check") == 2 * int(RENEW_S / POLL_S) - 2


def test_a_lease_ends_with_the_process() -> None:
    stop = threading.Event()
    lease = Lease(stop, trouble)
    lease.heartbeat()
    stop.set()
    with pytest.raises(Interrupted):
        lease.heartbeat()


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
