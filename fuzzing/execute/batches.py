"""Cases and answers, several to a frame: some cases take no longer than a frame to be made, sent and read.

The worker's side imports this too: Python 3.8, the standard library and numpy (law 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple

from fuzzing.cases.programs import Program, kind_named
from fuzzing.cases.values import Value
from fuzzing.execute.protocol import Cursor, Header, ProtocolError, begun, described, encoded, received

if TYPE_CHECKING:
    from fuzzing.cases import TestCase

#: Bytes from which a batch of cases is sent: a worker starts with the first only when it has the last.
FULL = 1 << 16

_NEVER = 1 << 63  # nanoseconds: some three centuries of uptime

Named = List[Tuple[str, Value]]
Seen = Tuple[Tuple[str, str], ...]


class Job(NamedTuple):
    """A case as the worker has it.

    watch  how the backend is to take it: arguments of `fuzzing.backends.base.Watch`; None: as ever
    """

    number: int
    program: Program
    inputs: Named
    watch: Optional[Dict[str, Any]] = None


class Answer(NamedTuple):
    """What a worker says of a case.

    marks  when each phase that was entered began, and the last one ended: nanoseconds, monotonic clock
    error  what there is to say of an exception; None where none was raised
    size   how many bytes of `data` tell of the outputs
    data   the outputs, see `protocol.tell`
    seen   what a watched case went through
    """

    number: int
    marks: Tuple[int, ...]
    error: Optional[Dict[str, Any]]
    size: int = 0
    data: bytes = b""
    seen: Seen = ()


class CaseBatch:
    """Supervisor: cases that wait to be sent in one frame.

    watch  how the backend is to take them all: arguments of `fuzzing.backends.base.Watch`
    size   bytes of them
    """

    def __init__(self) -> None:
        self._told: List[bytes] = []
        self._blobs: List[bytes] = []
        self.watch: Mapping[str, Any] = {}
        self.size = 0

    def __bool__(self) -> bool:
        """Whether any case waits."""
        return bool(self._told)

    def add(self, number: int, told: bytes, blob: bytes) -> None:
        """Has a case wait, of which `request` says the rest."""
        self._told.append(b"[%d,%b" % (number, told))
        self._blobs.append(blob)
        self.size += len(blob)

    def frame(self) -> List[bytes]:
        """The frame of those that wait, of which there must be one at least, in parts; then none waits."""
        text = b'{"watch":%b,"cases":[%b]}' % (encoded(dict(self.watch)), b",".join(self._told))
        parts = [begun(text, self.size), *self._blobs]
        self._told, self._blobs, self.size = [], [], 0
        return parts


def request(case: TestCase) -> Tuple[bytes, bytes]:
    """What a worker is told of a case, as it stands in a header behind the number; program and inputs."""
    program = case.program.to_bytes()
    told, blob = described(case.values())
    return f"{encoded(case.program.kind).decode()},{len(program)},{told}]".encode(), program + blob


def jobs(header: Header, blob: bytes) -> List[Job]:
    """Worker: the cases of a frame."""
    watch, found, begin = header["watch"] or None, [], 0
    for number, kind, size, told in header["cases"]:
        program = kind_named(kind).from_bytes(blob[begin : begin + size])
        inputs, begin = received(told, blob, begin + size)
        found.append(Job(number, program, inputs, watch))
    return found


class AnswerBatch:
    """Worker: answers that wait to be sent in one frame."""

    def __init__(self) -> None:
        self._told: List[Tuple[Any, ...]] = []
        self._blobs: List[bytes] = []

    def add(
        self,
        number: int,
        marks: Iterable[int],
        error: Optional[Dict[str, Any]],
        outputs: Tuple[int, bytes] = (0, b""),
        seen: Iterable[Tuple[str, str]] = (),
    ) -> None:
        """Has an answer wait; outputs as `protocol.tell` gives them, the others as in Answer."""
        size, data = outputs
        self._told.append((number, marks, error, size, len(data), seen))
        self._blobs.append(data)

    def frame(self) -> bytes:
        """The frame of those that wait; then none waits."""
        text, blobs = encoded({"answers": self._told}), self._blobs
        self._told, self._blobs = [], []
        return b"".join([begun(text, sum(map(len, blobs))), *blobs])


def answers(header: Header, blob: bytes) -> Iterator[Answer]:
    """Supervisor: the answers of a frame, as they can be read; raises ProtocolError.

    Each has its own part of the blob, so that one that lies of its outputs takes none of another's.
    """
    cursor = Cursor(blob)
    try:
        for number, marks, error, size, whole, seen in header["answers"]:
            if error is not None and not isinstance(error, dict):
                raise ValueError("an error that is no object")
            noted = tuple([(str(what), str(name)) for what, name in seen]) if seen else ()
            data = cursor.take(int(whole))
            when = tuple(map(int, marks))
            if when and not 0 <= min(when) <= max(when) < _NEVER:
                raise ValueError("times that no clock tells")
            yield Answer(int(number), when, error, int(size), data, noted)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise ProtocolError(f"a worker sent answers that are none: {error!r}") from None
