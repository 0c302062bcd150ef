"""What a kill must not change is seen where it does: a lost head, an effect made twice, an act missing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete
from sqlalchemy.orm import Session

from bot.store import Database, audit
from bot.store.models import AuditEvent, Effect, PeriodicTask, Target
from tests.support.crash_points import Killer, make_tables, rows, run_until_complete

START = datetime(2026, 11, 20, 12, tzinfo=UTC)


def leave(url: str, at: datetime, change: Callable[[Session], object] = lambda session: None) -> None:
    """What a life leaves: a target, a duty, an act and a sent effect; then `change`."""
    make_tables(url)
    database = Database(url)
    with database.transaction() as session:
        heads = {"main": {"commit": "a" * 40, "at": at.isoformat()}}
        session.add(
            Target(name="octo/a", state="watched", default_branch="main", heads=heads, reconciled_at=at)
        )
        session.add(
            PeriodicTask(
                name="reconciliation", done_at=at, owner=f"{at}", note="1 repository", saved_state={"n": 1}
            )
        )
        audit.record(session, "octo/a", "sent", "effect:k", "published", at)
        session.add(
            Effect(
                key="k", kind="comment", target="octo/a", payload={"body": f"at {at:%Y-%m-%dT%H:%M:%SZ}"},
                state="sent", attempts=at.minute, created_at=at, sent_at=at,
            )
        )  # fmt: skip
    with database.transaction() as session:
        change(session)
    database.close()


def test_when_it_was_makes_no_difference(tmp_path: Path) -> None:
    urls = [f"sqlite:///{tmp_path}/{minutes}.db" for minutes in (0, 7)]
    for url, minutes in zip(urls, (0, 7), strict=True):
        leave(url, START + timedelta(minutes=minutes))
    assert rows(urls[0]) == rows(urls[1])


def _twice(session: Session) -> None:
    there = session.get_one(Effect, "k")
    more = {"target": there.target, "payload": there.payload, "created_at": START, "sent_at": START}
    session.add(Effect(key="l", kind="comment", state="sent", **more))


CHANGES: dict[str, Callable[[Session], object]] = {
    "a head is lost": lambda session: setattr(session.get_one(Target, "octo/a"), "heads", {}),
    "a head is another": lambda session: setattr(
        session.get_one(Target, "octo/a"), "heads", {"main": {"commit": "b" * 40, "at": START.isoformat()}}
    ),
    "a target waits to be read": lambda session: setattr(
        session.get_one(Target, "octo/a"), "reconciled_at", None
    ),
    "a duty forgot": lambda session: setattr(
        session.get_one(PeriodicTask, "reconciliation"), "saved_state", {}
    ),
    "a duty is not done": lambda session: setattr(
        session.get_one(PeriodicTask, "reconciliation"), "done_at", None
    ),
    "an act is lost": lambda session: session.execute(delete(AuditEvent)),
    "an act is told twice": lambda session: audit.record(
        session, "octo/a", "sent", "effect:k", "published", START
    ),
    "an effect is lost": lambda session: session.delete(session.get_one(Effect, "k")),
    "an effect is made twice": _twice,
    "an effect says something else": lambda session: setattr(
        session.get_one(Effect, "k"), "payload", {"body": "twice at TIME"}
    ),
    "an effect is not sent": lambda session: setattr(session.get_one(Effect, "k"), "sent_at", None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_kill_must_not_change_is_compared(name: str, tmp_path: Path) -> None:
    calm, killed = (f"sqlite:///{tmp_path}/{word}.db" for word in ("calm", "killed"))
    leave(calm, START)
    leave(killed, START, CHANGES[name])
    assert rows(killed) != rows(calm)


def test_lives_are_counted_until_one_ends(tmp_path: Path) -> None:
    def live(killer: Killer) -> None:
        for _ in range(3):
            killer.tick()

    assert run_until_complete(live, Killer("before commit", 4), 2) == 1
    assert run_until_complete(live, Killer("before commit", 2), 2) == 2
    with pytest.raises(RuntimeError, match="not done after 2 lives"):
        run_until_complete(live, Killer("before commit", 2, every_run=True), 2)


def test_a_life_that_fails_is_no_kill(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def live(killer: Killer) -> None:
        (tmp_path / "missing").read_text()

    with pytest.raises(RuntimeError, match="life 1 failed"):
        run_until_complete(live, Killer(), 2)
    assert "FileNotFoundError" in capfd.readouterr().err
