"""The protocol between supervisor and worker: frames on pipes, and one shared page.

A frame is magic, length of the header, length of the blob, JSON header, blob. Tensors are in the blob, in the
order of their descriptions in the header, so that they are neither copied twice nor turned into text. The
worker's side of the pipe is untrusted: lengths are bounded and every header is checked before use.

Frames hold several cases or answers, since a frame can cost more than a case:

    {"instrumentation": {}, "cases": [[number, kind, program bytes, inputs], ...]} blob: program, inputs, ...
    {"answers": [[number, marks, error, bytes of descriptions, bytes in all, notes], ...]} blob: outputs, ...

marks are the start of each phase entered and the end of the last one, in nanoseconds of the monotonic clock;
error is an object or null. Descriptions of outputs precede them in the blob, so that expected outputs are
recognized by their bytes, without parsing. See `fuzzing.execute.batches`.

The page shows what the worker is doing without a system call on the worker's side, and stays readable after
the worker's death.
"""

from __future__ import annotations

import json
import json.encoder
import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Dict, Optional, Tuple

from fuzzing import json_encoder
from fuzzing.cases.values import Absent, Sequence, Tensor, Value
from fuzzing.errors import CaseFormatError, InfrastructureError
from fuzzing.outcomes import Phase

_PREFIX = struct.Struct("<4sIQ")
_MAGIC = b"asy1"
_encode = json_encoder.encoder(compact=True)
_quote = json.encoder.encode_basestring_ascii
_DECODER = json.JSONDecoder()
MAX_HEADER = 16 << 20
MAX_BLOB = 2 << 30
_AT_ONCE = (1 << 17) - 64  # glibc maps and unmaps larger buffers each time

Header = Dict[str, Any]


class ProtocolError(InfrastructureError):
    """The pipe's content is malformed; a case may have written there."""


def encode_json(obj: Any) -> bytes:
    """Compact JSON, as in headers."""
    return _encode(obj).encode()


def pack(header: Header, blob: bytes = b"") -> bytes:
    """A frame of a header and a blob."""
    return frame_prefix(encode_json(header), len(blob)) + blob


def frame_prefix(text: bytes, size: int) -> bytes:
    """The start of a frame with an encoded header and a blob of `size` bytes."""
    return _PREFIX.pack(_MAGIC, len(text), size) + text


def read_frame(pipe: int) -> Optional[Tuple[Header, bytes]]:
    """Worker: the next frame, blocking; None at the end. Copied once, by the kernel."""
    prefix = _read_exactly(pipe, _PREFIX.size)
    if len(prefix) < _PREFIX.size:
        return None
    _, header_size, blob_size = _PREFIX.unpack(prefix)
    text, blob = _read_exactly(pipe, header_size), _read_exactly(pipe, blob_size)
    return None if len(blob) < blob_size else (_parse_header(text), blob)


def _read_exactly(pipe: int, size: int) -> bytes:
    """`size` bytes, or fewer at the end of the file."""
    data = os.read(pipe, min(size, _AT_ONCE))
    if len(data) == size:
        return data
    parts, missing = [data], size - len(data)
    while data and missing:
        data = os.read(pipe, min(missing, _AT_ONCE))
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


class FrameReader:
    """Splits the bytes of a pipe into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = 0  # bytes of the frame at the buffer's beginning

    def feed(self, data: bytes) -> Iterator[tuple[Header, bytes]]:
        """The frames that `data` completes; raises ProtocolError if they are malformed."""
        whole = data  # mostly whole frames, which are then copied out of it alone
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return
            whole = bytes(self._buffer)
            self._buffer.clear()
        begin, there = 0, len(whole)
        try:
            while there - begin >= _PREFIX.size:
                magic, header_size, blob_size = _PREFIX.unpack_from(whole, begin)
                if magic != _MAGIC or header_size > MAX_HEADER or blob_size > MAX_BLOB:
                    raise ProtocolError("a worker wrote something that is not a frame")
                text = begin + _PREFIX.size
                middle = text + header_size
                end = middle + blob_size
                if there < end:
                    self._needed = end - begin
                    return
                begin = end
                yield _parse_header(whole[text:middle]), whole[middle:end]
            self._needed = _PREFIX.size
        finally:
            self._buffer += whole[begin:]


def _parse_header(data: bytes) -> Header:
    header = _parse_json(data, "a header")
    if not isinstance(header, dict):
        raise ProtocolError("a worker wrote a frame whose header is no object")
    return header


def _parse_json(data: bytes, what: str) -> Any:
    text = data.decode("ascii", "replace")
    try:
        found, end = _DECODER.raw_decode(text)
        if end != len(text):
            raise ValueError("more follows")
    except (ValueError, RecursionError):
        raise ProtocolError(f"a worker wrote {what} that is not JSON") from None
    return found


def describe_values(values: Iterable[tuple[str, Value]]) -> tuple[str, bytes]:
    """Named values as (JSON description, blob)."""
    blobs: list[bytes] = []
    items = [f"[{_quote(name)},{_describe_value(value, blobs)}]" for name, value in values]
    return f"[{','.join(items)}]", b"".join(blobs)


def encode_values(values: Iterable[tuple[str, Value]]) -> tuple[int, bytes]:
    """Named values as bytes without a header: (size of the description at their beginning, bytes)."""
    text, blob = describe_values(values)
    return len(text), text.encode() + blob


def decode_values(size: int, data: bytes) -> list[tuple[str, Value]]:
    """The inverse of `encode_values`; raises ProtocolError."""
    if not 0 <= size <= len(data):
        raise ProtocolError("a worker sent fewer bytes than its outputs have")
    items, cursor = _parse_json(data[:size], "a list of outputs"), BlobReader(data, size)
    if not isinstance(items, list):
        raise ProtocolError("a worker sent a message without outputs")
    found = cursor.values(items)
    if cursor.offset != len(data):
        raise ProtocolError("a worker sent bytes that belong to no output")
    return found


def decode_inputs(decode_values: Any, blob: bytes, begin: int) -> tuple[list[tuple[str, Value]], int]:
    """Worker: values described as in `describe_values`, from an offset in a blob; and the next offset.

    They are the supervisor's and not checked again.
    """
    values: list[tuple[str, Value]] = []
    for name, item in decode_values:
        if type(item) is not list:
            cursor = BlobReader(blob, begin)
            values += cursor.values([[name, item]])
            begin = cursor.offset
            continue
        dtype, shape, size = item
        values.append((name, Tensor.unvalidated(dtype, tuple(shape), blob[begin : begin + size])))
        begin += size
    return values, begin


class BlobReader:
    """Reads the described parts of a blob, one after the other."""

    __slots__ = ("blob", "offset")

    def __init__(self, blob: bytes, offset: int = 0) -> None:
        self.blob = blob
        self.offset = offset

    def take(self, size: int) -> bytes:
        """The next `size` bytes; raises ValueError if there are fewer."""
        begin = self.offset
        end = self.offset = begin + size
        if not begin <= end <= len(self.blob):
            raise ValueError(f"{size} bytes are none of those that were sent")
        return self.blob[begin:end]

    def values(self, decode_values: Any) -> list[tuple[str, Value]]:
        """The next values, described as in `describe_values`; raises ProtocolError."""
        try:
            return [
                (str(name), self._tensor(*item) if type(item) is list else self._other(item))
                for name, item in decode_values
            ]
        except (CaseFormatError, TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
            raise ProtocolError(f"a worker sent values that are none: {error}") from None

    def _tensor(self, dtype: str, shape: list[int], size: int) -> Tensor:
        begin = self.offset  # as in `take`, inlined: a case has several of these
        end = self.offset = begin + size
        if not begin <= end <= len(self.blob):
            raise ValueError(f"{size} bytes are none of those that were sent")
        return Tensor(dtype, tuple(map(int, shape)), self.blob[begin:end])

    def _other(self, item: Any) -> Value:
        if item is None:
            return Absent()
        return Sequence(tuple([self._tensor(*inner) for inner in item["items"]]))


def _describe_value(value: Value, blobs: list[bytes]) -> str:
    if isinstance(value, Tensor):
        blobs.append(value.data)
        return _describe_tensor(value.dtype, value.shape, len(value.data))
    if isinstance(value, Sequence):
        items = ",".join([_describe_value(item, blobs) for item in value.items])
        return f'{{"items":[{items}]}}'
    return "null"


@lru_cache(maxsize=4096)
def _describe_tensor(dtype: str, shape: Tuple[int, ...], size: int) -> str:
    return encode_json([dtype, shape, size]).decode()


PHASES = tuple(Phase)
_PAGE = struct.Struct("=6Q")
PAGE_BYTES = _PAGE.size
IDLE = 0


@dataclass(frozen=True)
class Status:
    """Content of the shared page.

    seq    number of the current case, IDLE between cases and while importing
    phase  its current phase
    since  start of that phase on the monotonic clock, in seconds
    log    size of the log when the case began, in bytes
    """

    seq: int
    phase: Phase
    since: float
    log: int


def page_view(page: Any) -> memoryview:
    """Worker: the page as integers: number of the case, size of the log, and four times, in nanoseconds.

    The times are the starts of convert, compile and run, and the end. One is written at each step; those of
    earlier cases stay, so the newest gives the state. It is written directly, without a function, since that
    happens several times a case.
    """
    return memoryview(page)[:PAGE_BYTES].cast("Q")


def read_status(page: Any) -> Status:
    """Supervisor: the worker's last status. May be torn if read during a write: read twice."""
    seq, log, *times = _PAGE.unpack_from(page, 0)
    newest = 0
    for place, time in enumerate(times):
        if time >= times[newest]:
            newest = place
    if newest == len(times) - 1:
        return Status(IDLE, PHASES[0], times[newest] / 1e9, log)
    return Status(seq, PHASES[1 + newest], times[newest] / 1e9, log)
