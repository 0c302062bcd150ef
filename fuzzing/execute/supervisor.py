"""The supervisor: feeds cases to persistent workers and turns what happens into executions.

One thread serves all workers. Each has a few cases ahead in its pipe, so that it never waits for us. A
crash, a hang or memory out of bounds is charged to the case in hand, costs one new process, and the
cases that were waiting behind it go to that one.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from fuzzing import backends
from fuzzing.cases import TestCase
from fuzzing.errors import ToolchainError
from fuzzing.execute import batches, gpu, isolation, protocol
from fuzzing.execute.answers import executed
from fuzzing.execute.execution import Ending, Execution
from fuzzing.execute.nursery import Nursery
from fuzzing.execute.pace import Pace
from fuzzing.execute.process import Command, Death, WorkerProcess
from fuzzing.outcomes import MAX_TEXT, Phase

AHEAD_BYTES = 8 << 20  # sent ahead of a worker, or waiting to be
SIP = 16  # cases that a worker is given at a time
TICK_S = 0.05  # how often clocks and memory are looked at
#: While every worker has more than twice this ahead we look away so long: to wake us at each answer costs a
#: worker more than to give it (a pipe whose reader sleeps needs an interrupt to another core).
PAUSE_S = 0.04
_IDLE_DEATHS = 3  # a compiler that dies this often between cases is broken, not its cases
_START_TRIES = 2
_MUTE_S = 5.0  # beyond the time of all phases: a worker that has not answered by then never will
#: A wait of PAUSE_S and TICK_S that took so long was none: we were stopped, and the workers with us. Far more
#: than a busy machine makes us wait each time, for then a hang would never be one.
_STOPPED_S = 5.0
#: For a process that has closed its pipe to be gone. It writes no core; but on a busy machine it may not run
#: for seconds, and if we kill it then, its crash looks like memory running out.
_DYING_S = 20.0

Tag = TypeVar("Tag")


class _Job(NamedTuple, Generic[Tag]):
    tag: Tag
    case: TestCase


@dataclass(eq=False)
class _Slot(Generic[Tag]):
    """One place for a worker, and what is known about the one that has it."""

    worker: WorkerProcess
    gpu: gpu.Slot | None = None
    heard: float = 0.0  # when it last answered, or was given what it has to answer
    ready: bool = False
    waiting: dict[int, _Job[Tag]] = field(default_factory=dict)
    overdue: protocol.Status | None = None  # seen late once; the page may have been torn
    excused: tuple[float, float] = (0.0, 0.0)  # the beginning of a phase, and seconds of it that do not count
    peak: tuple[int, int] = (0, 0)  # seq, bytes
    pace: Pace = field(default_factory=Pace)


class Supervisor(Generic[Tag]):
    """Runs cases on `workers` processes of one toolchain; on CUDA, on no more than there are free devices.

    fresh      every case gets a process of its own, for evidence rather than speed
    mute_s     how long a worker may owe an answer, whatever it says that it is doing; by default the time
               of all phases and some more
    respawns   how many processes were started to replace one that a case had ended
    busy_s     seconds spent inside the compiler's phases, all workers together
    versions   what the toolchain says it holds, known once the first worker is up
    isolation  the level that holds for the workers (isolation.LEVELS), known then too; "" before
    """

    def __init__(
        self, command: Command, *, workers: int = 1, fresh: bool = False, mute_s: float | None = None
    ) -> None:
        self.command = command
        self.respawns = 0
        self.busy_s = 0.0
        self.versions: dict[str, str] = {}
        self.isolation = ""
        self._workers = workers
        self._fresh = fresh
        limits = command.limits
        phases_s = limits.convert_s + limits.compile_s + limits.run_s
        self._mute_s = phases_s + _MUTE_S if mute_s is None else mute_s
        self._nurseries: list[Nursery] = []  # those that could have another worker
        self._forks = not fresh and command.device == "CPU" and backends.get(command.backend).forkable
        kinds = backends.get(command.backend).devices
        self._gpus = gpu.Pool(kinds=kinds) if command.device == gpu.DEVICE else None
        self._sent = 0
        self._idle_deaths = 0
        self._failed_starts = 0
        self._watch: Mapping[str, Any] = {}
        self._singly = 0  # cases next in turn that must be alone in their worker's pipe
        self._next_look = 0.0
        self._again: deque[_Job[Tag]] = deque()
        self._slots: list[_Slot[Tag]] = []
        self._done: deque[tuple[Tag, Execution]] = deque()
        self._selector = selectors.DefaultSelector()

    @property
    def ready(self) -> int:
        """How many workers have imported their compiler and take cases now."""
        return sum(slot.ready for slot in self._slots)

    def run(self, cases: Iterable[tuple[Tag, TestCase]]) -> Iterator[tuple[Tag, Execution]]:
        """The execution of each case, as they end; raises ToolchainError if no worker can be started.

        Cases are drawn only as workers need them. Closing the iterator ends all workers.
        """
        try:
            yield from self.serve(cases)
        finally:
            self.close()

    def serve(
        self, cases: Iterable[tuple[Tag, TestCase]], watch: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Tag, Execution]]:
        """As `run`, but the workers stay and wait for the next cases, until `close`.

        watch  how the backend is to take them: arguments of `fuzzing.backends.base.Watch`
        """
        source = iter(cases)
        self._watch = watch or {}
        while self._feed(source):
            self._wait()
            while self._done:
                yield self._done.popleft()
        while self._done:
            yield self._done.popleft()

    def close(self) -> None:
        """Ends all workers; nothing can be run after it."""
        while self._slots:
            slot = self._slots.pop()
            slot.worker.end()
            self._leave(slot.worker)
        while self._nurseries:
            self._nurseries.pop().close()
        self._selector.close()
        if self._gpus is not None:
            self._gpus.close()

    # -- feeding ---------------------------------------------------------------------------------

    def _feed(self, source: Iterator[tuple[Tag, TestCase]]) -> bool:
        """Sends ahead what there is room for; False when nothing is left to do.

        A few cases at a time, each time to whoever has least: the last ones leave none alone with its rest.
        """
        hungry = [slot for slot in self._slots if len(slot.waiting) < SIP]
        while (slot := self._neediest()) is not None and self._sip(slot, source):
            if slot in hungry:  # to draw all there is room for takes longer than it has work
                self._flush(slot)
        for slot in self._slots:
            self._flush(slot)
        while len(self._slots) < self._workers and (job := self._next(source)) is not None:
            opened = self._open()
            if opened is None:
                self._again.appendleft(job)
                self._workers = len(self._slots)
            else:
                self._give(opened, job)
        return any(slot.waiting for slot in self._slots)

    def _neediest(self) -> _Slot[Tag] | None:
        """The slot that has least ahead of it and room for more."""
        open_to_more = [slot for slot in self._slots if self._room(slot) > 0]
        return min(open_to_more, key=lambda slot: len(slot.waiting) * slot.pace.seconds, default=None)

    def _sip(self, slot: _Slot[Tag], source: Iterator[tuple[Tag, TestCase]]) -> bool:
        """Gives a slot a few cases; False when none are left."""
        for _ in range(min(SIP, self._room(slot))):
            job = self._next(source)
            if job is None:
                return False
            self._give(slot, job)
        return True

    def _room(self, slot: _Slot[Tag]) -> int:
        """How many cases more a slot should have."""
        if slot.worker.unsent >= AHEAD_BYTES:
            return 0
        ahead = 1 if self._fresh or self._singly else slot.pace.ahead
        return ahead - len(slot.waiting)

    def _next(self, source: Iterator[tuple[Tag, TestCase]]) -> _Job[Tag] | None:
        if self._again:
            return self._again.popleft()
        drawn = next(source, None)
        if drawn is None:
            return None
        tag, case = drawn
        return _Job(tag, case)

    def _give(self, slot: _Slot[Tag], job: _Job[Tag]) -> None:
        self._sent += 1
        if self._singly:
            self._singly -= 1
        idle = not slot.waiting
        if idle:
            slot.heard = time.monotonic()
        slot.waiting[self._sent] = job
        slot.worker.queue(self._sent, job.case, self._watch)
        if idle:  # it need not wait for those that follow, which may take their time
            self._flush(slot)

    def _open(self) -> _Slot[Tag] | None:
        """A slot with a new worker; None if there is no device for one more. The first waits for its own."""
        device = None
        if self._gpus is not None:
            device = self._gpus.try_take() if self._slots else self._gpus.take()
            if device is None:
                return None
        cores = self._free_cores()
        slot: _Slot[Tag] = _Slot(self._started_worker(device.name if device else "", cores), device)
        self._slots.append(slot)
        self._selector.register(slot.worker.read_fd, selectors.EVENT_READ, slot)
        return slot

    def _started_worker(self, cuda: str, cores: tuple[int, ...]) -> WorkerProcess:
        nursery = None
        if self._forks:
            nursery = self._nurseries.pop() if self._nurseries else Nursery(self.command)
        try:
            return WorkerProcess(self.command, cuda, cores, nursery)
        except ToolchainError:
            if nursery is not None:
                nursery.close()
            raise

    def _free_cores(self) -> tuple[int, ...]:
        """A share of the processors for one more worker, so that none has another's; () to leave it all.

        Some compilers hand each case to and fro between threads of their own though only one works at a time
        (OpenVINO). The kernel wakes those on any processor, behind another worker's turn there, and two
        workers then wait for each other a third of their time.
        """
        cores = sorted(os.sched_getaffinity(0))
        if self._gpus is not None or not 1 < self._workers <= len(cores):
            return ()
        taken = [slot.worker.cores for slot in self._slots]
        shares = [cores[place :: self._workers] for place in range(self._workers)]
        return tuple(next((share for share in shares if share not in taken), ()))

    def _flush(self, slot: _Slot[Tag]) -> None:
        """Writes what the pipe takes, and sees to the rest when it takes more."""
        slot.worker.flush()
        watched = slot.worker.write_fd in self._selector.get_map()
        if slot.worker.unsent and not watched:
            self._selector.register(slot.worker.write_fd, selectors.EVENT_WRITE, slot)
        elif watched and not slot.worker.unsent:
            self._selector.unregister(slot.worker.write_fd)

    # -- what comes back ---------------------------------------------------------------------------

    def _wait(self) -> None:
        """Takes what has come within one tick; once a tick looks at clocks and memory."""
        begin = time.monotonic()
        if all(len(slot.waiting) * slot.pace.seconds > 2 * PAUSE_S for slot in self._slots):
            time.sleep(PAUSE_S)
        events = self._selector.select(TICK_S)
        waited = time.monotonic() - begin
        if waited > _STOPPED_S:
            self._excuse(waited)
        for key, _ in events:
            slot: _Slot[Tag] = key.data
            if slot not in self._slots:
                continue  # ended by an earlier event of this round
            if key.fd == slot.worker.write_fd:
                self._flush(slot)
            else:
                self._receive(slot)
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + TICK_S
            self._look_after(now)

    def _receive(self, slot: _Slot[Tag]) -> None:
        try:
            for frame in slot.worker.receive():
                if frame is None:
                    self._died(slot)
                    return
                self._take(slot, *frame)
                if slot not in self._slots:
                    return
        except protocol.ProtocolError as error:
            self._garbled(slot, str(error))

    def _take(self, slot: _Slot[Tag], header: protocol.Header, blob: bytes) -> None:
        if "ready" in header:
            self._started(slot, header)
            return
        slot.heard = time.monotonic()
        for answer in batches.answers(header, blob):
            if not self._take_answer(slot, answer):
                return

    def _take_answer(self, slot: _Slot[Tag], answer: batches.Answer) -> bool:
        """False if the worker is ended with it."""
        number = answer.number
        job = slot.waiting.get(number)
        if job is None:
            raise protocol.ProtocolError("a worker answered a case that it was not given")
        execution = executed(answer, job.case, self._peak_of(slot, number), slot.worker.log_tail)
        del slot.waiting[number]  # not before its answer could be read, or it would be lost
        seconds = (answer.marks[-1] - answer.marks[0]) / 1e9 if answer.marks else 0.0
        slot.pace.took(seconds)
        self.busy_s += seconds
        self._idle_deaths = 0
        self._done.append((job.tag, execution))
        if self._fresh:
            self._close(slot)
        elif answer.error is not None and answer.error.get("sticky") is True:
            self._close(slot, grace_s=_DYING_S)
            self.respawns += 1
        else:
            return True
        return False

    def _started(self, slot: _Slot[Tag], header: protocol.Header) -> None:
        versions, level = header.get("versions", {}), header.get("isolation")
        well_formed = isinstance(versions, dict) and (level in isolation.LEVELS or not header["ready"])
        if slot.ready or not well_formed:
            raise protocol.ProtocolError("a worker says what only a new one could say")
        if header["ready"]:
            slot.ready = True
            slot.heard = time.monotonic()
            self._failed_starts = 0
            self.versions = {str(key): str(value) for key, value in versions.items()}
            self.isolation = str(level)
            return
        self._close(slot)
        raise ToolchainError(
            f"{self.command.python} cannot import {self.command.backend}: "
            f"{header.get('error')}: {header.get('message')}"
        )

    # -- ends ------------------------------------------------------------------------------------

    def _close(self, slot: _Slot[Tag], log_begin: int = 0, *, grace_s: float = 0.0) -> Death:
        """Ends a slot's worker; what was waiting goes to the next one."""
        self._slots.remove(slot)
        for fd in (slot.worker.read_fd, slot.worker.write_fd):
            if fd in self._selector.get_map():
                self._selector.unregister(fd)
        self._again.extendleft(reversed(slot.waiting.values()))
        slot.waiting.clear()
        death = slot.worker.end(log_begin, grace_s=grace_s)
        self._leave(slot.worker)
        if self._gpus is not None and slot.gpu is not None:
            self._gpus.give_back(slot.gpu)
        return death

    def _leave(self, worker: WorkerProcess) -> None:
        """Keeps the nursery of a worker that is dead for the next, if it can have one."""
        if worker.nursery is not None and worker.nursery.usable:
            self._nurseries.append(worker.nursery)
        elif worker.nursery is not None:
            worker.nursery.close()

    def _garbled(self, slot: _Slot[Tag], reason: str) -> None:
        """Ends a worker whose words make no sense: a case wrote into the pipe.

        Answers leave the worker several at a time, so any of those that wait may have been the one. None is
        accused for its neighbours: they are run again, each alone in the pipe.
        """
        slot.worker.abort()
        if not slot.ready or len(slot.waiting) <= 1:
            self._died(slot, garbled=reason)
            return
        self._singly = max(self._singly, len(slot.waiting))
        self._close(slot)
        self.respawns += 1

    def _died(self, slot: _Slot[Tag], garbled: str = "") -> None:
        """The worker is gone by itself, or of no use any more because its words are `garbled`."""
        status = slot.worker.status()
        if not slot.ready:
            self._never_started(self._close(slot, grace_s=_DYING_S))
            return
        if garbled and status.seq not in slot.waiting:  # the page is scribbled over too
            status = protocol.Status(min(slot.waiting, default=protocol.IDLE), Phase.RUN, time.monotonic(), 0)
        job = slot.waiting.pop(status.seq, None)
        peak = self._peak_of(slot, status.seq)
        now = time.monotonic()
        death = self._close(slot, status.log, grace_s=_DYING_S)
        self.respawns += 1
        if job is None:
            self._died_idle(death)
            return
        # A SIGKILL that we did not send is the kernel's answer to memory running out.
        ending: Ending = "out_of_memory" if death.signal == "SIGKILL" else "killed"
        self._charge(job, ending, status, now, peak, death, garbled)

    def _never_started(self, death: Death) -> None:
        self._failed_starts += 1
        if self._failed_starts < _START_TRIES:
            return
        how = death.signal or f"exit code {death.exit_code}"
        raise ToolchainError(
            f"{self.command.python} died ({how}) while importing {self.command.backend}:\n"
            f"{(death.native or death.log)[-2000:]}"
        )

    def _died_idle(self, death: Death) -> None:
        self._idle_deaths += 1
        if self._idle_deaths >= _IDLE_DEATHS:
            how = death.signal or f"exit code {death.exit_code}"
            raise ToolchainError(f"workers keep dying between cases ({how}):\n{death.log[-2000:]}")

    def _charge(
        self,
        job: _Job[Tag],
        ending: Ending,
        status: protocol.Status,
        now: float,
        peak: int,
        death: Death,
        message: str = "",
    ) -> None:
        self._done.append(
            (
                job.tag,
                Execution(
                    ending=ending,
                    message=message,
                    phase=status.phase,
                    durations={status.phase.value: max(0.0, now - status.since)},
                    signal=death.signal,
                    exit_code=death.exit_code,
                    native=death.native[-MAX_TEXT:],
                    log=death.log[-MAX_TEXT:],
                    peak_bytes=peak,
                ),
            )
        )

    # -- clocks and memory -------------------------------------------------------------------------

    def _excuse(self, seconds: float) -> None:
        """Has no worker charged for a time in which all stood still: on a frozen machine, or in Ctrl-Z."""
        for slot in self._slots:
            since = slot.worker.status().since
            before = slot.excused[1] if slot.excused[0] == since else 0.0
            slot.excused = (since, before + seconds)
            slot.heard += seconds
            slot.worker.started += seconds

    def _look_after(self, now: float) -> None:
        for slot in list(self._slots):
            status = slot.worker.status()
            if not slot.ready:
                self._watch_start(slot, now)
            elif status.seq != protocol.IDLE:
                self._watch_case(slot, status, now)
            if slot in self._slots and slot.ready and slot.waiting:
                self._watch_silence(slot, now)

    def _watch_start(self, slot: _Slot[Tag], now: float) -> None:
        allowed = self.command.limits.import_s
        if now - slot.worker.started > allowed:
            slot.worker.abort()
            death = self._close(slot)
            raise ToolchainError(
                f"importing {self.command.backend} with {self.command.python} took more than "
                f"{allowed:g} s:\n{(death.native or death.log)[-2000:]}"
            )

    def _watch_case(self, slot: _Slot[Tag], status: protocol.Status, now: float) -> None:
        resident = slot.worker.resident()
        seq, peak = slot.peak
        slot.peak = (status.seq, max(resident, peak if seq == status.seq else 0))
        if resident > self.command.limits.memory_bytes:
            self._kill(slot, "out_of_memory", status, now)
        elif now - status.since <= self.command.limits.seconds(status.phase) + self._excused(slot, status):
            slot.overdue = None
        elif slot.overdue == status:
            slot.worker.abort()
            self._kill(slot, "hung", status, now)
        else:
            slot.overdue = status

    def _excused(self, slot: _Slot[Tag], status: protocol.Status) -> float:
        since, seconds = slot.excused
        return seconds if since == status.since else 0.0

    def _watch_silence(self, slot: _Slot[Tag], now: float) -> None:
        """The page is the worker's word, too; whatever it says, an answer is due some time."""
        if now - slot.heard > self._mute_s:
            self._garbled(slot, "a worker has given no answer, though it says that it is not late")

    def _kill(self, slot: _Slot[Tag], ending: Ending, status: protocol.Status, now: float) -> None:
        """Ends a worker for what its case does, unless that case has just ended."""
        if slot.waiting and status.seq in slot.waiting:
            with contextlib.suppress(protocol.ProtocolError):  # it is ended anyway
                self._drain(slot)
        if slot not in self._slots or status.seq not in slot.waiting:
            return
        job = slot.waiting.pop(status.seq)
        peak = self._peak_of(slot, status.seq)
        death = self._close(slot, status.log)
        self.respawns += 1
        self._charge(job, ending, status, now, peak, death)

    def _drain(self, slot: _Slot[Tag]) -> None:
        """Takes the answers that are in the pipe already, but not the end of the worker."""
        for frame in slot.worker.receive():
            if frame is not None:
                self._take(slot, *frame)
                if slot not in self._slots:
                    return

    def _peak_of(self, slot: _Slot[Tag], seq: int) -> int:
        return slot.peak[1] if slot.peak[0] == seq else 0
