"""The keeper: does the duties that are due, those nobody else is at, one after another."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from bot.leases import Abandoned, Lease
from bot.loop import Loop
from bot.store import duties as rows
from bot.store.duties import Taken
from bot.targets.duties import Done, Duty, Work, known
from bot.targets.world import World

#: A lease lives this long, and is renewed after a third of it: a request to GitHub may take half a minute.
LEASE = timedelta(minutes=2)
#: How often an idle keeper looks whether something is due: a cron line's unit is a minute.
IDLE_S = 5.0

log = structlog.get_logger(__name__)


class Keeper(Loop):
    """Does duties for as long as the service runs. Any number of processes may have one."""

    def __init__(self, world: World, duties: Sequence[Duty] | None = None) -> None:
        super().__init__("duties", IDLE_S)
        self._world = world
        self._duties = tuple(duty for duty in (known() if duties is None else duties) if self._can(duty))

    def start(self, *, steal: bool = False) -> None:
        """Call once before `run_forever`. `steal`: this process knows itself to be alone."""
        if steal:
            with self._world.database.transaction() as session:
                rows.free_others(session, self.owner)

    def run_once(self, stop: threading.Event | None = None, /) -> bool:
        """Does every duty that is due, each once."""
        return bool(self.run_due(stop))

    def run_due(self, stop: threading.Event | None = None) -> list[str]:
        """Does what is due, once; returns the names of the duties it had."""
        stop = stop or threading.Event()
        had = []
        for duty in self._duties:
            if stop.is_set():
                break
            begun = self._world.clock()
            taken = self._take(duty, begun)
            if taken is not None:
                had.append(duty.name)
                self.do(_Turn(self._world, duty, taken, self.owner, begun, stop))
        return had

    def _can(self, duty: Duty) -> bool:
        github = self._world.github
        if github is None:
            return not duty.asks
        return github.is_app or not duty.as_app

    def _take(self, duty: Duty, at: datetime) -> Taken | None:
        with self._world.database.reading() as session:
            if not rows.is_due(session, duty.name, at, duty.every):
                return None
        with self._world.database.transaction(durable=False) as session:
            return rows.take(session, duty.name, self.owner, at, duty.every, LEASE)


class _Turn:
    """A duty that is ours for now. One that fails is done again when it is due the next time."""

    def __init__(
        self, world: World, duty: Duty, taken: Taken, owner: str, begun: datetime, stop: threading.Event
    ) -> None:
        self._world, self._duty, self._taken, self._owner, self._begun = world, duty, taken, owner, begun
        self._lease = Lease(
            stop, self._renew, renew_s=LEASE.total_seconds() / 3, monotonic=lambda: world.clock().timestamp()
        )

    @property
    def about(self) -> Mapping[str, object]:
        """The duty."""
        return {"duty": self._duty.name}

    def work(self) -> None:
        """Does the duty."""
        work = Work(self._world, self._begun, self._taken.last, self._taken.memory, self._lease.look)
        done = self._duty.run(work)
        self._write(done)
        log.info("duty done", note=done.note)

    def give_back(self) -> None:
        """Frees the duty."""
        with self._world.database.transaction(durable=False) as session:
            rows.release(session, self._duty.name, self._owner)

    def wait(self) -> float | None:
        """It is tried again when it is due."""
        return None

    def postpone(self, error: Exception, seconds: float) -> None:
        """Never asked for."""
        raise NotImplementedError

    def fail(self, error: Exception) -> None:
        """Notes why."""
        self._write(Done(f"failed: {error}"))

    def bury(self, bug: Exception) -> None:
        """Notes which bug."""
        self._write(Done(f"a bug of Assay: {type(bug).__name__}: {bug}"))

    def _write(self, done: Done) -> None:
        with self._world.database.transaction(durable=False) as session:
            rows.done(session, self._duty.name, self._owner, self._begun, done.note, done.memory)

    def _renew(self) -> None:
        with self._world.database.transaction(durable=False) as session:
            if not rows.renew(session, self._duty.name, self._owner, self._world.clock() + LEASE):
                raise Abandoned(self._duty.name)
