"""Batches of cases and answers: a frame costs as much as a small case.

The worker imports this too: Python 3.8, the standard library and numpy only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple

from fuzzing.cases.programs import Program, checked_program
from fuzzing.cases.values import Value
from fuzzing.execute.protocol import (
    BlobReader,
    Header,
    ProtocolError,
    decode_inputs,
    describe_values,
    encode_json,
    frame_prefix,
)

if TYPE_CHECKING:
    from fuzzing.cases import TestCase

#: Size in bytes at which a batch is sent: a worker cannot start before it has the whole batch.
FULL = 1 << 16

_NEVER = 1 << 63  # nanoseconds: some three centuries of uptime

Named = List[Tuple[str, Value]]
Notes = Tuple[Tuple[str, str], ...]


class CaseRequest(NamedTuple):
    """A case as sent to the worker.

    instrumentation  arguments of `fuzzing.backends.base.Instrumentation`; None for a plain run
    """

    number: int
    program: Program
    inputs: Named
    instrumentation: Optional[Dict[str, Any]] = None


class Answer(NamedTuple):
    """A worker's result of one case.

    marks  start of each phase entered, and end of the last one: nanoseconds, monotonic clock
    error  description of an exception; None if none was raised
    size   bytes of `data` that describe the outputs
    data   the outputs, see `protocol.encode_values`
    notes  of an instrumented case, see `fuzzing.backends.base.Instrumentation`
    """

    number: int
    marks: Tuple[int, ...]
    error: Optional[Dict[str, Any]]
    size: int = 0
    data: bytes = b""
    notes: Notes = ()


class RequestBatch:
    """Supervisor: cases to send in one frame.

    instrumentation  of all of them: arguments of `fuzzing.backends.base.Instrumentation`
    size             bytes
    """

    def __init__(self) -> None:
        self._headers: List[bytes] = []
        self._blobs: List[bytes] = []
        self.instrumentation: Mapping[str, Any] = {}
        self.size = 0

    def __bool__(self) -> bool:
        """Whether there is any case."""
        return bool(self._headers)

    def add(self, number: int, description: bytes, blob: bytes) -> None:
        """Adds a case; the remaining arguments are those of `encode_request`."""
        self._headers.append(b"[%d,%b" % (number, description))
        self._blobs.append(blob)
        self.size += len(blob)

    def frame(self) -> List[bytes]:
        """The frame of all cases, at least one, in parts; empties the batch."""
        text = b'{"instrumentation":%b,"cases":[%b]}' % (
            encode_json(dict(self.instrumentation)),
            b",".join(self._headers),
        )
        parts = [frame_prefix(text, self.size), *self._blobs]
        self._headers, self._blobs, self.size = [], [], 0
        return parts


def encode_request(case: TestCase) -> Tuple[bytes, bytes]:
    """A case for a frame: its part of the header, without the number; program and inputs."""
    program = case.program.to_bytes()
    description, blob = describe_values(case.values())
    return f"{encode_json(case.program.kind).decode()},{len(program)},{description}]".encode(), program + blob


def parse_requests(header: Header, blob: bytes) -> List[CaseRequest]:
    """Worker: the cases of a frame."""
    instrumentation, found, begin = header["instrumentation"] or None, [], 0
    for number, kind, size, description in header["cases"]:
        program = checked_program(kind, blob[begin : begin + size])
        inputs, begin = decode_inputs(description, blob, begin + size)
        found.append(CaseRequest(number, program, inputs, instrumentation))
    return found


class AnswerBatch:
    """Worker: answers to send in one frame."""

    def __init__(self) -> None:
        self._headers: List[Tuple[Any, ...]] = []
        self._blobs: List[bytes] = []

    def add(
        self,
        number: int,
        marks: Iterable[int],
        error: Optional[Dict[str, Any]],
        outputs: Tuple[int, bytes] = (0, b""),
        notes: Iterable[Tuple[str, str]] = (),
    ) -> None:
        """Adds an answer; outputs as from `protocol.encode_values`, the other arguments as in Answer."""
        size, data = outputs
        self._headers.append((number, marks, error, size, len(data), notes))
        self._blobs.append(data)

    def frame(self) -> bytes:
        """The frame of all answers; empties the batch."""
        text, blobs = encode_json({"answers": self._headers}), self._blobs
        self._headers, self._blobs = [], []
        return b"".join([frame_prefix(text, sum(map(len, blobs))), *blobs])


def parse_answers(header: Header, blob: bytes) -> Iterator[Answer]:
    """Supervisor: the answers of a frame that are readable; raises ProtocolError.

    Each answer has its own part of the blob, so that wrong lengths in one do not corrupt another's outputs.
    """
    cursor = BlobReader(blob)
    try:
        for number, marks, error, size, whole, notes in header["answers"]:
            if error is not None and not isinstance(error, dict):
                raise ValueError("an error that is no object")
            notes_read = tuple([(str(what), str(name)) for what, name in notes]) if notes else ()
            data = cursor.take(int(whole))
            when = tuple(map(int, marks))
            if when and not 0 <= min(when) <= max(when) < _NEVER:
                raise ValueError("times that no clock shows")
            yield Answer(int(number), when, error, int(size), data, notes_read)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise ProtocolError(f"a worker sent answers that are none: {error!r}") from None
