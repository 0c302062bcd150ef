"""The keeper: does the duties that are due, those nobody else is at, one after another."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from bot.errors import AssayError, InfrastructureError, InternalError
from bot.store import duties as rows
from bot.store.duties import Taken
from bot.targets.duties import Done, Duty, Work, known
from bot.targets.world import World

#: A lease lives this long, and is renewed after a third of it.
LEASE = timedelta(minutes=2)
#: How often an idle keeper looks whether something is due: a cron line's unit is a minute.
LOOK_S = 5.0

log = structlog.get_logger(__name__)


class Interrupted(Exception):  # noqa: N818  (a signal for the keeper, not a failure)
    """The process is shutting down, or the lease went to another one."""


class Keeper:
    """Does duties for as long as the service runs. Any number of processes may have one."""

    name = "duties"

    def __init__(self, world: World, duties: Sequence[Duty] | None = None) -> None:
        self._world = world
        self._duties = tuple(duty for duty in (known() if duties is None else duties) if self._can(duty))
        self.owner = f"{socket.gethostname()[:32]}:{os.getpid()}:{uuid.uuid4().hex[:12]}"

    def start(self, *, steal: bool = False) -> None:
        """Call once before `run_forever`. `steal`: this process knows itself to be alone."""
        if steal:
            with self._world.database.transaction() as session:
                rows.free_others(session, self.owner)

    def run_forever(self, stop: threading.Event) -> None:
        """Works until `stop` is set."""
        while not stop.is_set():
            try:
                self.run_due(stop)
            except InfrastructureError as error:
                log.warning("duties cannot be looked up; they are soon", reason=str(error))
            stop.wait(LOOK_S)

    def run_due(self, stop: threading.Event | None = None) -> list[str]:
        """Does what is due, once; returns the names of the duties it had."""
        stop = stop or threading.Event()
        had = []
        for duty in self._duties:
            if stop.is_set():
                break
            taken = self._take(duty)
            if taken is not None:
                had.append(duty.name)
                with structlog.contextvars.bound_contextvars(duty=duty.name):
                    self._do(duty, taken, stop)
        return had

    def _can(self, duty: Duty) -> bool:
        github = self._world.github
        if github is None:
            return not duty.asks
        return github.is_app or not duty.as_app

    def _take(self, duty: Duty) -> Taken | None:
        at = self._world.clock()
        with self._world.database.reading() as session:
            if not rows.is_due(session, duty.name, at, duty.every):
                return None
        with self._world.database.transaction(durable=False) as session:
            return rows.take(session, duty.name, self.owner, at, duty.every, LEASE)

    def _do(self, duty: Duty, taken: Taken, stop: threading.Event) -> None:
        begun = self._world.clock()
        lease = _Lease(self._world, duty.name, self.owner, begun, stop)
        try:
            done = duty.run(Work(self._world, begun, taken.last, taken.memory, lease.look))
        except Interrupted:
            with self._world.database.transaction(durable=False) as session:
                rows.release(session, duty.name, self.owner)
            return
        except InternalError as error:
            done = self._bug(error)
        except AssayError as error:
            log.warning("duty failed; it is tried again", reason=str(error))
            done = Done(f"failed: {error}")
        except Exception as error:  # noqa: BLE001 - told and recorded; one bug must not end the others
            done = self._bug(error)
        else:
            log.info("duty done", note=done.note)
        with self._world.database.transaction(durable=False) as session:
            rows.done(session, duty.name, self.owner, begun, done.note, done.memory)

    def _bug(self, error: Exception) -> Done:
        log.error("a bug of Assay", exc_info=error)
        return Done(f"a bug of Assay: {type(error).__name__}: {error}")


class _Lease:
    """Keeps a duty ours while it is done."""

    def __init__(self, world: World, name: str, owner: str, begun: datetime, stop: threading.Event) -> None:
        self._world, self._name, self._owner, self._stop = world, name, owner, stop
        self._renewed = begun

    def look(self) -> None:
        """Renews the lease when it is time; raises Interrupted if the duty must end now."""
        if self._stop.is_set():
            raise Interrupted
        at = self._world.clock()
        if at - self._renewed < LEASE / 3:
            return
        with self._world.database.transaction(durable=False) as session:
            if not rows.renew(session, self._name, self._owner, at + LEASE):
                raise Interrupted
        self._renewed = at
