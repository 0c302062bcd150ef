"""The queue of the outbox: effects are published one at a time, each exactly once.

A row is `sending` from before the request until the response is stored. If the process dies in between, the
next sender searches for the effect's marker on GitHub and sends only what is missing. If GitHub is
unavailable it waits: a missing effect is better than a duplicate.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import structlog

from bot.errors import EXPECTED_ERRORS, InternalError, RefusalError
from bot.github.effects import kind_of
from bot.github.limits import ThrottledError
from bot.github.requests import Sent, Sink
from bot.github.responses import RepositoryUnavailableError
from bot.store import Session, audit, outbox, rate_usage
from bot.store.database import Database, now
from bot.store.jobs import INTERNAL_ERROR
from bot.store.models import SuppressionCause
from bot.store.outbox import ClaimedEffect
from bot.worker import Queue

#: Lease of one effect; well over all timeouts of the live sink together.
LEASE = timedelta(minutes=5)
#: Between attempts: 30 s, doubling to an hour, as GitHub's best practices ask for ("exponentially").
FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(hours=1)
#: Attempts before the effect fails: with the waits above about half a day.
MAX_ATTEMPTS = 16
#: Attempts if a bug of Assay is the cause: with the waits above about eight minutes.
MAX_QUARANTINED_ATTEMPTS = 5
IDLE_S = 1.0  # one indexed query

log = structlog.get_logger(__name__)


class OutboxQueue(Queue):
    """The effects of the outbox.

    sink        where effects are sent
    clock       the current time, for leases and waits
    dry_run     where effects of targets in dry-run mode are written; required if `sink` is live
    """

    name = "publisher"

    def __init__(
        self,
        database: Database,
        sink: Sink,
        clock: Callable[[], datetime] = now,
        dry_run: Sink | None = None,
    ) -> None:
        if dry_run is None and sink.live:
            raise InternalError("a live publisher needs a sink for targets in dry-run mode")
        waits = [min(FIRST_WAIT * 2**attempt, LONGEST_WAIT) for attempt in range(MAX_ATTEMPTS - 1)]
        self.idle_s = IDLE_S
        self.backoff = [wait.total_seconds() for wait in waits]
        self.bug_backoff = self.backoff[: MAX_QUARANTINED_ATTEMPTS - 1]
        self.database, self.sink, self.clock = database, sink, clock
        self.dry_run = dry_run or sink

    def release_other_leases(self, owner: str) -> None:
        """Frees the effects that senders of earlier processes held."""
        del owner  # a sender's lease is the state of its effect
        with self.database.transaction() as session:
            outbox.release_senders(session)

    def claim(self, owner: str, stop: threading.Event) -> Iterator[_Sending]:
        """One due effect; none if a kill switch is set."""
        del owner, stop
        with self.database.reading() as session:
            if not outbox.has_unsent(session):
                return
        with self.database.transaction() as session:
            at = self.clock()
            paused = rate_usage.pauses(session, at)
            effect = outbox.claim(
                session,
                at,
                LEASE,
                live=self.sink.live,
                paused=lambda target: self.sink.account(target) in paused,
            )
        if effect is not None:
            sink = self.dry_run if effect.dry_run else self.sink
            yield _Sending(self.database, sink, self.clock, effect)


@dataclass(frozen=True)
class _Sending:
    """An attempt at an effect."""

    database: Database
    sink: Sink
    clock: Callable[[], datetime]
    effect: ClaimedEffect

    @property
    def log_fields(self) -> Mapping[str, object]:
        """Key, kind and target of the effect."""
        return {"effect": self.effect.key, "kind": self.effect.kind, "target": self.effect.target}

    @property
    def attempt(self) -> int:
        """As counted by the claim."""
        return self.effect.attempts

    def work(self) -> None:
        """Publishes the effect and stores GitHub's answer."""
        try:
            sent = _send_once(self.sink, self.effect)
        except ThrottledError as error:  # does not count as an attempt
            self._wait(error)
            log.info("effect.throttled", reason=str(error))
            return
        if sent is None:
            self._hold()
            log.info("effect.withdrawn", reason=self.effect.withdrawn)
        else:
            self._finish(sent)
            log.info("effect.sent", url=sent.url, resumed=self.effect.resumed)

    def release_lease(self) -> None:
        """Does nothing: the effect may have arrived, so it is looked up after its lease."""

    def postpone(self, error: Exception, seconds: float) -> None:
        """Retries it later; an effect that may have arrived is looked up before it is sent again."""
        # A resumed effect may have arrived in an earlier attempt, whatever happened in this one.
        unsent = not self.sink.live and not self.effect.resumed
        self._retry(_reason(error), seconds, unsent=unsent)

    def fail(self, error: Exception) -> None:
        """Marks it as refused, or as given up after its last attempt."""
        if isinstance(error, RefusalError):
            self._refuse(error)
        else:
            self._give_up(error)

    def record_internal_error(self, bug: Exception) -> None:
        """Gives it up; other effects are published."""
        self._give_up(bug)

    def _finish(self, sent: Sent) -> None:
        at, effect = self.clock(), self.effect
        with self.database.transaction() as session:
            outbox.mark_sent(
                session,
                effect.key,
                sent.url,
                sent.number,
                at,
                remote_id=sent.remote_id,
                revision=effect.revision,
            )
            if self.sink.live:
                why = f"{effect.kind} {'changed' if effect.remote_id else 'published'}"
                evidence = {"url": sent.url, "revision": effect.revision} | _new_name(sent, effect.target)
                self._record_audit(session, "sent", why, at, evidence)

    def _hold(self) -> None:
        with self.database.transaction() as session:
            if outbox.is_still_claimed(session, self.effect):
                outbox.hold_withdrawn(session, self.effect.key)

    def _refuse(self, error: RefusalError) -> None:
        at, reason = self.clock(), str(error)
        cause = error.cause if isinstance(error, RepositoryUnavailableError) else SuppressionCause.NONE
        with self.database.transaction() as session:
            if outbox.refuse(session, self.effect, reason, cause, at):
                self._record_audit(session, "refused", reason, at)

    def _give_up(self, error: Exception) -> None:
        at, reason = self.clock(), f"given up after {self.effect.attempts} attempts: {_reason(error)}"
        with self.database.transaction() as session:
            if outbox.is_still_claimed(session, self.effect):
                outbox.give_up(session, self.effect.key, reason, at)
                self._record_audit(session, "refused", reason, at)

    def _wait(self, error: ThrottledError) -> None:
        unsent = not error.partially_sent and not self.effect.resumed
        self._retry(str(error), error.wait_s, unsent=unsent, counts_as_attempt=False)

    def _retry(self, reason: str, seconds: float, *, unsent: bool, counts_as_attempt: bool = True) -> None:
        due = self.clock() + timedelta(seconds=seconds)
        with self.database.transaction() as session:
            if outbox.is_still_claimed(session, self.effect):
                outbox.retry(
                    session,
                    self.effect.key,
                    reason,
                    due,
                    unsent=unsent,
                    counts_as_attempt=counts_as_attempt,
                )

    def _record_audit(
        self,
        session: Session,
        action: str,
        why: str,
        at: datetime,
        evidence: Mapping[str, object] | None = None,
    ) -> None:
        subject = f"effect:{self.effect.key}"
        audit.record(session, self.effect.target, action, subject, why, at, evidence=evidence)


def _reason(error: Exception) -> str:
    """The reason for people; names the bug if it is one of Assay."""
    if isinstance(error, EXPECTED_ERRORS):
        return str(error)
    return f"{INTERNAL_ERROR}: {type(error).__name__}: {error}"


def _send_once(sink: Sink, effect: ClaimedEffect) -> Sent | None:
    """Publishes the effect; None if it is not published and no longer wanted."""
    kind = kind_of(effect.kind)
    if kind.editable and effect.remote_id:  # updates are idempotent: no search needed
        return sink.send(effect)
    there = sink.find(effect) if effect.resumed or kind.always_search else None
    if there is None:
        return None if effect.withdrawn else sink.send(effect)
    return there if kind.is_complete(effect) else sink.send(replace(effect, remote_id=there.remote_id))


def _new_name(sent: Sent, target: str) -> dict[str, str]:
    """The target's present name from the URL, if it was renamed or transferred."""
    parts = urlsplit(sent.url).path.split("/")
    name = "/".join(parts[1:3])
    page = len(parts) > 3 and parts[1] not in ("repos", "api")  # not a URL of the API
    return {"now": name} if page and name.lower() != target.lower() else {}
