"""The queue of the inbox: in order, once, whatever goes wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from bot.errors import InfrastructureError, InternalError, RefusalError
from bot.store import Database, Session, inbox, now
from bot.store.models import Campaign, Delivery
from bot.webhooks import CampaignIntent, Intent
from bot.webhooks.inbox_queue import SERVER_BATCH, InboxQueue
from bot.webhooks.intents import Ignored
from bot.worker import Worker

START = now()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    yield database
    database.close()


def push(number: int) -> bytes:
    return json.dumps(
        {
            "ref": "refs/heads/main",
            "before": "0" * 40,
            "after": f"{number + 1:040x}",
            "repository": {"full_name": "octo-org/compiler"},
        }
    ).encode()


def deliver(database: Database, delivery: str, payload: bytes, event: str = "push", at: int = 0) -> None:
    with database.transaction() as session:
        inbox.store(
            session, [inbox.ReceivedDelivery(delivery, event, payload, START + timedelta(seconds=at))]
        )


def state(database: Database, delivery: str) -> tuple[str, str, int]:
    with database.reading() as session:
        row = session.get_one(Delivery, delivery)
        return row.state, row.reason, row.attempts


def record(session: Session, intent: Intent) -> None:
    """A handler that leaves a row behind."""
    assert isinstance(intent, CampaignIntent)
    session.add(
        Campaign(
            target=intent.target,
            head=intent.head,
            trigger=intent.trigger,
            delivery=intent.delivery,
            created_at=now(),
            updated_at=now(),
        )
    )


def drain(database: Database, queue: InboxQueue) -> int:
    """Works off one turn; returns how many deliveries are no longer pending."""

    def pending() -> int:
        with database.reading() as session:
            return inbox.backlog(session)[0]

    before = pending()
    Worker(queue).run_once()
    return before - pending()


def campaigns(database: Database) -> list[str]:
    with database.reading() as session:
        return list(session.scalars(select(Campaign.delivery).order_by(Campaign.id)))


def test_in_order_of_arrival_and_once(database: Database) -> None:
    for at, name in ((2, "c"), (0, "b"), (1, "a")):
        deliver(database, name, push(at), at=at)
    queue = InboxQueue(database, record)
    assert drain(database, queue) == 3
    assert campaigns(database) == ["b", "a", "c"]
    assert drain(database, queue) == 0
    assert state(database, "a") == ("done", "", 0)


def test_more_than_a_page(database: Database) -> None:
    for number in range(120):
        deliver(database, f"d{number:03}", push(number), at=number)
    assert drain(database, InboxQueue(database, record)) == 120
    assert campaigns(database) == [f"d{number:03}" for number in range(120)]


def test_the_intent_names_its_delivery(database: Database) -> None:
    seen: list[Intent] = []
    deliver(database, "d", push(0))
    drain(database, InboxQueue(database, lambda _session, intent: seen.append(intent)))
    assert seen == [
        CampaignIntent(
            target="octo-org/compiler",
            head=f"{1:040x}",
            base="",
            ref="refs/heads/main",
            trigger="push",
            delivery="d",
        )
    ]


def test_ignored_and_unfit_deliveries_keep_the_reason(database: Database) -> None:
    deliver(database, "odd", b"{}", event="star")
    deliver(database, "unfit", b'{"ref": 1, "repository": {"full_name": "octo-org/compiler"}}')
    assert drain(database, InboxQueue(database, record)) == 2
    assert state(database, "odd") == ("ignored", "nothing is done about 'star' events", 0)
    assert state(database, "unfit")[0] == "failed"
    assert "the push payload does not fit: ref" in state(database, "unfit")[1]


def test_what_a_handler_does_nothing_about_is_ignored_with_its_reason(database: Database) -> None:
    deliver(database, "d", push(0))
    drain(database, InboxQueue(database, lambda _session, _intent: Ignored("the target is archived")))
    assert state(database, "d") == ("ignored", "the target is archived", 0)


def test_what_a_handler_did_is_undone_when_it_fails(database: Database) -> None:
    def refuse(session: Session, intent: Intent) -> None:
        record(session, intent)
        session.flush()
        raise RefusalError("the target is blocked")

    deliver(database, "d", push(0))
    drain(database, InboxQueue(database, refuse))
    assert state(database, "d") == ("failed", "the target is blocked", 0)
    assert campaigns(database) == []


@pytest.mark.parametrize("error", [ZeroDivisionError("oh"), InternalError("oh")])
def test_our_bug_is_shown_and_the_reader_goes_on(database: Database, error: Exception) -> None:
    def handle(session: Session, intent: Intent) -> None:
        if intent.delivery == "first":
            raise error
        record(session, intent)

    deliver(database, "first", push(0))
    deliver(database, "second", push(1), at=1)
    with capture_logs() as logs:
        drain(database, InboxQueue(database, handle))
    assert state(database, "first")[:2] == ("failed", f"a bug of Assay: {type(error).__name__}: oh")
    assert campaigns(database) == ["second"]
    (bug,) = [line for line in logs if line["log_level"] == "error"]
    assert bug["event"] == "internal_error"


def test_our_machines_failing_is_tried_again_three_times_with_pauses(database: Database) -> None:
    clock = [0.0]
    calls: list[float] = []

    def fail(_session: Session, _intent: Intent) -> None:
        calls.append(clock[0])
        raise InfrastructureError("the disk is full")

    deliver(database, "d", push(0))
    queue = InboxQueue(database, fail, clock=lambda: clock[0])
    for moment in (0.0, 1.0, 5.0, 30.0, 65.0, 1000.0):
        clock[0] = moment
        drain(database, queue)
    assert calls == [0.0, 5.0, 65.0]
    assert state(database, "d") == ("failed", "given up after 3 attempts: the disk is full", 3)


def test_a_failure_for_now_does_not_hold_up_the_others(database: Database) -> None:
    clock = [0.0]

    def handle(session: Session, intent: Intent) -> None:
        if intent.delivery == "first" and clock[0] < 5.0:
            raise InfrastructureError("busy")
        record(session, intent)

    deliver(database, "first", push(0))
    deliver(database, "second", push(1), at=1)
    queue = InboxQueue(database, handle, clock=lambda: clock[0])
    assert drain(database, queue) == 1
    assert state(database, "first") == ("pending", "busy", 1)
    clock[0] = 5.0
    assert drain(database, queue) == 1
    assert campaigns(database) == ["second", "first"]
    assert state(database, "first") == ("done", "", 1)


def test_the_thread_reads_when_woken_and_stops_when_told(database: Database) -> None:
    handled = threading.Event()
    reader = Worker(InboxQueue(database, lambda _session, _intent: handled.set()))
    stop = threading.Event()
    thread = threading.Thread(target=reader.run_forever, args=(stop,))
    thread.start()
    try:
        deliver(database, "d", push(0))
        reader.wake()
        assert handled.wait(600)
    finally:
        stop.set()
        reader.wake()
        thread.join(600)
    assert not thread.is_alive()
    assert state(database, "d")[0] == "done"


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[3])
from bot.store import Database
from bot.webhooks.inbox_queue import InboxQueue
from bot.worker import Worker
from test_inbox_queue import record

def handle(session, intent):
    if sys.argv[2] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    record(session, intent)
    session.flush()
    os.kill(os.getpid(), signal.SIGKILL)

Worker(InboxQueue(Database(sys.argv[1]), handle)).run_once()
"""


def test_a_batch_of_which_one_fails_is_handled_one_by_one(database: Database) -> None:
    """What the others wrote in the batch is rolled back with it, and written once."""
    for number in range(4):
        deliver(database, f"d{number}", push(number), at=number)

    def handle(session: Session, intent: Intent) -> None:
        record(session, intent)
        session.flush()
        if intent.delivery == "d2":
            raise RefusalError("the target is blocked")

    assert drain(database, InboxQueue(database, handle)) == 4
    assert campaigns(database) == ["d0", "d1", "d3"]
    assert state(database, "d2") == ("failed", "the target is blocked", 0)


def test_deliveries_share_a_transaction_on_postgresql(postgresql: str) -> None:
    there = Database(postgresql)
    there.migrate()
    sessions: list[Session] = []

    def handle(session: Session, intent: Intent) -> None:
        if session not in sessions:
            sessions.append(session)
        record(session, intent)

    for number in range(SERVER_BATCH + 1):
        deliver(there, f"d{number}", push(number), at=number)
    assert drain(there, InboxQueue(there, handle)) == SERVER_BATCH + 1
    assert len(sessions) == 2
    assert campaigns(there) == [f"d{number}" for number in range(SERVER_BATCH + 1)]
    there.close()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_between_handling_and_commit_it_is_handled_exactly_once(
    database: Database, moment: str
) -> None:
    deliver(database, "d", push(0))
    here = str(Path(__file__).parent)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(database.url), moment, here], timeout=600, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert (campaigns(database), state(database, "d")) == ([], ("pending", "", 0))
    assert drain(database, InboxQueue(database, record)) == 1
    assert drain(database, InboxQueue(database, record)) == 0
    assert campaigns(database) == ["d"]
