"""A corpus: cases on disk, one folder each, named by content.

    ROOT/ab/ab12…/case.json     the manifest, in text
    ROOT/ab/ab12…/model.onnx    its program, in the format of its library

Folders are atomic: each is written beside its place and renamed into it, and renamed before it is removed.
Readers never see half a case, and a killed writer leaves only a temporary folder, which `sweep` removes.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fuzzing.cases.case import TestCase, case_from_manifest, manifest_id, parse_manifest, program_entry
from fuzzing.cases.programs import MAX_PROGRAM_BYTES
from fuzzing.errors import CaseFormatError, UsageError
from fuzzing.file_trees import discard_tree, remove_tree

MAX_MANIFEST_BYTES = 64 << 20
_ID = re.compile(r"[0-9a-f]{64}")
_TEMPORARY = ".incoming-"


def read_case(folder: Path | str, case_id: str = "") -> TestCase:
    """The case stored in `folder`, with this id if one is given.

    Raises CaseFormatError with the reason.
    """
    try:
        manifest = parse_manifest(_read(f"{folder}/case.json", MAX_MANIFEST_BYTES))
        # The manifest's own text must have the id: cheaper than to rebuild the manifest from the case.
        if case_id and (found := manifest_id(manifest)) != case_id:
            raise CaseFormatError(f"the content has the id {found}")
        kind, size, _ = program_entry(manifest)
        if not 0 < size <= MAX_PROGRAM_BYTES:
            raise CaseFormatError(f"a program of {size} bytes is outside 1..{MAX_PROGRAM_BYTES}")
        case = case_from_manifest(manifest, _read(f"{folder}/{kind.filename}", size))
    except CaseFormatError as error:
        raise CaseFormatError(f"{folder}: {error}") from None
    if case_id:
        vars(case)["id"] = case_id  # saves `TestCase.id` from hashing again
    return case


def case_from_files(files: Mapping[str, bytes], case_id: str) -> TestCase:
    """The case of this id from its files, by name; raises CaseFormatError if they are not its."""
    manifest = parse_manifest(files.get("case.json", b""))
    if (found := manifest_id(manifest)) != case_id:
        raise CaseFormatError(f"the content has the id {found}")
    kind, _, _ = program_entry(manifest)
    if kind.filename not in files:
        raise CaseFormatError(f"{kind.filename} is missing")
    return case_from_manifest(manifest, files[kind.filename])


def write_case(case: TestCase, folder: Path | str) -> bool:
    """Stores `case` as `folder`; False if the folder exists. Atomic, also with concurrent writers."""
    return _write(case.files(), str(folder))


def _write(files: dict[str, bytes], folder: str) -> bool:
    # Plain system calls: a generator writes thousands of cases a second, and Path, mkdtemp and file objects
    # take several times as long as the kernel.
    if os.path.exists(folder):  # noqa: PTH110
        return False
    temporary = f"{os.path.dirname(folder)}/{_TEMPORARY}{os.urandom(8).hex()}"  # noqa: PTH120
    try:
        _make(temporary)
        for name, data in files.items():
            _write_file(f"{temporary}/{name}", data)
        os.rename(temporary, folder)  # noqa: PTH104
    except OSError:
        discard_tree(temporary)
        if os.path.exists(folder):  # noqa: PTH110 - another writer was first, with the same content
            return False
        raise
    return True


def _make(folder: str) -> None:
    """Makes a folder, and its parents in the rare case that they are missing."""
    try:
        os.mkdir(folder)  # noqa: PTH102
    except FileNotFoundError:
        os.makedirs(os.path.dirname(folder), exist_ok=True)  # noqa: PTH103, PTH120
        os.mkdir(folder)  # noqa: PTH102


def _write_file(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


class Corpus:
    """The cases below one folder; any number of processes may read and add."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def folder(self, case_id: str) -> Path:
        """The path of this id's folder, which need not exist."""
        return Path(self._folder(case_id))

    def _folder(self, case_id: str) -> str:
        if not _ID.fullmatch(case_id):
            raise UsageError(f"{case_id!r} is not a case id: 64 hexadecimal digits")
        return f"{self.root}/{case_id[:2]}/{case_id}"

    def add(self, case: TestCase) -> bool:
        """Stores `case`; False if it exists already."""
        files = case.files()  # first, as it also sets the id
        return _write(files, self._folder(case.id))

    def manifest(self, case_id: str) -> dict[str, Any]:
        """`case.json` of this id; only its keys are checked, and the program is not read.

        Raises CaseFormatError.
        """
        folder = self._folder(case_id)
        try:
            return parse_manifest(_read(f"{folder}/case.json", MAX_MANIFEST_BYTES))
        except CaseFormatError as error:
            raise CaseFormatError(f"{folder}: {error}") from None

    def get(self, case_id: str) -> TestCase:
        """The case of this id; raises CaseFormatError if its content has another id."""
        return read_case(self._folder(case_id), case_id)

    def find(self, prefix: str) -> str:
        """The one id with this prefix; raises UsageError if there are none or several."""
        if not re.fullmatch(r"[0-9a-f]{4,64}", prefix):
            raise UsageError(f"{prefix!r} is not the beginning of a case id (4 to 64 hex digits)")
        prefix_folder = self._entries(self.root / prefix[:2])
        found = [name for name in prefix_folder if name.startswith(prefix) and _ID.fullmatch(name)]
        if len(found) != 1:
            raise UsageError(f"{len(found)} cases in {self.root} begin with {prefix}")
        return found[0]

    def ids(self) -> Iterator[str]:
        """All ids in ascending order, read one shelf at a time."""
        for prefix_folder in sorted(self._entries(self.root)):
            yield from sorted(
                name for name in self._entries(self.root / prefix_folder) if _ID.fullmatch(name)
            )

    def __iter__(self) -> Iterator[TestCase]:
        return (self.get(case_id) for case_id in self.ids())

    def remove(self, case_id: str) -> bool:
        """Removes a case; False if there is none. Readers never see a part of it, also if this is killed."""
        folder = self._folder(case_id)
        removed = f"{os.path.dirname(folder)}/{_TEMPORARY}{os.urandom(8).hex()}"  # noqa: PTH120
        try:
            os.rename(folder, removed)  # noqa: PTH104
        except FileNotFoundError:
            return False
        remove_tree(removed)
        return True

    def sweep(self) -> int:
        """Removes temporary folders of killed processes; must run beside no writer. Returns their number."""
        stale = list(self.root.glob(f"*/{_TEMPORARY}*"))
        for path in stale:
            remove_tree(path)
        return len(stale)

    @staticmethod
    def _entries(folder: Path) -> Iterable[str]:
        try:
            return os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return ()


def _read(path: str, limit: int) -> bytes:
    """At most `limit` bytes of a regular file; links and devices are rejected."""
    name = os.path.basename(path)  # noqa: PTH119 - once per case; a Path costs as much as the read
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise CaseFormatError(f"cannot read {name}: {error.strerror}") from None
    try:
        return _read_descriptor(descriptor, name, limit)
    except OSError as error:
        raise CaseFormatError(f"cannot read {name}: {error.strerror}") from None
    finally:
        os.close(descriptor)


def _read_descriptor(descriptor: int, name: str, limit: int) -> bytes:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise CaseFormatError(f"{name} is not a regular file")
    if found.st_size > limit:
        raise CaseFormatError(f"{name} is larger than {limit} bytes")
    data = b""  # not by a file object, whose buffers cost more than the read
    while len(data) < found.st_size and (piece := os.read(descriptor, found.st_size - len(data))):
        data += piece
    return data
