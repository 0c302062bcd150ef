"""Leases: how often they are checked and renewed."""

from __future__ import annotations

import threading

import pytest

from bot.leases import POLL_S, RENEW_S, Interrupted, Lease


def fail() -> None:
    raise AssertionError("renewed without need")


def test_a_lease_is_checked_often_and_renewed_seldom() -> None:
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
    lease = Lease(stop, fail)
    lease.heartbeat()
    stop.set()
    with pytest.raises(Interrupted):
        lease.heartbeat()
