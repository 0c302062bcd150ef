"""Catalogues: what a source migrated to, kept so that a source is migrated once per library version.

A catalogue is a file of JSON lines below `corpus/catalogues/`: the cases in the source's order, then one
line with what was skipped. Its name holds a digest of the source's name, of every installed
distribution, and of the migrating code, so a new library, a new Assay or an edit makes a new one. It
appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Protocol

import fuzzing
from bot.campaigns.attend import attend
from bot.campaigns.context import Context
from bot.campaigns.provenance import origin
from bot.campaigns.services import Config
from bot.errors import InfrastructureError, UsageError
from fuzzing.cases import Corpus

_SOURCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Parts of `fuzzing` whose code decides what a source's cases are.
_CODE = ("migrate", "cases")


@dataclass(frozen=True)
class Ending:
    """The library a source was migrated from, such as "onnx 1.23.2", and reason → tests skipped for it."""

    library: str
    skipped: dict[str, int]


class Cases(Protocol):
    """Cases to be planned, from one place."""

    def cases(self) -> Iterator[str]:
        """Their ids, in order, streamed."""

    def ending(self) -> Ending:
        """Where they come from, and what was left out."""


class Catalogue:
    """The cases of one migrated source."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def cases(self) -> Iterator[str]:
        """The ids of the cases, in the source's order, streamed."""
        return (line["id"] for line in self._lines() if "id" in line)

    def ending(self) -> Ending:
        """How the migration ended."""
        last = deque(self._lines(), maxlen=1).pop()
        skipped = {str(reason): int(count) for reason, count in last["skipped"].items()}
        return Ending(library=last["library"], skipped=skipped)

    def _lines(self) -> Iterator[dict[str, Any]]:
        with open(self.path, encoding="utf-8") as file:
            yield from map(json.loads, file)


class Folder:
    """The cases of a corpus somebody has already, as far as they are of one of `kinds`, by id."""

    def __init__(self, root: Path, kinds: Collection[str]) -> None:
        self._corpus, self._kinds = Corpus(root), frozenset(kinds)

    def cases(self) -> Iterator[str]:
        """The ids, streamed. Raises UsageError: the folder holds no such case, or a broken one."""
        left_out = found = 0
        for case_id in self._corpus.ids():
            if self._kind(case_id) in self._kinds:
                found += 1
                yield case_id
            else:
                left_out += 1
        if not found:
            held = f"{left_out} cases of other kinds" if left_out else "none"
            raise UsageError(
                f"{self._corpus.root} holds no case of kind {' or '.join(sorted(self._kinds))}, but {held}; "
                "name a corpus: a folder of folders such as ab/ab12…, each with a case.json"
            )

    def ending(self) -> Ending:
        """How many cases were left out, by kind."""
        kinds = Counter(map(self._kind, self._corpus.ids()))
        others = {kind: count for kind, count in sorted(kinds.items()) if kind not in self._kinds}
        return Ending("", {f"a program of kind {kind}": count for kind, count in others.items()})

    def _kind(self, case_id: str) -> str:
        return origin(self._corpus.root, case_id).kind


def migrated(context: Context, config: Config) -> list[Catalogue]:
    """The catalogues of a configuration's sources; what is not yet migrated is."""
    return [catalogue(context, source) for source in config.sources]


def catalogue(context: Context, source: str) -> Catalogue:
    """The catalogue of `source`; migrates it first if there is none for what is installed."""
    if not _SOURCE.fullmatch(source):
        raise UsageError(f"{source!r} cannot be the name of a source; `assay run --help` lists them")
    path = place(context.corpus, source)
    if not path.exists():
        _migrate(context, source, path)
    return Catalogue(path)


def place(corpus: Path, source: str) -> Path:
    """The file in which the catalogue of `source` lies, or would lie, for what is installed."""
    return corpus / "catalogues" / f"{source}-{_digest(source)}.jsonl"


def distinct(ids: Iterable[str]) -> Iterator[str]:
    """The ids without those met before; 16 bytes of each are remembered, as a million cases may come."""
    seen: set[bytes] = set()
    for case_id in ids:
        short = bytes.fromhex(case_id)[:16]
        if short not in seen:
            seen.add(short)
            yield case_id


def _migrate(context: Context, source: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    sink = _Writer(context, source, temporary)
    arguments = [source, "--corpus", str(context.corpus)]
    try:
        attend(
            context,
            lambda on_event, stop: context.services.run_tool("fuzzing.migrate", arguments, on_event, stop),
            sink,
        )
        if not sink.ended:
            raise InfrastructureError(f"the migration of {source} ended without saying so; see its log")
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    temporary.replace(path)


class _Writer:
    """Writes the events of a migration as a catalogue."""

    def __init__(self, context: Context, source: str, path: Path) -> None:
        self._context, self._source = context, source
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115  (closed by `close`)
        self._count = 0
        self.ended = False

    def add(self, event: dict[str, Any]) -> None:
        """Keeps cases and the final count of skips."""
        if event.get("event") == "case":
            self._count += 1
            self._line({"id": event["id"]})
        elif event.get("event") == "end":
            self.ended = True
            library = f"{event.get('library', '')} {event.get('version', '')}".strip()
            self._line({"library": library, "skipped": event.get("skipped", {})})

    def tick(self) -> None:
        """Tells how far it is."""
        if self._count and self._count % 100 == 0:
            self._context.progress(self._count, 0, f"{self._count} cases migrated from {self._source}")

    def close(self) -> None:
        """Closes the file; all its bytes are on the disk before it gets its name."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def _line(self, obj: dict[str, Any]) -> None:
        self._file.write(json.dumps(obj) + "\n")


def _digest(source: str) -> str:
    digest = hashlib.sha256(source.encode())
    for name in sorted(f"{one.name}=={one.version}" for one in distributions()):
        digest.update(name.encode() + b"\0")
    root = Path(fuzzing.__path__[0])
    for path in sorted(path for part in _CODE for path in (root / part).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
