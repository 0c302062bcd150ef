"""GitHub's last answers to GETs, for asking again on condition: a 304 costs nothing of the limit."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session

from bot.store.models import CachedResponse

#: Answers unused for this long are dropped, such as those about closed pull requests.
KEPT = timedelta(days=7)


def find(session: Session, url: str) -> tuple[str, dict[str, Any]] | None:
    """The ETag and the body kept for an address; None if none is."""
    answer = session.get(CachedResponse, url)
    return (answer.etag, answer.body) if answer is not None else None


def store_response(session: Session, url: str, etag: str, body: dict[str, Any], at: datetime) -> None:
    """Keeps the latest answer of an address."""
    session.merge(CachedResponse(url=url, etag=etag, body=body, at=at))
    session.flush()


def forget(session: Session, account: str) -> None:
    """Drops an account's answers, whose keys begin with its name."""
    session.execute(
        delete(CachedResponse).where(CachedResponse.url.startswith(f"{account} ", autoescape=True))
    )


def prune(session: Session, at: datetime) -> None:
    """Drops what is older than KEPT."""
    session.execute(delete(CachedResponse).where(CachedResponse.at < at - KEPT))
