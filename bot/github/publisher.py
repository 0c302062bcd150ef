"""Publishes the effects of the outbox, one at a time, each exactly once.

A row is `sending` from before the request until the response is stored. If the process dies in between, the
next sender searches for the effect's marker on GitHub and sends only what is missing. If GitHub is
unavailable it waits: a missing effect is better than a duplicate.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import structlog

from bot.errors import InfrastructureError, InternalError, RefusalError
from bot.github.effects import kind_of
from bot.github.limits import ThrottledError
from bot.github.requests import Sent, Sink
from bot.github.responses import RepositoryUnavailableError
from bot.loop import FAULTS, Loop
from bot.store import audit, outbox, rate_usage
from bot.store.database import Database, now
from bot.store.jobs import INTERNAL_ERROR
from bot.store.models import SuppressionCause
from bot.store.outbox import ClaimedEffect

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


class Publisher(Loop):
    """Publishes the effects of the outbox.

    sink        where effects are sent
    clock       the current time, for leases and waits
    dry_run     where effects of targets in dry-run mode are written; required if `sink` is live
    """

    def __init__(
        self,
        database: Database,
        sink: Sink,
        clock: Callable[[], datetime] = now,
        dry_run: Sink | None = None,
    ) -> None:
        if dry_run is None and sink.live:
            raise InternalError("a live publisher needs a sink for targets in dry-run mode")
        super().__init__("publisher", IDLE_S)
        self.database, self.sink, self.clock = database, sink, clock
        self.dry_run = dry_run or sink

    def start(self, *, free_other_leases: bool = False) -> None:
        """Call once before the first run. `free_other_leases`: no other process sends."""
        if free_other_leases:
            with self.database.transaction() as session:
                outbox.release_senders(session)

    def run_once(self, _stop: threading.Event | None = None, /) -> bool:
        """Handles one due effect; False if there is none, or a kill switch is set."""
        with self.database.reading() as session:
            if not outbox.has_unsent(session):
                return False
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
        if effect is None:
            return False
        try:
            self._send(effect)
        except InfrastructureError:
            raise  # database failure: the effect is looked up after its lease
        except Exception as bug:
            FAULTS.labels(loop=self.name).inc()
            log.exception("effect.internal_error", effect=effect.key, target=effect.target)
            self._quarantine(effect, bug)
        return True

    def _send(self, effect: ClaimedEffect) -> None:
        sink = self.dry_run if effect.dry_run else self.sink
        events = log.bind(effect=effect.key, kind=effect.kind, target=effect.target, attempt=effect.attempts)
        try:
            sent = _send_once(sink, effect)
        except RefusalError as error:
            events.warning("effect.refused", reason=str(error))
            self._refuse(effect, error)
        except ThrottledError as error:
            events.info("effect.throttled", reason=str(error))
            self._wait(effect, error)
        except InfrastructureError as error:
            events.warning("effect.failed", reason=str(error))
            self._retry(effect, str(error), unsent=not sink.live)
        else:
            if sent is None:
                self._hold(effect)
                events.info("effect.withdrawn", reason=effect.withdrawn)
            else:
                self._finish(effect, sent, live=sink.live)
                events.info("effect.sent", url=sent.url, resumed=effect.resumed)

    def _quarantine(self, effect: ClaimedEffect, bug: Exception) -> None:
        """Retries with back-off an effect that met a bug of Assay; finally marks it as failed.

        One that may have arrived is looked up before it is sent again.
        """
        unsent = effect.dry_run or not self.sink.live
        reason = f"{INTERNAL_ERROR}: {type(bug).__name__}: {bug}"
        self._retry(effect, reason, unsent=unsent, max_attempts=MAX_QUARANTINED_ATTEMPTS)

    def _finish(self, effect: ClaimedEffect, sent: Sent, *, live: bool) -> None:
        at = self.clock()
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
            if live:
                why = f"{effect.kind} {'changed' if effect.remote_id else 'published'}"
                evidence = {"url": sent.url, "revision": effect.revision} | _new_name(sent, effect.target)
                audit.record(
                    session, effect.target, "sent", f"effect:{effect.key}", why, at, evidence=evidence
                )

    def _hold(self, effect: ClaimedEffect) -> None:
        with self.database.transaction() as session:
            if outbox.is_still_claimed(session, effect):
                outbox.hold_withdrawn(session, effect.key)

    def _refuse(self, effect: ClaimedEffect, error: RefusalError) -> None:
        at, reason = self.clock(), str(error)
        cause = error.cause if isinstance(error, RepositoryUnavailableError) else SuppressionCause.NONE
        with self.database.transaction() as session:
            if outbox.refuse(session, effect, reason, cause, at):
                audit.record(session, effect.target, "refused", f"effect:{effect.key}", reason, at)

    def _give_up(self, effect: ClaimedEffect, reason: str) -> None:
        at = self.clock()
        with self.database.transaction() as session:
            if not outbox.is_still_claimed(session, effect):
                return
            outbox.give_up(session, effect.key, reason, self.clock())
            audit.record(session, effect.target, "refused", f"effect:{effect.key}", reason, at)

    def _wait(self, effect: ClaimedEffect, error: ThrottledError) -> None:
        """Postpones an effect because of a rate limit, which does not count as an attempt."""
        with self.database.transaction() as session:
            if not outbox.is_still_claimed(session, effect):
                return
            outbox.retry(
                session,
                effect.key,
                str(error),
                self.clock() + timedelta(seconds=error.wait_s),
                unsent=not error.partially_sent and not effect.resumed,
                counts_as_attempt=False,
            )

    def _retry(
        self, effect: ClaimedEffect, reason: str, *, unsent: bool, max_attempts: int = MAX_ATTEMPTS
    ) -> None:
        if effect.attempts >= max_attempts:
            self._give_up(effect, f"given up after {effect.attempts} attempts: {reason}")
            return
        wait = min(FIRST_WAIT * 2 ** (effect.attempts - 1), LONGEST_WAIT)
        with self.database.transaction() as session:
            if not outbox.is_still_claimed(session, effect):
                return
            # A resumed effect may have arrived in an earlier attempt, whatever happened in this one.
            outbox.retry(
                session,
                effect.key,
                reason,
                self.clock() + wait,
                unsent=unsent and not effect.resumed,
            )


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
