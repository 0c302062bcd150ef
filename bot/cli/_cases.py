"""Finding the cases that a command names."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import click

from bot.runners import run_tool
from bot.settings import load_settings
from fuzzing.cases import Corpus, TestCase, read_case
from fuzzing.errors import UsageError

MODEL = ".onnx"


def corpus_at(path: Path) -> Path:
    """The corpus at `path`, or one that is made of the ONNX models there: a file, or a folder of them.

    Models that become no case are told of on stderr. Raises UsageError where none becomes one.
    """
    if path.is_dir() and (next(Corpus(path).ids(), None) or not any(path.rglob(f"*{MODEL}"))):
        return path.resolve()
    if not path.is_dir() and path.suffix != MODEL:
        raise UsageError(f"{path} is no ONNX model; name one, a folder of them, or a corpus folder")
    models = sorted(path.rglob(f"*{MODEL}")) if path.is_dir() else [path]
    root = load_settings().data_dir.absolute() / "models" / _digest(models) / path.resolve().name
    cases, skipped = _imported(path, root)
    for skip in skipped if cases else ():
        click.echo(f"left out {skip}", err=True)
    if not cases:
        error = UsageError(f"no model of {path} can be run: {skipped[0]}")
        error.add_note("its inputs are drawn, unless they lie beside it as test_data_set_0/input_0.pb")
        raise error
    return root


def _digest(models: Sequence[Path]) -> str:
    """Names models and the data beside them: where one changes, it is another corpus."""
    digest = hashlib.sha256()
    beside = (
        sorted(folder.glob("test_data_set_*/*.pb")) for folder in sorted({one.parent for one in models})
    )
    for file in chain(models, *beside):
        told = file.stat()
        digest.update(f"{file.resolve()}\0{told.st_size}\0{told.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]


def _imported(path: Path, root: Path) -> tuple[list[str], list[str]]:
    """Makes cases of models: their ids, and what became none, with the reason."""
    cases: list[str] = []
    skipped: list[str] = []

    def take(event: dict[str, Any]) -> None:
        if event["event"] == "case":
            cases.append(event["id"])
        elif event["event"] == "skip":
            skipped.append(f"{event['test']}: {event['reason']}")

    run_tool("fuzzing.migrate.onnx_files", ["--corpus", str(root), str(path.resolve())], take)
    return cases, skipped


@contextmanager
def linked(cases: Path) -> Iterator[Path]:
    """A corpus for the time, with the cases of the folder `cases` in it; what is added stays out of that."""
    with tempfile.TemporaryDirectory(prefix="assay-cases-") as name:
        root, given = Path(name), Corpus(cases)
        for case_id in given.ids():
            place = Corpus(root).folder(case_id)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(given.folder(case_id))
        yield root


@contextmanager
def stored_case(case: str, corpus: Path | None) -> Iterator[tuple[Corpus, TestCase]]:
    """The case that `case` names, and a corpus that holds it: a folder, an ONNX model, or part of an id.

    A folder's case is in a corpus of its own for the time. Raises UsageError: there is none, or several.
    """
    if Path(case).suffix == MODEL:
        if not Path(case).is_file():
            raise UsageError(f"there is no file {case}")
        models = Corpus(corpus_at(Path(case)))
        yield models, models.get(next(models.ids()))
        return
    if Path(case, "case.json").exists():
        found = read_case(Path(case))
        with tempfile.TemporaryDirectory(prefix="assay-case-") as folder:
            alone = Corpus(folder)
            alone.add(found)
            yield alone, found
        return
    store = Corpus(corpus or load_settings().data_dir / "corpus")
    try:
        found_id = store.find(case)
    except UsageError as error:
        error.add_note(
            "`assay run` stores the cases that it runs and its report names them; give more of the id, the "
            "folder of a case, or another corpus with --corpus"
        )
        raise
    yield store, store.get(found_id)
