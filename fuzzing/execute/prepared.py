"""Cases as a run reads them: what `Corpus.get` gives, kept beside the corpus in a form that is read quickly.

`case.json` is for people and for ever: JSON, base64, and a hash of both to check. To read it takes a quarter
of what a fast compiler takes for the case. So what was read and checked once is kept as bytes, a file a case:

    ROOT/.prepared/2/ab/ab12…       prefix, request, rest (JSON both), program and inputs, expected outputs

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
from pathlib import Path
from typing import Any

from fuzzing.cases import Corpus, Input, Provenance, Recipe, TestCase, Tolerance
from fuzzing.cases.programs import kind_named
from fuzzing.execute import protocol
from fuzzing.execute.batches import request

_FOLDER = ".prepared/2"
#: Magic, CRC-32 of the id and all that follows; then the sizes of request, rest, program and inputs, of what
#: tells of the expected outputs, and how many these are.
_PREFIX = struct.Struct("<8sIIIQII")
_SIZES = struct.Struct("<IIQII")
_MAGIC = b"assaycs2"
_LARGEST = 8 << 20  # bytes; what is larger takes long to compile, too
_USUAL = 1 << 14  # bytes, which most records do not fill
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
    """A field of a case that is read when it is first asked for, with those that stand beside it.

    read  the name of the method that gives them
    """

    def __init__(self, name: str, read: str) -> None:
        self._name = name
        self._read = read

    def __get__(self, case: PreparedCase | None, owner: type | None = None) -> Any:
        if case is None:
            return self
        vars(case).update(getattr(case, self._read)())
        return vars(case)[self._name]


class PreparedCase(TestCase):
    """A case of which most is still the bytes of its record. It reads itself when it is asked for more.

    data   the record
    sizes  those in its prefix
    """

    program, inputs = _Field("program", "read_given"), _Field("inputs", "read_given")
    expected = _Field("expected", "read_expected")
    tolerance, comparison = _Field("tolerance", "read_rest"), _Field("comparison", "read_rest")
    provenance = _Field("provenance", "read_rest")

    data: bytes
    sizes: tuple[int, int, int, int, int]

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
        return self.sizes[3] > 0

    @property
    def count(self) -> int:
        """How many outputs are expected."""
        return self.sizes[4]

    def request(self) -> tuple[bytes, bytes]:
        """See `batches.request`."""
        told, rest, given, _, _ = self.sizes
        begin = _PREFIX.size + told
        return self.data[_PREFIX.size : begin], self.data[begin + rest : begin + rest + given]

    def expects(self, size: int, outputs: bytes) -> bool:
        """Whether outputs, as `protocol.tell` gives them, are those expected, byte for byte."""
        data = self.data
        told, rest, given, expected, _ = self.sizes
        whole = _PREFIX.size + told + rest + given + len(outputs)
        return size == expected > 0 and len(data) == whole and data.endswith(outputs)

    def read_expected(self) -> dict[str, Any]:
        """The outputs."""
        told, rest, given, expected, _ = self.sizes
        begin = _PREFIX.size + told + rest + given
        return {"expected": tuple(protocol.told(expected, self.data[begin:])) if expected else None}

    def read_given(self) -> dict[str, Any]:
        """Program and inputs."""
        text, data = self.request()
        kind, size, described = _parsed(f"[{text.decode('ascii')}")[0]
        cursor = protocol.Cursor(data)
        program = kind_named(kind).from_bytes(cursor.take(size))
        inputs: list[tuple[str, Input]] = [*cursor.values(described)]
        for place, recipe in self._rest()[0]:
            inputs[place] = inputs[place][0], Recipe.from_json(recipe)
        return {"program": program, "inputs": tuple(inputs)}

    def read_rest(self) -> dict[str, Any]:
        """All else."""
        _, tolerance, comparison, origin = self._rest()
        return {
            "tolerance": tolerance and Tolerance(*tolerance),
            "comparison": comparison,
            "provenance": Provenance(*origin),
        }

    def _rest(self) -> Any:
        begin = _PREFIX.size + self.sizes[0]
        return _parsed(self.data[begin : begin + self.sizes[1]].decode("ascii"))[0]


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
        data = os.read(descriptor, _USUAL)
        if len(data) == _USUAL:
            data += os.read(descriptor, os.fstat(descriptor).st_size)
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
    size, outputs = (0, b"") if case.expected is None else protocol.tell(case.expected)
    origin, tolerance = case.provenance, case.tolerance
    recipes = [
        [place, given.to_json()] for place, (_, given) in enumerate(case.inputs) if isinstance(given, Recipe)
    ]
    rest = protocol.encoded(
        [
            recipes,
            tolerance and [tolerance.rtol, tolerance.atol],
            case.comparison,
            [origin.source, origin.test, origin.operator, origin.library, origin.version, origin.seed],
        ]
    )
    sizes = _SIZES.pack(len(told), len(rest), len(given), size, len(case.expected or ()))
    data = sizes + told + rest + given + outputs
    if len(data) > _LARGEST:
        return
    temporary = f"{path}.{os.getpid()}"
    with contextlib.suppress(OSError):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(temporary).write_bytes(_MAGIC + _checksum(case.id, data).to_bytes(4, "little") + data)
        Path(temporary).replace(path)
