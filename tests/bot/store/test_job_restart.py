"""A job that is asked for again: whose wish it is, and how long that holds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.store import Database, jobs
from bot.store.models import JobState
from tests.bot.github.outbox_kit import database

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Database:
    return database(tmp_path)


def enqueue(store: Database, by: str = "", *, ends: JobState | None = None) -> str:
    """Asks for the job, and lets it end so; who it is asked for by."""
    with store.transaction() as session:
        job = jobs.enqueue(session, "filing", "octo/compiler", "k", AT, again=True, requested_by=by)
        if ends is not None:
            jobs.complete(job, ends, "so it ended", {}, AT)
        return job.requested_by


def test_what_a_person_asked_for_and_had_is_over(store: Database) -> None:
    """An issue that somebody released is not released for ever: mutes and quotas hold for its next life."""
    assert enqueue(store, "ada", ends=JobState.DONE) == "ada"
    assert enqueue(store) == ""


@pytest.mark.parametrize("ends", [None, JobState.FAILED])
def test_what_a_person_asked_for_and_has_not_had_is_theirs(store: Database, ends: JobState | None) -> None:
    assert enqueue(store, "ada", ends=ends) == "ada"
    assert enqueue(store) == "ada"
    assert enqueue(store, "bob") == "bob"
