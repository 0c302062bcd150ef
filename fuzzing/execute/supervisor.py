"""The supervisor: feeds cases to persistent workers and turns the results into executions.

One thread serves all workers. Each has a few cases queued in its pipe, so that it never waits. A crash, a
hang or a memory limit is charged to the current case and costs one new process, which gets the cases queued
behind it. A case on which a process dies that ran others before runs once more: one of those may have written
out of bounds.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from fuzzing import backends
from fuzzing.cases import TestCase
from fuzzing.errors import ToolchainError
from fuzzing.execute import batches, gpu_slots, protocol
from fuzzing.execute.answer_parser import parse_execution
from fuzzing.execute.forkserver import ForkServerPool
from fuzzing.execute.prefetch import Prefetch
from fuzzing.execute.sandbox import isolation
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execute.worker_process import ProcessExit, WorkerProcess
from fuzzing.execution import Ending, Execution
from fuzzing.outcomes import MAX_TEXT, Phase

PREFETCH_BYTES = 8 << 20  # sent ahead to a worker, or buffered
BATCH_CASES = 16  # cases sent to a worker at a time
CHECK_INTERVAL_S = 0.05  # between checks of clocks and memory
TOTALS_INTERVAL_S = 1.0  # between checks of a worker's files, which take longer
#: Sleep while every worker has more than twice this queued: waking the supervisor at each answer costs a
#: worker more than the answer (a pipe with a sleeping reader needs an interrupt to another core).
SLEEP_S = 0.04
_MAX_IDLE_EXITS = 3  # a compiler that dies this often between cases is broken, not its cases
_START_TRIES = 2
_RESPONSE_MARGIN_S = 5.0  # beyond the time of all phases: a worker that has not answered by then never will
#: A wait of SLEEP_S and CHECK_INTERVAL_S that took this long means that the supervisor and its workers were
#: stopped. Far more than the delays of a busy machine, which would otherwise hide hangs.
_PAUSE_THRESHOLD_S = 5.0
#: For a process that has closed its pipe to exit. It writes no core, but on a busy machine it may not run for
#: seconds, and if it is killed then, its crash looks like memory exhaustion.
_EXIT_GRACE_S = 20.0

Tag = TypeVar("Tag")


class _QueuedCase(NamedTuple, Generic[Tag]):
    """A case to run; `again` if a process that ran others before it died on it."""

    tag: Tag
    case: TestCase
    again: bool = False


@dataclass(eq=False)
class _Slot(Generic[Tag]):
    """The place of one worker, and its state."""

    worker: WorkerProcess
    gpu_slot: gpu_slots.GpuSlot | None = None
    interpreter: int | None = None  # the number of the one that forked it
    first: int = 0  # the number of the first case, 0 before
    last_answer: float = 0.0  # when it last answered, or got a case while idle
    ready: bool = False
    waiting: dict[int, _QueuedCase[Tag]] = field(default_factory=dict)
    overdue: protocol.Status | None = None  # seen late once; the page may have been torn
    uncounted: tuple[float, float] = (
        0.0,
        0.0,
    )  # the start of a phase, and seconds of it that do not count
    peak: tuple[int, int] = (0, 0)  # seq, bytes
    totals_checked: float = 0.0
    prefetch: Prefetch = field(default_factory=Prefetch)


class Supervisor(Generic[Tag]):
    """Runs cases on `workers` processes of one toolchain; on CUDA, at most one per free device.

    fresh             every case gets a process of its own, for evidence instead of speed
    interpreter       the tag of a case → the number of the interpreter that forks its process, where the
                      compiler can be forked; by default 0, with `fresh` an interpreter of its own.
                      Interpreters of different numbers share neither hash seed nor memory layout
    forkservers       of a supervisor whose command differs in options at most; the caller closes them
    response_timeout  longest wait for an answer, whatever the status page shows; by default the time of all
                      phases and a margin
    respawns          number of processes started to replace one that a case had ended
    busy_s            seconds spent inside the compiler's phases, all workers together
    versions          of the toolchain's packages, known once the first worker is up
    isolation         the workers' level (isolation.LEVELS), known then too; "" before
    """

    def __init__(
        self,
        command: WorkerCommand,
        *,
        workers: int = 1,
        fresh: bool = False,
        interpreter: Callable[[Tag], int] | None = None,
        forkservers: ForkServerPool | None = None,
        response_timeout: float | None = None,
    ) -> None:
        self.command = command
        self.respawns = 0
        self.busy_s = 0.0
        self.versions: dict[str, str] = {}
        self.isolation = ""
        self._workers = workers
        self._fresh = fresh
        self._interpreter = interpreter
        limits = command.limits
        phases_s = limits.convert_s + limits.compile_s + limits.run_s
        self._response_timeout = (
            phases_s + _RESPONSE_MARGIN_S if response_timeout is None else response_timeout
        )
        self._forkservers = forkservers or ForkServerPool()
        self._shares_forkservers = forkservers is not None
        self._forkable = command.device == "CPU" and backends.get(command.backend).forkable
        kinds = backends.get(command.backend).devices
        self._gpus = gpu_slots.GpuPool(kinds=kinds) if command.device == gpu_slots.CUDA_DEVICE else None
        self._sent = 0
        self._idle_exits = 0
        self._failed_starts = 0
        self._instrumentation: Mapping[str, Any] = {}
        self._one_at_a_time = 0  # next cases that must be alone in their worker's pipe
        self._next_check = 0.0
        self._retry: deque[_QueuedCase[Tag]] = deque()
        self._slots: list[_Slot[Tag]] = []
        self._done: deque[tuple[Tag, Execution]] = deque()
        self._selector = selectors.DefaultSelector()

    @property
    def ready(self) -> int:
        """Number of workers that have imported their compiler and take cases now."""
        return sum(slot.ready for slot in self._slots)

    def run(
        self, cases: Iterable[tuple[Tag, TestCase]], instrumentation: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Tag, Execution]]:
        """The execution of each case, as they end; raises ToolchainError if no worker can be started.

        Cases are drawn only as workers need them. Closing the iterator ends all workers.

        instrumentation  as in `serve`
        """
        try:
            yield from self.serve(cases, instrumentation)
        finally:
            self.close()

    def serve(
        self, cases: Iterable[tuple[Tag, TestCase]], instrumentation: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Tag, Execution]]:
        """As `run`, but the workers stay for the next cases, until `close`.

        instrumentation  of the cases: arguments of `fuzzing.backends.base.Instrumentation`
        """
        source = iter(cases)
        self._instrumentation = instrumentation or {}
        while self._feed(source):
            self._wait()
            while self._done:
                yield self._done.popleft()
        while self._done:
            yield self._done.popleft()

    def renew(self, *, only_forked: bool = False) -> None:
        """Ends all workers, or the forked ones, which must be idle: the next case runs in a new process."""
        for slot in [slot for slot in self._slots if slot.worker.is_forked or not only_forked]:
            self._close(slot)

    def close(self) -> None:
        """Ends all workers; nothing can be run after it."""
        while self._slots:
            slot = self._slots.pop()
            slot.worker.end()
            self._reuse_forkserver(slot)
        if not self._shares_forkservers:
            self._forkservers.close()
        self._selector.close()
        if self._gpus is not None:
            self._gpus.close()

    # Feeding

    def _feed(self, source: Iterator[tuple[Tag, TestCase]]) -> bool:
        """Sends cases ahead while there is room; False when nothing is left to do.

        A few cases at a time, each time to the least loaded worker, so that the last cases are spread evenly.
        """
        short_of_work = [slot for slot in self._slots if len(slot.waiting) < BATCH_CASES]
        while (slot := self._least_loaded()) is not None and self._assign_batch(slot, source):
            if slot in short_of_work:  # drawing all there is room for takes longer than its queued work
                self._flush(slot)
        for slot in self._slots:
            self._flush(slot)
        while len(self._slots) < self._workers and (queued := self._next(source)) is not None:
            opened = self._open(queued)
            if opened is None:
                self._retry.appendleft(queued)
                self._workers = len(self._slots)
            else:
                self._assign(opened, queued)
        return any(slot.waiting for slot in self._slots)

    def _least_loaded(self) -> _Slot[Tag] | None:
        """The slot with the least queued and room for more."""
        open_to_more = [slot for slot in self._slots if self._room(slot) > 0]
        return min(open_to_more, key=lambda slot: len(slot.waiting) * slot.prefetch.seconds, default=None)

    def _assign_batch(self, slot: _Slot[Tag], source: Iterator[tuple[Tag, TestCase]]) -> bool:
        """Sends a slot a few cases; False when none are left, or the next one is for a new process."""
        for _ in range(min(BATCH_CASES, self._room(slot))):
            if self._retry and self._retry[0].again and len(self._slots) < self._workers:
                return False
            queued = self._next(source)
            if queued is None:
                return False
            self._assign(slot, queued)
        return True

    def _room(self, slot: _Slot[Tag]) -> int:
        """How many more cases a slot should have."""
        if slot.worker.unsent >= PREFETCH_BYTES:
            return 0
        depth = 1 if self._fresh or self._one_at_a_time else slot.prefetch.depth
        return depth - len(slot.waiting)

    def _next(self, source: Iterator[tuple[Tag, TestCase]]) -> _QueuedCase[Tag] | None:
        if self._retry:
            return self._retry.popleft()
        drawn = next(source, None)
        if drawn is None:
            return None
        tag, case = drawn
        return _QueuedCase(tag, case)

    def _assign(self, slot: _Slot[Tag], queued: _QueuedCase[Tag]) -> None:
        self._sent += 1
        if self._one_at_a_time:
            self._one_at_a_time -= 1
        idle = not slot.waiting
        if idle:
            slot.last_answer = time.monotonic()
        slot.first = slot.first or self._sent
        slot.waiting[self._sent] = queued
        slot.worker.queue(self._sent, queued.case, self._instrumentation)
        if idle:  # it need not wait for the following ones, which may take time to draw
            self._flush(slot)

    def _interpreter_of(self, queued: _QueuedCase[Tag]) -> int | None:
        """The number of the interpreter that forks the process of a case; None for one of its own."""
        if not self._forkable:
            return None
        return (self._interpreter and self._interpreter(queued.tag)) or (None if self._fresh else 0)

    def _open(self, queued: _QueuedCase[Tag]) -> _Slot[Tag] | None:
        """A slot with a new worker for a case; None if no device is free. The first waits for a device."""
        interpreter = self._interpreter_of(queued)
        device = None
        if self._gpus is not None:
            device = self._gpus.try_acquire() if self._slots else self._gpus.acquire()
            if device is None:
                return None
        cores = self._free_cores()
        worker = self._start_worker(device.name if device else "", cores, interpreter, queued.case)
        slot: _Slot[Tag] = _Slot(worker, device, interpreter)
        self._slots.append(slot)
        self._selector.register(slot.worker.read_fd, selectors.EVENT_READ, slot)
        return slot

    def _start_worker(
        self, cuda: str, cores: tuple[int, ...], interpreter: int | None, case: TestCase
    ) -> WorkerProcess:
        forkserver = None
        if interpreter is not None:
            forkserver = self._forkservers.take(interpreter, self.command)
        try:
            return WorkerProcess(self.command, cuda, cores, forkserver, case.program.kind)
        except ToolchainError:
            if forkserver is not None:
                forkserver.close()
            raise

    def _free_cores(self) -> tuple[int, ...]:
        """A share of the processors for one more worker that no other has; () for no restriction.

        Some compilers pass each case between threads of their own though only one works at a time (OpenVINO).
        The kernel wakes those on any processor, behind another worker's time slice, and two workers then wait
        for each other a third of their time.
        """
        cores = sorted(os.sched_getaffinity(0))
        if self._gpus is not None or not 1 < self._workers <= len(cores):
            return ()
        taken = [slot.worker.cores for slot in self._slots]
        shares = [cores[place :: self._workers] for place in range(self._workers)]
        return tuple(next((share for share in shares if share not in taken), ()))

    def _flush(self, slot: _Slot[Tag]) -> None:
        """Writes what the pipe takes, and watches the pipe for the rest."""
        slot.worker.flush()
        watched = slot.worker.write_fd in self._selector.get_map()
        if slot.worker.unsent and not watched:
            self._selector.register(slot.worker.write_fd, selectors.EVENT_WRITE, slot)
        elif watched and not slot.worker.unsent:
            self._selector.unregister(slot.worker.write_fd)

    # Answers

    def _wait(self) -> None:
        """Processes what arrives within one tick; once a tick checks clocks and memory."""
        begin = time.monotonic()
        if all(len(slot.waiting) * slot.prefetch.seconds > 2 * SLEEP_S for slot in self._slots):
            time.sleep(SLEEP_S)
        events = self._selector.select(CHECK_INTERVAL_S)
        waited = time.monotonic() - begin
        if waited > _PAUSE_THRESHOLD_S:
            self._discount_pause(waited)
        for key, _ in events:
            slot: _Slot[Tag] = key.data
            if slot not in self._slots:
                continue  # ended by an earlier event of this round
            if key.fd == slot.worker.write_fd:
                self._flush(slot)
            else:
                self._receive(slot)
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + CHECK_INTERVAL_S
            self._check_workers(now)

    def _receive(self, slot: _Slot[Tag]) -> None:
        try:
            for frame in slot.worker.receive():
                if frame is None:
                    self._handle_exit(slot)
                    return
                self._handle_frame(slot, *frame)
                if slot not in self._slots:
                    return
        except protocol.ProtocolError as error:
            self._end_unreadable(slot, str(error))

    def _handle_frame(self, slot: _Slot[Tag], header: protocol.Header, blob: bytes) -> None:
        if "ready" in header:
            self._handle_ready(slot, header)
            return
        slot.last_answer = time.monotonic()
        for answer in batches.parse_answers(header, blob):
            if not self._handle_answer(slot, answer):
                return

    def _handle_answer(self, slot: _Slot[Tag], answer: batches.Answer) -> bool:
        """False if the worker is ended with it."""
        number = answer.number
        queued = slot.waiting.get(number)
        if queued is None:
            raise protocol.ProtocolError("a worker answered a case that it was not given")
        execution = parse_execution(answer, queued.case, self._peak_of(slot, number), slot.worker.log_tail)
        del slot.waiting[number]  # not before its answer was parsed, or the case would be lost
        seconds = (answer.marks[-1] - answer.marks[0]) / 1e9 if answer.marks else 0.0
        slot.prefetch.record(seconds)
        self.busy_s += seconds
        self._idle_exits = 0
        self._done.append((queued.tag, execution))
        if self._fresh:
            self._close(slot)
        elif answer.error is not None and answer.error.get("sticky") is True:
            self._close(slot, grace_s=_EXIT_GRACE_S)
            self.respawns += 1
        else:
            return True
        return False

    def _handle_ready(self, slot: _Slot[Tag], header: protocol.Header) -> None:
        versions, level = header.get("versions", {}), header.get("isolation")
        well_formed = isinstance(versions, dict) and (level in isolation.LEVELS or not header["ready"])
        if slot.ready or not well_formed:
            raise protocol.ProtocolError("a worker sent what only a new one may send")
        if header["ready"]:
            slot.ready = True
            slot.last_answer = time.monotonic()
            self._failed_starts = 0
            self.versions = {str(key): str(value) for key, value in versions.items()}
            self.isolation = str(level)
            return
        self._close(slot)
        raise ToolchainError(
            f"{self.command.python} cannot import {self.command.backend}: "
            f"{header.get('error')}: {header.get('message')}"
        )

    # Ends of workers

    def _close(self, slot: _Slot[Tag], log_begin: int = 0, *, grace_s: float = 0.0) -> ProcessExit:
        """Ends a slot's worker; its queued cases go to the next one."""
        self._slots.remove(slot)
        for fd in (slot.worker.read_fd, slot.worker.write_fd):
            if fd in self._selector.get_map():
                self._selector.unregister(fd)
        self._retry.extendleft(reversed(slot.waiting.values()))
        slot.waiting.clear()
        process_exit = slot.worker.end(log_begin, grace_s=grace_s)
        self._reuse_forkserver(slot)
        if self._gpus is not None and slot.gpu_slot is not None:
            self._gpus.return_slot(slot.gpu_slot)
        return process_exit

    def _reuse_forkserver(self, slot: _Slot[Tag]) -> None:
        """Gives back the forkserver of a dead worker."""
        forkserver = slot.worker.forkserver
        if forkserver is not None:
            assert slot.interpreter is not None
            self._forkservers.give_back(slot.interpreter, forkserver)

    def _end_unreadable(self, slot: _Slot[Tag], reason: str) -> None:
        """Ends a worker whose frames are malformed: a case wrote into the pipe.

        Answers leave the worker several at a time, so it may have been any of the queued cases. All are run
        again, each alone in the pipe.
        """
        slot.worker.abort()
        if not slot.ready or len(slot.waiting) <= 1:
            self._handle_exit(slot, protocol_error=reason)
            return
        self._one_at_a_time = max(self._one_at_a_time, len(slot.waiting))
        self._close(slot)
        self.respawns += 1

    def _handle_exit(self, slot: _Slot[Tag], protocol_error: str = "") -> None:
        """Handles a worker that exited, or that is ended because of `protocol_error`."""
        status = slot.worker.status()
        if not slot.ready:
            self._handle_failed_start(self._close(slot, grace_s=_EXIT_GRACE_S))
            return
        if protocol_error and status.seq not in slot.waiting:  # the page is overwritten too
            status = protocol.Status(min(slot.waiting, default=protocol.IDLE), Phase.RUN, time.monotonic(), 0)
        queued = slot.waiting.pop(status.seq, None)
        peak = self._peak_of(slot, status.seq)
        now = time.monotonic()
        process_exit = self._close(slot, status.log, grace_s=_EXIT_GRACE_S)
        self.respawns += 1
        if queued is None:
            self._handle_idle_exit(process_exit)
            return
        if not queued.again and status.seq != slot.first and process_exit.signal not in ("", "SIGKILL"):
            self._retry.appendleft(queued._replace(again=True))
            return
        # A SIGKILL from anyone else comes from the kernel when memory runs out.
        ending: Ending = "out_of_memory" if process_exit.signal == "SIGKILL" else "killed"
        self._record_failure(queued, ending, status, now, peak, process_exit, protocol_error)

    def _handle_failed_start(self, process_exit: ProcessExit) -> None:
        self._failed_starts += 1
        if self._failed_starts < _START_TRIES:
            return
        how = process_exit.signal or f"exit code {process_exit.exit_code}"
        raise ToolchainError(
            f"{self.command.python} died ({how}) while importing {self.command.backend}:\n"
            f"{(process_exit.native or process_exit.log)[-2000:]}"
        )

    def _handle_idle_exit(self, process_exit: ProcessExit) -> None:
        self._idle_exits += 1
        if self._idle_exits >= _MAX_IDLE_EXITS:
            how = process_exit.signal or f"exit code {process_exit.exit_code}"
            raise ToolchainError(f"workers keep dying between cases ({how}):\n{process_exit.log[-2000:]}")

    def _record_failure(
        self,
        queued: _QueuedCase[Tag],
        ending: Ending,
        status: protocol.Status,
        now: float,
        peak: int,
        process_exit: ProcessExit,
        message: str = "",
    ) -> None:
        self._done.append(
            (
                queued.tag,
                Execution(
                    ending=ending,
                    message=message,
                    phase=status.phase,
                    durations={status.phase.value: max(0.0, now - status.since)},
                    signal=process_exit.signal,
                    exit_code=process_exit.exit_code,
                    native=process_exit.native[-MAX_TEXT:],
                    log=process_exit.log[-MAX_TEXT:],
                    peak_bytes=peak,
                ),
            )
        )

    # Clocks and memory

    def _discount_pause(self, seconds: float) -> None:
        """Does not charge workers for time in which the machine or the supervisor was stopped."""
        for slot in self._slots:
            since = slot.worker.status().since
            before = slot.uncounted[1] if slot.uncounted[0] == since else 0.0
            slot.uncounted = (since, before + seconds)
            slot.last_answer += seconds
            slot.worker.started += seconds

    def _check_workers(self, now: float) -> None:
        for slot in list(self._slots):
            if slot.ready and slot.worker.has_exited():
                # A process that the case left holds the pipe open.
                self._receive(slot)
                if slot in self._slots:
                    self._handle_exit(slot)
                continue
            status = slot.worker.status()
            if not slot.ready:
                self._check_start(slot, now)
            elif status.seq != protocol.IDLE:
                self._check_limits(slot, status, now)
            if slot in self._slots and slot.ready and slot.waiting:
                self._check_response(slot, now)

    def _check_start(self, slot: _Slot[Tag], now: float) -> None:
        allowed = self.command.limits.import_s
        if now - slot.worker.started > allowed:
            slot.worker.abort()
            process_exit = self._close(slot)
            raise ToolchainError(
                f"importing {self.command.backend} with {self.command.python} took more than "
                f"{allowed:g} s:\n{(process_exit.native or process_exit.log)[-2000:]}"
            )

    def _check_limits(self, slot: _Slot[Tag], status: protocol.Status, now: float) -> None:
        resident = slot.worker.resident()
        seq, peak = slot.peak
        slot.peak = (status.seq, max(resident, peak if seq == status.seq else 0))
        if resident > self.command.limits.memory_bytes:
            self._kill(slot, "out_of_memory", status, now)
        elif total := self._exceeded_total(slot, now):
            self._kill(slot, total, status, now)
        elif now - status.since <= self.command.limits.seconds(status.phase) + self._uncounted(slot, status):
            slot.overdue = None
        elif slot.overdue == status:
            slot.worker.abort()
            self._kill(slot, "hung", status, now)
        else:
            slot.overdue = status

    def _exceeded_total(self, slot: _Slot[Tag], now: float) -> Ending | None:
        """The total of processes or files that a worker exceeds; read once in TOTALS_INTERVAL_S."""
        if now - slot.totals_checked < TOTALS_INTERVAL_S:
            return None
        slot.totals_checked = now
        limits = self.command.limits
        if slot.worker.process_count() > limits.processes:
            return "out_of_processes"
        return "out_of_disk" if slot.worker.file_bytes(limits.scratch_bytes) > limits.scratch_bytes else None

    def _uncounted(self, slot: _Slot[Tag], status: protocol.Status) -> float:
        since, seconds = slot.uncounted
        return seconds if since == status.since else 0.0

    def _check_response(self, slot: _Slot[Tag], now: float) -> None:
        """An answer is due at some time, whatever the page shows, which the worker writes."""
        if now - slot.last_answer > self._response_timeout:
            self._end_unreadable(slot, "a worker sent no answer, though it reports none as late")

    def _kill(self, slot: _Slot[Tag], ending: Ending, status: protocol.Status, now: float) -> None:
        """Ends a worker for its current case, unless that case has just ended."""
        if slot.waiting and status.seq in slot.waiting:
            with contextlib.suppress(protocol.ProtocolError):  # it is ended anyway
                self._drain(slot)
        if slot not in self._slots or status.seq not in slot.waiting:
            return
        queued = slot.waiting.pop(status.seq)
        peak = self._peak_of(slot, status.seq)
        process_exit = self._close(slot, status.log)
        self.respawns += 1
        self._record_failure(queued, ending, status, now, peak, process_exit)

    def _drain(self, slot: _Slot[Tag]) -> None:
        """Processes the answers in the pipe, but not the end of the worker."""
        for frame in slot.worker.receive():
            if frame is not None:
                self._handle_frame(slot, *frame)
                if slot not in self._slots:
                    return

    def _peak_of(self, slot: _Slot[Tag], seq: int) -> int:
        return slot.peak[1] if slot.peak[0] == seq else 0
