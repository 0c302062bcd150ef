"""Cases as a run reads them: what `Corpus.get` gives, kept beside the corpus in a form that is read quickly.

`case.json` is for people and for ever: JSON, base64, and a hash of both to check. To read it takes a quarter
of what a fast compiler takes for the case. So what was read and checked once is kept as bytes, a file a case:

    ROOT/.prepared/1/ab/ab12…       prefix, request, expected, rest (JSON each), program and inputs, outputs

as `.references` keeps what a library said. A worker is sent parts of such a record as they are, and an answer
is compared with parts of it: of most cases nothing else is ever read. It is a cache and nothing more: what is
torn, or of another version, is made anew, and where nothing can be written there is nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from dataclasses import fields
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from fuzzing.cases import Corpus, Input, Provenance, Recipe, TestCase, Tolerance
from fuzzing.cases.programs import kind_named
from fuzzing.execute.batches import request
from fuzzing.execute.protocol import Cursor, encoded, pack_values

_FOLDER = ".prepared/1"
#: Magic, CRC-32 of the id and all that follows, and the sizes of request, expected, rest, program and inputs.
_PREFIX = struct.Struct("<8sIIIIQ")
_SIZES = struct.Struct("<IIIQ")
_MAGIC = b"assaycs1"
_LARGEST = 8 << 20  # bytes; what is larger takes long to compile, too
_parsed = json.JSONDecoder().raw_decode


class Prepared:
    """The cases of a corpus, for reading."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._folder = f"{corpus.root}/{_FOLDER}"

    def get(self, case_id: str) -> TestCase:
        """As `Corpus.get`; raises the same."""
        path = f"{self._folder}/{case_id[:2]}/{case_id}"
        case = _load(case_id, path) if case_id.isalnum() else None  # `Corpus.get` says what is wrong with it
        if case is None:
            case = self._corpus.get(case_id)
            _store(case, path)
        return case


class _Field:
    """A field of a case that is read with all others when it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, case: PreparedCase | None, owner: type | None = None) -> Any:
        if case is None:
            return self
        vars(case).update(case.read())
        return vars(case)[self._name]


class PreparedCase(TestCase):
    """A case of which most is still the bytes of its record. It reads itself when it is asked for more.

    data   the record
    sizes  those in its prefix
    """

    program, inputs, provenance = _Field("program"), _Field("inputs"), _Field("provenance")
    expected, tolerance, comparison = _Field("expected"), _Field("tolerance"), _Field("comparison")

    data: bytes
    sizes: tuple[int, int, int, int]

    def __new__(cls, *args: Any, **kwargs: Any) -> TestCase:  # type: ignore[misc]
        """A plain case, where one is made of this one by `dataclasses.replace`: it has no record."""
        return TestCase(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TestCase):
            return NotImplemented
        return all(getattr(self, one.name) == getattr(other, one.name) for one in fields(TestCase))

    __hash__ = TestCase.__hash__

    @property
    def referenced(self) -> bool:
        """See TestCase."""
        return self.sizes[1] > 0

    def request(self) -> tuple[bytes, bytes]:
        """See `batches.request`."""
        told, expected, rest, given = self.sizes
        begin = _PREFIX.size + told + expected + rest
        return self.data[_PREFIX.size : _PREFIX.size + told], self.data[begin : begin + given]

    def expects(self, described: Any, blob: bytes) -> bool:
        """Whether outputs, as `pack_values` tells of them, are those expected, byte for byte."""
        told, expected, rest, given = self.sizes
        begin = _PREFIX.size + told
        return (
            len(self.data) == begin + expected + rest + given + len(blob)
            and encoded(described) == self.data[begin : begin + expected]
            and self.data.endswith(blob)
        )

    def read(self) -> dict[str, Any]:
        """All fields by name."""
        told, expected, rest, _ = self.sizes
        places = list(accumulate((_PREFIX.size, told, expected, rest)))
        texts = [self.data[begin:end].decode("ascii") for begin, end in pairwise(places)]
        kind, size, described = _parsed(f"[{texts[0]}")[0]
        cursor = Cursor(self.data, places[-1])
        program = kind_named(kind).from_bytes(cursor.take(size))
        inputs: list[tuple[str, Input]] = [*cursor.values(described)]
        recipes, tolerance, comparison, origin = _parsed(texts[2])[0]
        for place, recipe in recipes:
            inputs[place] = inputs[place][0], Recipe.from_json(recipe)
        return {
            "program": program,
            "inputs": tuple(inputs),
            "expected": tuple(cursor.values(_parsed(texts[1])[0])) if texts[1] else None,
            "tolerance": tolerance and Tolerance(*tolerance),
            "comparison": comparison,
            "provenance": Provenance(*origin),
        }


def requested(case: TestCase) -> tuple[bytes, bytes]:
    """As `batches.request`, of a prepared case at no cost."""
    return case.request() if isinstance(case, PreparedCase) else request(case)


def _load(case_id: str, path: str) -> TestCase | None:
    """The case that a record holds; None if there is none that does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(descriptor, os.fstat(descriptor).st_size)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if len(data) < _PREFIX.size:
        return None
    magic, checksum, *sizes = _PREFIX.unpack_from(data)
    if magic != _MAGIC or checksum != _checksum(case_id, memoryview(data)[_PREFIX.size - _SIZES.size :]):
        return None
    case = object.__new__(PreparedCase)
    vars(case).update(id=case_id, data=data, sizes=sizes)
    return case


def _checksum(case_id: str, data: bytes | memoryview) -> int:
    """Of what is under this id: a record in another's place is none."""
    return zlib.crc32(data, zlib.crc32(case_id.encode()))


def _store(case: TestCase, path: str) -> None:
    """Keeps a record, whole or not at all."""
    told, given = request(case)
    described, wanted = (None, b"") if case.expected is None else pack_values(case.expected)
    expected = b"" if described is None else encoded(described)
    origin, tolerance = case.provenance, case.tolerance
    recipes = [
        [place, given.to_json()] for place, (_, given) in enumerate(case.inputs) if isinstance(given, Recipe)
    ]
    rest = encoded(
        [
            recipes,
            tolerance and [tolerance.rtol, tolerance.atol],
            case.comparison,
            [origin.source, origin.test, origin.operator, origin.library, origin.version, origin.seed],
        ]
    )
    sizes = _SIZES.pack(len(told), len(expected), len(rest), len(given))
    data = sizes + told + expected + rest + given + wanted
    if len(data) > _LARGEST:
        return
    temporary = f"{path}.{os.getpid()}"
    with contextlib.suppress(OSError):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(temporary).write_bytes(_MAGIC + _checksum(case.id, data).to_bytes(4, "little") + data)
        Path(temporary).replace(path)
