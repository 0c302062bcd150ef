"""GitHub's last responses to GETs, for conditional requests: a 304 does not count in the rate limit."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session

from bot.store.models import CachedResponse

#: Responses unused for this long are deleted, such as those about closed pull requests.
KEPT = timedelta(days=7)


def find(session: Session, url: str) -> tuple[str, dict[str, Any]] | None:
    """The ETag and body stored for a URL, or None."""
    answer = session.get(CachedResponse, url)
    return (answer.etag, answer.body) if answer is not None else None


def store_response(session: Session, url: str, etag: str, body: dict[str, Any], at: datetime) -> None:
    """Stores the newest response of a URL."""
    session.merge(CachedResponse(url=url, etag=etag, body=body, at=at))
    session.flush()


def forget(session: Session, account: str) -> None:
    """Deletes an account's responses, whose keys begin with its name."""
    session.execute(
        delete(CachedResponse).where(CachedResponse.url.startswith(f"{account} ", autoescape=True))
    )


def prune(session: Session, at: datetime) -> None:
    """Deletes responses older than KEPT."""
    session.execute(delete(CachedResponse).where(CachedResponse.at < at - KEPT))
