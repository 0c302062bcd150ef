"""Ranking: the order in which cases run, from `python -m fuzzing.prioritize`.

Collects its inputs (change, history, the compiler's own suites) and reads back a file of case ids, so a
hundred thousand cases are planned without holding them in memory. If it fails, cases run in the order of
their sources.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

import fuzzing
from bot.campaigns.plan.case_source import CaseSource, distinct, short_id
from bot.campaigns.provenance import origin
from bot.config import names
from bot.errors import InfrastructureError
from bot.store.case_history import CaseHistory

#: Default strategies: with a change or history, and without.
STRATEGY_WITH_HISTORY, DEFAULT_STRATEGY = "change", "opera"
#: Most touched operators kept; a change that touches more is too unspecific.
MAX_TOUCHED = 100
_ID_BYTES = 32
_SUITES = Path("prioritize", "suites")


@dataclass(frozen=True)
class Change:
    """The difference of two commits, as `fuzzing.prioritize` reads it."""

    content: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Digest, number of files, and whether files were left out for their size or number."""
        return {
            "digest": hashlib.sha256(self.text().encode()).hexdigest(),
            "files": len(self.content["files"]),
            "truncated": bool(self.content["truncated"]),
        }

    def text(self) -> str:
        """The change as one line."""
        return json.dumps(self.content, sort_keys=True)

    @contextmanager
    def file(self) -> Iterator[Path]:
        """A file with the change, which exists within the context."""
        with tempfile.TemporaryDirectory(prefix="assay-change-") as name:
            path = Path(name, "change.json")
            path.write_text(self.text(), encoding="utf-8")
            yield path


@dataclass(frozen=True)
class Ranking:
    """How the cases of a campaign were ordered; in rows and reports.

    strategy  the strategy used; "" if none, then the order of the sources
    asked     the strategy that the configuration names, or ""
    seed      of its random choices
    change    `digest`, `files`, `truncated` of the change; None without one
    history   `digest` and number of `cases` with history; None without any
    suites    the compiler's own suites that were given, such as "openvino.onnx"
    failed    why the ranking failed, or ""
    touched   operators that the change touches (`fuzzing.prioritize --touched`), most certain first
    """

    strategy: str
    asked: str = ""
    seed: int = 0
    change: Mapping[str, Any] | None = None
    history: Mapping[str, Any] | None = None
    suites: tuple[str, ...] = ()
    failed: str = ""
    touched: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self) | {"suites": list(self.suites), "touched": list(self.touched)}

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> Ranking:
        """The inverse of `to_json`."""
        lists = {"suites": tuple(obj["suites"]), "touched": tuple(obj.get("touched", ()))}
        return cls(**(dict(obj) | lists))

    def without(self, why: str) -> Ranking:
        """The record of a failed ranking."""
        return replace(self, strategy="", failed=why)


@dataclass
class RankingInput:
    """The inputs of a ranking.

    strategy   the one asked for, "" for a default
    frontends  whose cases are wanted
    cases      the sources
    change     between base and head
    past       earlier verdicts, by case
    coverage   what cases cover, as `fuzzing.prioritize.coverage_measurement` prints it; None if not measured
    options    of the strategy, each NAME=VALUE
    """

    strategy: str
    backend: str
    frontends: Sequence[str]
    seed: int
    cases: Sequence[CaseSource]
    corpus: Path
    change: Change | None = None
    past: Mapping[str, CaseHistory] = field(default_factory=dict)
    coverage: Path | None = None
    options: Sequence[str] = ()

    @contextmanager
    def arguments(self) -> Iterator[tuple[list[str], Ranking]]:
        """Arguments for `fuzzing.prioritize` and the record of the inputs; the files exist within the
        context.
        """
        chosen = self.strategy or (STRATEGY_WITH_HISTORY if self.change or self.past else DEFAULT_STRATEGY)
        suites = find_suites(self.backend, self.frontends)
        ranking = Ranking(chosen, self.strategy, self.seed, suites=suites)
        words = ["--strategy", chosen, "--seed", str(self.seed), "--backend", self.backend]
        words += [word for one in self.cases for word in one.arguments()]
        words += [word for suite in suites for word in ("--suite", suite)]
        words += [word for option in self.options for word in ("--option", option)]
        if self.coverage:
            words += ["--coverage", str(self.coverage.absolute())]
        with ExitStack() as files:
            if self.change:
                change = files.enter_context(self.change.file())
                words += ["--change", str(change), "--touched", str(MAX_TOUCHED)]
                ranking = replace(ranking, change=self.change.to_json())
            if self.past:
                folder = Path(files.enter_context(tempfile.TemporaryDirectory(prefix="assay-ranking-")))
                digest = self._write_history(folder / "history.jsonl")
                words += ["--history", str(folder / "history.jsonl")]
                ranking = replace(ranking, history={"digest": digest, "cases": len(self.past)})
            yield words, ranking

    def _write_history(self, path: Path) -> str:
        """Writes the history with operators; returns its digest."""
        operators: dict[str, str] = {}
        for one in self.cases:
            operators |= one.operators(self.past.keys())
        digest = hashlib.sha256()
        with open(path, "wb") as file:
            for case_id, past in self.past.items():
                operator = operators.get(case_id)
                if operator is None and (operator := self._operator(case_id)) is None:
                    continue  # its case was deleted
                fields = {name: value for name, value in asdict(past).items() if name != "case"}
                line = json.dumps({"id": case_id, "operator": operator} | fields).encode() + b"\n"
                file.write(line)
                digest.update(line)
        return digest.hexdigest()

    def _operator(self, case_id: str) -> str | None:
        try:
            return origin(self.corpus, case_id).operator
        except InfrastructureError:
            return None


def find_suites(backend: str, frontends: Iterable[str]) -> tuple[str, ...]:
    """The counted suites of a backend's own tests for these frontends."""
    folder = Path(next(iter(fuzzing.__path__))) / _SUITES
    suites = (f"{backend}.{frontend}" for frontend in frontends)
    return tuple(suite for suite in suites if (folder / f"{suite}.json").exists())


def resolve_frontends(backend: str, frontend: str | None, sources: Iterable[str]) -> tuple[str, ...]:
    """The frontend asked for, else those that the sources need."""
    if frontend:
        return (frontend,)
    libraries = {names.source_libraries().get(source) for source in sources}
    known = names.frontends(backend) if backend in names.backends() else ()
    return tuple(one for one in known if one in libraries) or known


class CaseOrder:
    """Case ids in order, in a temporary file."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="assay-order-")  # noqa: SIM115
        self.ended = False
        self.touched: list[Mapping[str, Any]] = []

    def __enter__(self) -> CaseOrder:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes an event of `fuzzing.prioritize`."""
        if event.get("event") == "ranked":
            self.put(event["id"])
        elif event.get("event") == "touched":
            self.touched.append({name: value for name, value in event.items() if name != "event"})
        elif event.get("event") == "end":
            self.ended = True

    def put(self, case_id: str) -> None:
        """Appends an id."""
        self._file.write(bytes.fromhex(case_id))

    def close(self) -> None:
        """Flushes."""
        self._file.flush()

    def clear(self) -> None:
        """Deletes all ids."""
        self._file.seek(0)
        self._file.truncate()

    def ids(self) -> Iterator[str]:
        """The ids, streamed."""
        self._file.seek(0)
        while piece := self._file.read(_ID_BYTES * 1024):
            for at in range(0, len(piece), _ID_BYTES):
                yield piece[at : at + _ID_BYTES].hex()


def merge_order(
    order: Iterable[str], cases: Sequence[CaseSource], known: Iterable[str] = ()
) -> Iterator[str]:
    """Each case once, without those `known`: ranked ones first, then the rest in the order of the sources."""
    own = {short_id(case_id) for one in cases for case_id in one.cases()}
    ranked = (case_id for case_id in order if short_id(case_id) in own)
    return distinct(chain(ranked, (case_id for one in cases for case_id in one.cases())), known)
