"""A pack: named byte records in one append-only file, for data that can be recomputed.

Opening, reading and closing a file takes a third of a case's time; a record of a pack takes one read. Any
number of processes may append at the same time: each record is one write to the file's end, which Linux keeps
whole (O_APPEND, write(2)). Partial records of a killed process or a full disk are skipped, and a CRC-32
detects corruption. Records are never changed or removed; delete the file to clear it.
"""

from __future__ import annotations

import os
import stat
import struct
import weakref
import zlib
from typing import BinaryIO

_MAGIC = b"assaypk1"
#: Magic, CRC-32 of all that follows it, size of the data, size of the name; then the name and the data.
_PREFIX = struct.Struct("<8sIQI")
_CHECKED = 12  # offset of the data covered by the CRC
_FLAGS = os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_NAME = 256  # bytes of a name
MAX_DATA = 8 << 20  # bytes of data; larger records are not stored
_BUFFER = 1 << 16  # bytes read at a time while indexing


class RecordFile:
    """The records of a file, created if missing. If it cannot be, there are no records.

    Records that other processes append after it was opened are not visible.
    """

    def __init__(self, path: str) -> None:
        self._places: dict[str, tuple[int, int]] = {}  # name → offset and size of its record
        self._fd = _open(path)
        if self._fd >= 0:
            weakref.finalize(self, os.close, self._fd)
            self._index()

    def get(self, name: str) -> bytes | None:
        """The data of a record; None if it is missing or corrupt."""
        place = self._places.get(name)
        if place is None:
            return None
        try:
            record = os.pread(self._fd, place[1], place[0])
        except OSError:
            return None
        begin = _PREFIX.size + len(name)
        if len(record) != place[1] or _checksum(record) != int.from_bytes(record[8:_CHECKED], "little"):
            return None
        return record[begin:]

    def put(self, name: str, data: bytes) -> None:
        """Appends a record, whole or not at all; it replaces an earlier one of this name."""
        if self._fd < 0 or len(data) > MAX_DATA:
            return
        record = encode_record(name, data)
        try:
            written = os.write(self._fd, record)
            end = os.lseek(self._fd, 0, os.SEEK_CUR)  # of this write, wherever others write now
        except OSError:
            return
        if written == len(record):
            self._places[name] = end - written, written

    def _index(self) -> None:
        with open(self._fd, "rb", buffering=_BUFFER, closefd=False) as file:
            at, size = 0, os.fstat(self._fd).st_size
            while at + _PREFIX.size <= size:
                length = self._index_record(file, at)
                if at + length > size:
                    length = 0  # the writer was killed
                at = at + length if length else _next(file, at + 1, size)

    def _index_record(self, file: BinaryIO, at: int) -> int:
        """Indexes the record at this offset; returns its size, 0 if there is none."""
        file.seek(at)
        prefix = file.read(_PREFIX.size)
        if len(prefix) < _PREFIX.size:
            return 0
        magic, _, data, encoded_name = _PREFIX.unpack(prefix)
        if magic != _MAGIC or encoded_name > _MAX_NAME or data > MAX_DATA:
            return 0
        length = _PREFIX.size + encoded_name + data
        self._places[file.read(encoded_name).decode("ascii", "replace")] = at, length
        return int(length)


def encode_record(name: str, data: bytes) -> bytes:
    """A record as it is in a file; a file may also be made by joining records."""
    encoded_name = name.encode("ascii")
    record = _PREFIX.pack(_MAGIC, 0, len(data), len(encoded_name)) + encoded_name + data
    return record[:8] + _checksum(record).to_bytes(4, "little") + record[_CHECKED:]


def _open(path: str) -> int:
    """A descriptor of the file; -1 if it cannot be opened."""
    for access in (os.O_RDWR, os.O_RDONLY):
        try:
            descriptor = os.open(path, access | _FLAGS, 0o644)
        except OSError:
            continue
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    return -1


def _checksum(record: bytes) -> int:
    return zlib.crc32(memoryview(record)[_CHECKED:])


def _next(file: BinaryIO, begin: int, size: int) -> int:
    """Offset of the next possible record; `size` if there is none."""
    while begin < size:
        file.seek(begin)
        found = file.read(_BUFFER)
        place = found.find(_MAGIC)
        if place >= 0:
            return begin + place
        if len(found) < len(_MAGIC):
            return size
        begin += len(found) - len(_MAGIC) + 1
    return size
