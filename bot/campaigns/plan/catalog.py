"""Catalogs: the cases of a source, so that a source is migrated once per library version.

    corpus/catalogs/SOURCE-DIGEST.jsonl           a source that is migrated in one go
    corpus/catalogs/SOURCE-DIGEST.03-16.jsonl     the third of sixteen parts of one
    corpus/catalogs/SOURCE-DIGEST.change-1f….jsonl    the operators of one change, migrated before the parts
    corpus/catalogs/….partial                     an incomplete part, cut off by the time limit

JSON lines: the cases in the source's order, each with test, operator and ranking data, then one line with the
skip counts. The digest covers the source's name, every installed distribution and the migrating code. A
catalog is written atomically.
"""

from __future__ import annotations

import hashlib
import re
import site
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import fuzzing
from bot.campaigns.plan.case_source import CatalogPart, SourceReport, short_id
from bot.campaigns.provenance import origin
from bot.config.names import DEFAULT_SEED, is_generated, source_parts
from bot.errors import UsageError
from bot.toolchains import probe_script
from fuzzing.cases import Corpus

_OF_CHANGE = "operators of the change"
_SOURCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Parts of `fuzzing` whose code decides what a source's cases and catalog lines are.
_CODE = (
    "migrate",
    "cases",
    "equivalence",
    "generate",
    "graph",
    "mutate",
    "torch_api",
    "prioritize/instances*.py",
    "prioritize/api_signatures*.py",
    "prioritize/call_binding.py",
)


class SourceCatalog:
    """The cases of one source that are migrated so far."""

    def __init__(self, corpus: Path, source: str, options: tuple[str, ...] = ()) -> None:
        if not _SOURCE.fullmatch(source):
            raise UsageError(f"{source!r} cannot be the name of a source; `assay run --help` lists them")
        of = source_parts(source)
        self._source, digest = source, _source_digest(source, options)
        self._parts = tuple(
            CatalogPart(source, number, of, _catalog_path(corpus, source, digest, number, of), options)
            for number in range(1, of + 1)
        )

    def cases(self) -> Iterator[str]:
        """Case ids, part by part, in the source's order, streamed."""
        return (line["id"] for line in self.lines())

    def lines(self) -> Iterator[dict[str, Any]]:
        """One dict per case, streamed: `id`, `test`, `operator`, `instance` if known."""
        return (line for part in self._readable_parts() for line in part.read()[0] if "id" in line)

    def tests(self) -> Iterator[tuple[str, str]]:
        """(case id, name of its test, "" if unknown), streamed."""
        return ((line["id"], str(line.get("test", ""))) for line in self.lines())

    def operators(self, wanted: Collection[str]) -> dict[str, str]:
        """Case → operator, from the catalogs."""
        lines = (line for line in self.lines() if line["id"] in wanted)
        return {line["id"]: str(line["operator"]) for line in lines if "operator" in line}

    def account(self) -> SourceReport:
        """How far the migration is."""
        skipped: Counter[str] = Counter()
        library, whole, begun = "", 0, 0
        search: dict[str, Any] = {}
        distinct_ids: set[bytes] = set()  # parts may overlap
        for part in self._readable_parts():
            lines, complete = part.read()
            count = 0
            for line in lines:
                if "id" in line:
                    count += 1
                    distinct_ids.add(short_id(line["id"]))
                library = line.get("library", library)
                search = line.get("search", search)
                skipped.update({} if part.what else line.get("skipped", {}))
            if not part.what:
                whole, begun = whole + complete, begun + (count > 0 and not complete)
        cases, parts = len(distinct_ids), len(self._parts)
        return SourceReport(
            self._source, library, cases, dict(skipped), parts, whole, begun, search=search, seed=self._seed()
        )

    def _seed(self) -> int | None:
        """The seed of a generated source; None for others."""
        if not is_generated(self._source):
            return None
        words = self._parts[0].options
        return int(words[words.index("--seed") + 1]) if "--seed" in words else DEFAULT_SEED

    def parts(self) -> Sequence[CatalogPart]:
        """All parts."""
        return self._parts

    def _readable_parts(self) -> Sequence[CatalogPart]:
        """All parts and, while one is incomplete, what was migrated for a change; those repeat cases."""
        if all(part.path.exists() for part in self._parts):
            return self._parts
        first = self._parts[0]
        stem, _, _ = first.path.name.partition(".")
        found = {path.with_suffix(".jsonl") for path in first.path.parent.glob(f"{stem}.change-*")}
        return (*self._parts, *(replace(first, path=path, what=_OF_CHANGE) for path in sorted(found)))

    def arguments(self) -> list[str]:
        """Its catalogs, as arguments."""
        files = (part.path if part.path.exists() else part.partial for part in self._readable_parts())
        return [word for path in files if path.exists() for word in ("--catalog", str(path))]


def part_of_change(part: CatalogPart, change: Path, digest: str) -> CatalogPart:
    """The tests of the operators that a change names, of the source of which `part` is one.

    change  the file with the change, as `fuzzing.prioritize` reads it; its `digest` names the catalog
    """
    stem, _, _ = part.path.name.partition(".")
    path = part.path.with_name(f"{stem}.change-{digest[:16]}.jsonl")
    return replace(
        part, number=1, of=1, path=path, options=(*part.options, "--change", str(change)), what=_OF_CHANGE
    )


class CorpusCases:
    """The cases of an existing corpus that are of one of `kinds`, by id."""

    def __init__(self, root: Path, kinds: Collection[str]) -> None:
        self._corpus, self._kinds = Corpus(root), frozenset(kinds)
        self._counted: Counter[str] | None = None

    def cases(self) -> Iterator[str]:
        """Case ids, streamed. Raises UsageError: the folder holds no such case, or a broken one."""
        counted: Counter[str] = Counter()
        for case_id in self._corpus.ids():
            kind = self._kind(case_id)
            counted[kind] += 1
            if kind in self._kinds:
                yield case_id
        self._counted = counted
        if not self._kinds & counted.keys():
            held = f", but {counted.total()} cases of other kinds" if counted else ""
            raise UsageError(
                f"{self._corpus.root} holds no case of kind {' or '.join(sorted(self._kinds))}{held}; "
                "name a corpus, a folder of folders such as ab/ab12…, each with a case.json, or ONNX models"
            )

    def tests(self) -> Iterator[tuple[str, str]]:
        """The ids without names: only the cases themselves hold them."""
        return ((case_id, "") for case_id in self.cases())

    def operators(self, wanted: Collection[str]) -> dict[str, str]:
        """Empty: only the cases themselves hold it."""
        del wanted
        return {}

    def account(self) -> SourceReport:
        """Counts of cases, and of skipped ones by kind."""
        # Reading each manifest again would double the time of a large folder.
        kinds = self._counted or Counter(map(self._kind, self._corpus.ids()))
        others = {kind: count for kind, count in sorted(kinds.items()) if kind not in self._kinds}
        skipped = {f"a program of kind {kind}": count for kind, count in others.items()}
        return SourceReport(self._corpus.root.name, "", kinds.total() - sum(others.values()), skipped)

    def parts(self) -> Sequence[CatalogPart]:
        """Nothing to migrate."""
        return ()

    def arguments(self) -> list[str]:
        """The folder, as argument."""
        return ["--corpus", str(self._corpus.root)]

    def _kind(self, case_id: str) -> str:
        return origin(self._corpus.root, case_id).kind


def open_catalogs(corpus: Path, sources: Iterable[str]) -> list[SourceCatalog]:
    """The sources of these names, migrated or not."""
    return [SourceCatalog(corpus, source) for source in sources]


def catalog_path(corpus: Path, source: str, number: int = 1, of: int = 1) -> Path:
    """The catalog file of a part of `source` for what is installed; it need not exist."""
    return _catalog_path(corpus, source, _source_digest(source), number, of)


def _catalog_path(corpus: Path, source: str, digest: str, number: int, of: int) -> Path:
    part = f".{number:02}-{of}" if of > 1 else ""
    return corpus / "catalogs" / f"{source}-{digest}{part}.jsonl"


def _source_digest(source: str, options: tuple[str, ...] = ()) -> str:
    digest = hashlib.sha256(" ".join((source, *options)).encode())
    folders = tuple(_site_folders())
    for name, version in _packages(folders, _metadata_times(folders)):
        digest.update(f"{name}=={version}\0".encode())
    for path in _models(options):
        stat = path.stat()
        digest.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    root = Path(fuzzing.__path__[0])
    for path in sorted(file for part in _CODE for file in _files(root, part)):
        digest.update(_content(path, _changed_at(path)))
    return digest.hexdigest()[:16]


@lru_cache(maxsize=2)
def _packages(folders: tuple[str, ...], _metadata_times: tuple[int, ...]) -> list[tuple[str, str]]:
    """Every distribution and its version, sorted; `_metadata_times` are those of the call."""
    return sorted(probe_script.packages(list(folders)).items())


def _metadata_times(folders: tuple[str, ...]) -> tuple[int, ...]:
    """When each folder and each distribution's metadata in it changed [ns].

    The folder's own time is not enough: an installer makes the metadata's folder first and fills it later.
    """
    metadata = (file for one in folders for file in sorted(Path(one).glob("*.*-info/[MP]*")))
    return tuple(_changed_at(path) for path in (*map(Path, folders), *metadata))


@lru_cache(maxsize=1000)  # there are about 200 files
def _content(path: Path, _changed_at: int) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def _changed_at(path: Path) -> int:
    """When a file or a folder changed [ns]; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _site_folders() -> list[str]:
    """Where packages are installed.

    Not `sys.path`: setuptools appends its vendored packages there when it is imported, so the digest would
    depend on what the process has done, and its cases would be migrated again.
    """
    return [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]


def _models(options: tuple[str, ...]) -> list[Path]:
    """The files of the option `--models`, whose changes make another catalog."""
    if "--models" not in options:
        return []
    models = Path(options[options.index("--models") + 1])
    return sorted(path for path in models.rglob("*") if path.is_file()) if models.is_dir() else [models]


def _files(root: Path, part: str) -> Iterable[Path]:
    return root.glob(part) if part.endswith(".py") else (root / part).rglob("*.py")
