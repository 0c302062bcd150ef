"""Copies of corpora in an object store: packs of cases, each with the list of its ids.

    URL/DIGEST.tar.gz   ID/case.json, ID/model.onnx, …
    URL/DIGEST.ids      a line for each case; written after the pack, so what it lists is there

A pack never changes and is named by its ids, so several corpora may be written to one URL at the same time. A
case that two writers send at once is in two packs.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice

from bot.errors import UsageError
from bot.object_store import ObjectStore
from fuzzing.cases import Corpus, TestCase
from fuzzing.cases.corpus import case_from_files
from fuzzing.errors import CaseFormatError

#: Cases of a pack: some 10 MB of ONNX models. A pack is held in memory.
PACK_CASES = 2_000
#: Most bytes of a pack, and of its files.
MAX_BYTES = 1 << 30
_CASE_FILES = 2  # case.json and the program
_IDS, _PACK = ".ids", ".tar.gz"
_FILE = re.compile(r"([0-9a-f]{64})/([A-Za-z0-9_]+\.[a-z0-9]+)")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class CorpusStore:
    """The packs at `url`: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or a folder.

    Methods raise InfrastructureError if the store does not work.
    """

    def __init__(self, url: str) -> None:
        self._store = ObjectStore(url, "the URL")

    def export_cases(self, corpus: Corpus) -> int:
        """Writes the cases that no pack has; returns their number. Corrupt ones raise CaseFormatError."""
        known = {case for ids in self._packs().values() for case in ids}
        missing = (case for case in corpus.ids() if case not in known)
        written = 0
        while ids := list(islice(missing, PACK_CASES)):
            self._write(ids, _pack(corpus, ids))
            written += len(ids)
        return written

    def import_cases(self, corpus: Corpus) -> int:
        """Adds the cases that the corpus lacks; returns their number.

        Raises UsageError where there is no pack, or a file that is none; CaseFormatError for a case whose
        content has another id.
        """
        packs = self._packs()
        if not packs:
            raise UsageError(f"there are no cases at {self._store.url}; `assay corpus export` writes them")
        held, added = set(corpus.ids()), 0
        for digest, ids in sorted(packs.items()):
            wanted = set(ids) - held
            if wanted:
                added += _unpack(self._read(f"{digest}{_PACK}"), wanted, corpus)
                held |= wanted
        return added

    def _packs(self) -> dict[str, list[str]]:
        """The ids in each pack, by digest."""
        with self._store.connected("list") as filesystem:
            there = filesystem.isdir(self._store.url)  # not before the first export
            paths = filesystem.ls(self._store.url, detail=False) if there else []
        names = [path.rpartition("/")[2] for path in paths if path.endswith(_IDS)]
        digests = [name.removesuffix(_IDS) for name in names]
        return {one: self._read(one + _IDS).decode().split() for one in digests if _DIGEST.fullmatch(one)}

    def _read(self, name: str) -> bytes:
        with self._store.connected("read") as filesystem:
            content: bytes = filesystem.cat_file(f"{self._store.url}/{name}")
        return content

    def _write(self, ids: Iterable[str], pack: bytes) -> None:
        listed = "".join(f"{case}\n" for case in ids).encode()
        there = f"{self._store.url}/{hashlib.sha256(listed).hexdigest()}"
        with self._store.connected("write to") as filesystem:
            if "file" in filesystem.protocol:
                filesystem.makedirs(self._store.url, exist_ok=True)
            filesystem.pipe_file(there + _PACK, pack)
            filesystem.pipe_file(there + _IDS, listed)


def _pack(corpus: Corpus, ids: Iterable[str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=1) as archive:
        for case in ids:
            for name, content in corpus.get(case).files().items():
                member = tarfile.TarInfo(f"{case}/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def _unpack(pack: bytes, wanted: set[str], corpus: Corpus) -> int:
    """Adds the wanted cases of a pack; returns how many of them are new.

    A case is added once its files are there: they follow each other in packs of ours.
    """
    added, left = 0, set(wanted)
    begun: dict[str, dict[str, bytes]] = {}
    try:
        for case, name, content in _files(pack):
            if case in left:
                files = begun.setdefault(case, {})
                files[name] = content
                if len(files) == _CASE_FILES:
                    added += corpus.add(_case(case, begun.pop(case)))
                    left.remove(case)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"a pack of the corpus is damaged: {error}") from None
    if left:
        raise UsageError(f"a pack of the corpus lacks {len(left)} of its cases")
    return added


def _case(case_id: str, files: dict[str, bytes]) -> TestCase:
    try:
        return case_from_files(files, case_id)
    except CaseFormatError as error:
        raise CaseFormatError(f"case {case_id} of a pack: {error}") from None


def _files(pack: bytes) -> Iterator[tuple[str, str, bytes]]:
    total = 0
    with tarfile.open(fileobj=io.BytesIO(pack), mode="r:gz") as archive:
        for member in archive:
            total += member.size
            place = _FILE.fullmatch(member.name)
            content = archive.extractfile(member) if member.isfile() else None
            if place is None or content is None or total > MAX_BYTES:
                raise tarfile.TarError(f"unexpected member {member.name[:100]!r}")
            yield place[1], place[2], content.read()
