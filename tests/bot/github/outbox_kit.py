"""What the publisher's tests share: a database with effects in it, and a clock to turn by hand."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from bot.store import bugs, outbox
from bot.store.database import Database
from bot.store.models import Base, Campaign, Effect
from tests.bot.reports import sample_campaign

START = datetime(2026, 11, 20, 12, tzinfo=UTC)


@dataclass
class Clock:
    """A clock that stands still until told."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


@cache
def _empty() -> sqlite3.Connection:
    """The tables without rows; copying them is ten times as fast as making them."""
    kept = sqlite3.connect(":memory:", check_same_thread=False)
    with tempfile.TemporaryDirectory() as folder:
        made = Database(f"sqlite:///{folder}/assay.db")
        Base.metadata.create_all(made.engine)
        made.close()
        with closing(sqlite3.connect(f"{folder}/assay.db")) as source:
            source.backup(kept)
    return kept


def database(folder: Path) -> Database:
    with closing(sqlite3.connect(f"{folder}/assay.db")) as made:
        _empty().backup(made)
    return Database(f"sqlite:///{folder}/assay.db")


def campaign(
    database: Database, mode: str = "auto", target: str = sample_campaign.TARGET, number: int = 1
) -> int:
    with database.transaction() as session:
        row = Campaign(
            id=number,
            target=target,
            head=sample_campaign.HEAD,
            trigger=f"manual:{number}",
            config={"reports": {"mode": mode}},
            created_at=START,
            updated_at=START,
        )
        session.add(row)
    return number


def issue(signature: str, target: str = sample_campaign.TARGET, hold: str = "") -> outbox.EffectDraft:
    key = f"{signature:0>32}"
    payload = {"title": signature, "body": f"text\n\n<!-- assay:{key} -->\n", "labels": ["assay"]}
    return outbox.EffectDraft("issue", key, target, payload, signature, hold)


def check_run(key: str = "c0ffee", target: str = sample_campaign.TARGET) -> outbox.EffectDraft:
    output = {"title": "Nothing new", "summary": "fine", "text": f"<!-- assay:{key} -->"}
    payload = {
        "name": "assay",
        "head_sha": sample_campaign.HEAD,
        "status": "completed",
        "conclusion": "success",
        "external_id": key,
        "output": output,
    }
    return outbox.EffectDraft("check_run", key, target, payload)


def post(
    database: Database,
    *drafts: outbox.EffectDraft,
    campaign_id: int | None = 1,
    per_day: int = 10,
    at: datetime = START,
) -> list[outbox.PostResult]:
    with database.transaction() as session:
        for draft in drafts:
            if draft.kind == "issue":
                bugs.record_sighting(session, draft.target, draft.signature, draft.signature, at)
        return outbox.post(session, drafts, campaign_id=campaign_id, issues_per_day=per_day, at=at)


def row(database: Database, key: str) -> Effect:
    with database.reading() as session:
        return session.get_one(Effect, key)
