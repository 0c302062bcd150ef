"""Who gets a slot: pull requests first, then the repository with the fewest."""

from __future__ import annotations

import threading
from contextvars import copy_context

import pytest

from bot.runners.fair_slots import Claimant, FairSlots, claimant, running_for
from tests.support.live_service import wait_for


def wait_until_waiting(slots: FairSlots, count: int) -> None:
    wait_for(lambda: slots.waiting == count, "the thread to wait")


def order_of(*waiting: Claimant) -> list[Claimant]:
    """The order in which they get the only slot, having arrived in the order given."""
    slots, stop, served = FairSlots(1), threading.Event(), list[Claimant]()

    def take(one: Claimant) -> None:
        with slots.slot(stop, one) as free:
            assert free
            served.append(one)

    threads = []
    with slots.slot(stop, Claimant("first")):
        for count, one in enumerate(waiting, start=1):
            threads.append(threading.Thread(target=take, args=(one,)))
            threads[-1].start()
            wait_until_waiting(slots, count)
    for thread in threads:
        thread.join()
    return served


def test_pull_requests_come_first() -> None:
    push, pull = Claimant("a"), Claimant("b", urgent=True)
    assert order_of(push, push, pull) == [pull, push, push]


def test_repositories_take_turns() -> None:
    a, b, c = (Claimant(name) for name in "abc")
    assert order_of(a, a, a, b, b, c) == [a, b, c, a, b, a]


def test_a_repository_that_holds_slots_waits_for_one_that_holds_none() -> None:
    slots, stop = FairSlots(3), threading.Event()
    a, b = Claimant("a"), Claimant("b")
    served, done = list[str](), threading.Event()

    def take(one: Claimant) -> None:
        with slots.slot(stop, one):
            served.append(one.target)
            done.wait()

    with slots.slot(stop, a), slots.slot(stop, a):
        with slots.slot(stop, b):
            threads = [threading.Thread(target=take, args=(one,)) for one in (a, b)]
            for count, thread in enumerate(threads, start=1):
                thread.start()
                wait_until_waiting(slots, count)
        wait_for(lambda: served, "one of them")
        assert served == ["b"]
        done.set()
    for thread in threads:
        thread.join()


def test_a_stop_ends_the_wait() -> None:
    slots, stop = FairSlots(1), threading.Event()
    with slots.slot(threading.Event()):
        stop.set()
        with slots.slot(stop) as free:
            assert not free
    with slots.slot(threading.Event()) as free:
        assert free


def test_threads_with_the_context_claim_for_the_same() -> None:
    seen = []
    with running_for(Claimant("octo/compiler", urgent=True)):
        thread = threading.Thread(target=copy_context().run, args=(lambda: seen.append(claimant()),))
        thread.start()
        thread.join()
    assert seen == [Claimant("octo/compiler", urgent=True)]
    assert claimant() == Claimant()


def test_a_runner_without_slots_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least one slot, not 0"):
        FairSlots(0)
