"""Cases as a run reads them: what `Corpus.get` gives, kept beside the corpus in a form that is read quickly.

`case.json` is for people and for ever: JSON, base64, and a hash of both to check. To read it takes a quarter
of what a fast compiler takes for the case. So what was read and checked once is kept as bytes, a file a case:

    ROOT/.prepared/1/ab/ab12…       magic, CRC-32 of the rest, length of the header, header (JSON), blob

as `.references` keeps what a library said. It is a cache, nothing else: a record that is torn, or written by
another version, is made anew, and where none can be written there is none.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

from fuzzing import jsontext
from fuzzing.cases import Corpus, Input, Provenance, Recipe, TestCase, Tolerance
from fuzzing.cases.programs import kind_named
from fuzzing.errors import CaseFormatError
from fuzzing.execute.protocol import Cursor, ProtocolError, pack_values

_FOLDER = ".prepared/1"
_PREFIX = struct.Struct("<8sII")
_MAGIC = b"assaycs1"
_LARGEST = 8 << 20  # bytes; what is larger takes long to compile, too
_encode = jsontext.encoder(compact=True)
_scan = json.JSONDecoder().scan_once
#: What reading a record may raise that something else wrote.
_SPOILED = (struct.error, StopIteration, ValueError, TypeError, CaseFormatError, ProtocolError)


class Prepared:
    """The cases of a corpus, for reading."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._folder = f"{corpus.root}/{_FOLDER}"

    def get(self, case_id: str) -> TestCase:
        """As `Corpus.get`."""
        path = f"{self._folder}/{case_id[:2]}/{case_id}"
        case = _load(path)
        if case is None:
            case = self._corpus.get(case_id)
            _store(case, path)
        vars(case)["id"] = case_id
        return case


def _load(path: str) -> TestCase | None:
    """The case that a record holds; None if there is none that does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(descriptor, os.fstat(descriptor).st_size)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    try:
        magic, checksum, size = _PREFIX.unpack_from(data)
        blob = _PREFIX.size + size
        if magic != _MAGIC or checksum != zlib.crc32(memoryview(data)[_PREFIX.size :]):
            return None
        header, _ = _scan(data[_PREFIX.size : blob].decode("ascii"), 0)
        return _case(header, Cursor(data, blob))
    except _SPOILED:
        return None


def _case(header: list[Any], cursor: Cursor) -> TestCase:
    kind, size, plain, recipes, expected, tolerance, comparison, origin = header
    program = kind_named(kind).from_bytes(cursor.take(size))
    inputs: list[tuple[str, Input]] = [*cursor.values(plain)]
    for place, name, recipe in recipes:
        inputs.insert(place, (name, Recipe.from_json(recipe)))
    return TestCase(
        program,
        tuple(inputs),
        Provenance(*origin),
        None if expected is None else tuple(cursor.values(expected)),
        tolerance and Tolerance(*tolerance),
        comparison,
    )


def _store(case: TestCase, path: str) -> None:
    """Keeps a record, whole or not at all."""
    header, blob = _told(case)
    rest = header + blob
    if len(rest) > _LARGEST:
        return
    temporary = f"{path}.{os.getpid()}"
    with contextlib.suppress(OSError):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(temporary).write_bytes(_PREFIX.pack(_MAGIC, zlib.crc32(rest), len(header)) + rest)
        Path(temporary).replace(path)


def _told(case: TestCase) -> tuple[bytes, bytes]:
    """A case as a header and a blob."""
    program, origin, tolerance = case.program.to_bytes(), case.provenance, case.tolerance
    plain = [(name, given) for name, given in case.inputs if not isinstance(given, Recipe)]
    inputs, given_blob = pack_values(plain)
    expected, wanted_blob = (None, b"") if case.expected is None else pack_values(case.expected)
    header = [
        case.program.kind,
        len(program),
        inputs,
        [
            [place, name, given.to_json()]
            for place, (name, given) in enumerate(case.inputs)
            if isinstance(given, Recipe)
        ],
        expected,
        tolerance and [tolerance.rtol, tolerance.atol],
        case.comparison,
        [origin.source, origin.test, origin.operator, origin.library, origin.version, origin.seed],
    ]
    return _encode(header).encode("ascii"), program + given_blob + wanted_blob
