"""The worker: how work ends, and what one item may not do to the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from bot.errors import InfrastructureError, ProvisionError, RefusalError, ToolchainError, UsageError
from bot.leases import Interrupted, LeaseLost
from bot.loop import FAULTS
from bot.worker import QUARANTINE_S, Queue, Worker, WorkItem


class Items(Queue):
    """Hands out the items it is given, with a back-off of one retry."""

    name, idle_s, backoff = "items", 60.0, (5.0,)

    def __init__(self, *items: Item) -> None:
        self.items = items

    def claim(self, owner: str, stop: threading.Event) -> Iterator[WorkItem]:
        yield from self.items


@dataclass
class Item:
    """Work that raises `raises`, and records how its ending is stored."""

    raises: BaseException | None = None
    attempt: int = 1
    storing: BaseException | None = None  # raised by `postpone` and `fail`
    burying: BaseException | None = None  # raised by `record_internal_error`
    endings: list[str] = field(default_factory=list)

    @property
    def log_fields(self) -> Mapping[str, object]:
        return {"item": 1}

    def work(self) -> None:
        if self.raises is not None:
            raise self.raises

    def release_lease(self) -> None:
        self.endings.append("released")

    def postpone(self, error: Exception, seconds: float) -> None:
        self._store(f"again in {seconds:g}: {error}")

    def fail(self, error: Exception) -> None:
        self._store(f"failed: {error}")

    def record_internal_error(self, bug: Exception) -> None:
        if self.burying is not None:
            raise self.burying
        self.endings.append(f"bug: {type(bug).__name__}")

    def _store(self, ending: str) -> None:
        if self.storing is not None:
            raise self.storing
        self.endings.append(ending)


def endings(item: Item) -> list[str]:
    assert Worker(Items(item)).run_once()
    return item.endings


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Item(), []),
        (Item(LeaseLost(1)), []),
        (Item(Interrupted()), ["released"]),
        (Item(InfrastructureError("net")), ["again in 5: net"]),
        (Item(ToolchainError("net")), ["again in 5: net"]),
        (Item(InfrastructureError("net"), attempt=2), ["failed: net"]),
        (Item(ProvisionError("no such release")), ["failed: no such release"]),
        (Item(UsageError("typo")), ["failed: typo"]),
        (Item(RefusalError("quota")), ["failed: quota"]),
        (Item(KeyError("ours")), ["bug: KeyError"]),
        (Item(RefusalError("no"), storing=KeyError("ours")), ["bug: KeyError"]),
        (Item(RefusalError("no"), storing=LeaseLost(1)), []),
    ],
    ids=lambda one: repr(getattr(one, "raises", "")),
)
def test_the_ending_follows_the_kind_of_the_error(item: Item, expected: list[str]) -> None:
    assert endings(item) == expected


@pytest.mark.parametrize("signal", [KeyboardInterrupt(), SystemExit(1)])
def test_signals_of_the_process_go_on_after_the_release(signal: BaseException) -> None:
    item = Item(signal)
    with pytest.raises(type(signal)):
        endings(item)
    assert item.endings == ["released"]


def test_where_nothing_can_be_written_the_lease_expires() -> None:
    item = Item(RefusalError("no"), storing=InfrastructureError("the disk is full"))
    with pytest.raises(InfrastructureError, match="the disk is full"):
        endings(item)
    assert item.endings == []


class Unrecordable(Item):
    """An item whose failure cannot be stored, only postponed."""

    def postpone(self, error: Exception, seconds: float) -> None:
        self.endings.append(f"again in {seconds:g}")


def test_an_item_whose_failure_cannot_be_stored_waits_and_the_others_go_on() -> None:
    poison, sound = Unrecordable(KeyError("ours"), burying=ZeroDivisionError("again")), Item()
    before = FAULTS.labels(loop="items")._value.get()
    worker = Worker(Items(poison, sound))
    assert worker.run_once()
    assert poison.endings == [f"again in {QUARANTINE_S:g}"]
    assert FAULTS.labels(loop="items")._value.get() - before == 2


def test_a_stop_ends_the_turn_after_the_current_item() -> None:
    stop, last = threading.Event(), Item(RefusalError("not reached"))
    stop.set()
    assert Worker(Items(Item(Interrupted()), last)).run_once(stop)
    assert last.endings == []
