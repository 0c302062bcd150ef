"""A cache of a corpus's cases in a form that is fast to read: what `Corpus.get` returns, beside the corpus.

Reading and checking `case.json` (JSON, base64 and a hash) takes a quarter of a fast compiler's time for a
case. So each case that was read and checked once is kept as a record of bytes, in the pack named by the first
digit of its id:

    ROOT/.prepared/4/a     sizes, request, rest (JSON all), program and inputs, expected outputs

Opening a pack takes 2 µs for each of its records; with a single pack, a shard of one case would pay that for
the whole corpus. Sixteen are few enough to keep all open during a run.

Parts of a record are sent to the worker unchanged, and an answer is compared with parts of it; for most cases
nothing else is read. Truncated records and those of another version are made anew, and where nothing can be
written there is no cache. Reference outputs are in `.references`.
"""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from fuzzing.cases import Corpus, Input, Provenance, Recipe, TestCase, Tolerance
from fuzzing.cases.programs import checked_program
from fuzzing.errors import CaseFormatError
from fuzzing.execute import protocol
from fuzzing.execute.batches import encode_request
from fuzzing.execute.record_file import MAX_DATA, RecordFile, encode_record

#: Where the packs are, below the corpus. The number is the version of the records.
PACK_FOLDER = ".prepared/4"
#: Sizes of request, rest, program and inputs, and the description of expected outputs; number of outputs.
_SIZES = struct.Struct("<IIQII")
_parsed = json.JSONDecoder().raw_decode


class CaseCache:
    """The cases of a corpus, for reading."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._folder = corpus.root / PACK_FOLDER
        self._packs: dict[str, RecordFile] = {}
        with contextlib.suppress(OSError):  # there may be no corpus either
            self._folder.parent.mkdir(exist_ok=True)
            self._folder.mkdir(exist_ok=True)

    def get(self, case_id: str) -> TestCase:
        """As `Corpus.get`, with the same exceptions."""
        pack = self._packs.get(case_id[:1]) or self._opened(case_id)
        data = pack.get(case_id)
        if data is None:
            case = self._corpus.get(case_id)
            pack.put(case_id, _record(case))
            return case
        found = object.__new__(CachedCase)
        vars(found).update(id=case_id, data=data, sizes=_SIZES.unpack_from(data))
        return found

    def pack(self, case_ids: Iterable[str]) -> tuple[dict[str, bytes], list[str]]:
        """Packs with the records of these cases, for the corpus of another machine.

        Returns the packs by their path below the corpus, and the cases without a record: their files are
        corrupt, or too large.
        """
        packs: dict[str, list[bytes]] = {}
        left = []
        for case_id in case_ids:
            try:
                case = self.get(case_id)
            except CaseFormatError:
                left.append(case_id)
                continue
            data = case.data if isinstance(case, CachedCase) else _record(case)
            if len(data) > MAX_DATA:
                left.append(case_id)
            else:
                packs.setdefault(f"{PACK_FOLDER}/{case_id[:1]}", []).append(encode_record(case_id, data))
        return {path: b"".join(records) for path, records in packs.items()}, left

    def _opened(self, case_id: str) -> RecordFile:
        self._corpus.folder(case_id)  # checks the id: no other text may name a file
        pack = self._packs[case_id[:1]] = RecordFile(f"{self._folder}/{case_id[:1]}")
        return pack


class _Field:
    """A field of a case that is read on first access, together with the fields beside it.

    read  the name of the method that reads them
    """

    def __init__(self, name: str, read: str) -> None:
        self._name = name
        self._read = read

    def __get__(self, case: CachedCase | None, owner: type | None = None) -> Any:
        if case is None:
            return self
        vars(case).update(getattr(case, self._read)())
        return vars(case)[self._name]


class CachedCase(TestCase):
    """A case that is mostly still the bytes of its record, and reads its fields on access.

    data   the record
    sizes  those at its beginning
    """

    program, inputs = _Field("program", "read_given"), _Field("inputs", "read_given")
    expected = _Field("expected", "read_expected")
    tolerance, comparison = _Field("tolerance", "read_allowed"), _Field("comparison", "read_allowed")
    provenance = _Field("provenance", "read_provenance")

    data: bytes
    sizes: tuple[int, int, int, int, int]

    def __new__(cls, *args: Any, **kwargs: Any) -> TestCase:  # type: ignore[misc]
        """Returns a plain TestCase when called by `dataclasses.replace`, as that has no record."""
        return TestCase(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TestCase):
            return NotImplemented
        return all(getattr(self, one.name) == getattr(other, one.name) for one in fields(TestCase))

    __hash__ = TestCase.__hash__

    @property
    def has_reference(self) -> bool:
        """See TestCase."""
        return self.sizes[3] > 0

    @property
    def count(self) -> int:
        """Number of expected outputs."""
        return self.sizes[4]

    def encode_request(self) -> tuple[bytes, bytes]:
        """See `batches.encode_request`."""
        request, rest, given, _, _ = self.sizes
        begin = _SIZES.size + request
        return self.data[_SIZES.size : begin], self.data[begin + rest : begin + rest + given]

    def expects(self, size: int, outputs: bytes) -> bool:
        """Whether outputs, as from `protocol.encode_values`, equal the expected ones byte for byte."""
        data = self.data
        request, rest, given, expected, _ = self.sizes
        whole = _SIZES.size + request + rest + given + len(outputs)
        return size == expected > 0 and len(data) == whole and data.endswith(outputs)

    def read_expected(self) -> dict[str, Any]:
        """Reads the expected outputs."""
        request, rest, given, expected, _ = self.sizes
        begin = _SIZES.size + request + rest + given
        return {"expected": tuple(protocol.decode_values(expected, self.data[begin:])) if expected else None}

    def read_given(self) -> dict[str, Any]:
        """Reads program and inputs."""
        text, data = self.encode_request()
        kind, size, described = _parsed(f"[{text.decode('ascii')}")[0]
        cursor = protocol.BlobReader(data)
        program = checked_program(kind, cursor.take(size))
        inputs: list[tuple[str, Input]] = [*cursor.values(described)]
        for place, recipe in self._rest()[0]:
            inputs[place] = inputs[place][0], Recipe.from_json(recipe)
        return {"program": program, "inputs": tuple(inputs)}

    def read_allowed(self) -> dict[str, Any]:
        """Reads tolerance and comparison, needed only if outputs differ from the expected bytes."""
        begin = _SIZES.size + self.sizes[0]
        (tolerance, comparison), _ = _parsed(self.data[begin : begin + self.sizes[1]].decode("ascii"))
        return {"tolerance": tolerance and Tolerance(*tolerance), "comparison": comparison}

    def read_provenance(self) -> dict[str, Any]:
        """Reads the provenance."""
        return {"provenance": Provenance(*self._rest()[1])}

    def _rest(self) -> Any:
        begin = _SIZES.size + self.sizes[0]
        rest = self.data[begin : begin + self.sizes[1]].decode("ascii")
        return _parsed(rest, _parsed(rest)[1])[0]


def cached_request(case: TestCase) -> tuple[bytes, bytes]:
    """As `batches.encode_request`, without encoding for a cached case."""
    return case.encode_request() if isinstance(case, CachedCase) else encode_request(case)


def _record(case: TestCase) -> bytes:
    request, given = encode_request(case)
    size, outputs = (0, b"") if case.expected is None else protocol.encode_values(case.expected)
    origin, tolerance = case.provenance, case.tolerance
    recipes = [
        [place, given.to_json()] for place, (_, given) in enumerate(case.inputs) if isinstance(given, Recipe)
    ]
    allowed = [tolerance and [tolerance.rtol, tolerance.atol], case.comparison]
    provenance = [origin.source, origin.test, origin.operator, origin.library, origin.version, origin.seed]
    rest = protocol.encode_json(allowed) + protocol.encode_json([recipes, provenance])
    sizes = _SIZES.pack(len(request), len(rest), len(given), size, len(case.expected or ()))
    return sizes + request + rest + given + outputs
