"""Finding the cases that a command names."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from bot.cli.common.model_cache import ModelCache
from bot.runners import run_tool
from bot.settings import load_settings
from fuzzing.cases import Corpus, TestCase, read_case
from fuzzing.errors import UsageError

T = TypeVar("T")
MODEL_SUFFIX = ".onnx"
_SET = "test_data_set_"  # as `fuzzing.migrate.onnx_files` names the cases of a model with data
_DETAIL = 200  # characters of what onnx says of a model


def open_corpus(path: Path) -> Path:
    """The corpus at `path`, or one that is made of the ONNX models there: a file, or a folder of them.

    Models that become no case are told of on stderr. It stays there until the command ends, at least.
    Raises UsageError where none becomes one.
    """
    if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
        raise UsageError(f"{path} cannot be read; mind its permissions")
    if path.is_dir() and (next(Corpus(path).ids(), None) or not _has_models(path)):
        _hold_until_exit(ModelCache(load_settings().data_dir).hold(path))
        return path.resolve()
    if not path.is_dir() and not _is_model(path):
        raise UsageError(f"{path} is no ONNX model; name one, a folder of them, or a corpus folder")
    return _import_models(path)[0]


def _is_model(path: Path) -> bool:
    return path.suffix.lower() == MODEL_SUFFIX


def _has_models(folder: Path) -> bool:
    return any(_is_model(one) for one in folder.rglob("*.*"))


def _hold_until_exit(resource: AbstractContextManager[T]) -> T:
    """Enters what the command that runs leaves when it ends."""
    return click.get_current_context().with_resource(resource)


def _import_models(path: Path) -> tuple[Path, dict[str, str]]:
    """A corpus made of models, and what its cases are called, by id and in order; raises as `open_corpus`."""
    model_cache = ModelCache(load_settings().data_dir)
    with model_cache.new_set(path) as folder:
        corpus = folder / ((path.resolve() if path.is_dir() else path).name or "models")
        cases, left_out = _run_importer(path, corpus)
        if not cases:
            raise _no_case_error(path, left_out)
        for line in left_out:
            click.echo(f"left out {line}", err=True)
        return _hold_until_exit(model_cache.store(folder, cases)) / corpus.name, cases


def _no_case_error(path: Path, left_out: Sequence[str]) -> UsageError:
    for line in left_out[1:]:
        click.echo(f"left out {line}", err=True)
    error = UsageError(f"no model of {path} can be run: {left_out[0] if left_out else 'there is none'}")
    if any(f": an {what} " in line for line in left_out for what in ("input", "operator")):
        error.add_note(
            "what cannot be drawn or computed may lie beside the model: "
            "test_data_set_0/input_0.pb, …, output_0.pb"
        )
    return error


def _run_importer(path: Path, root: Path) -> tuple[dict[str, str], list[str]]:
    """Makes cases of models: what they are called by id, and what became none, with the reason."""
    cases: dict[str, str] = {}
    left_out: list[str] = []

    def take(event: dict[str, Any]) -> None:
        if event["event"] == "skip":
            detail = " ".join(event["detail"].split())[:_DETAIL]
            left_out.append(f"{event['test']}: {event['reason']}" + (f" ({detail})" if detail else ""))
        elif event["event"] == "case" and event["id"] in cases:
            left_out.append(f"{event['test']}: it is the same case as {cases[event['id']]}")
        elif event["event"] == "case":
            cases[event["id"]] = event["test"]

    run_tool("fuzzing.migrate.onnx_files", ["--corpus", str(root), str(path.absolute())], take)
    return cases, ["".join(char if char.isprintable() else "�" for char in line) for line in left_out]


def cases_to_json(result: Sequence[dict[str, Any]]) -> str:
    """What --json prints of cases: of one its object, of several an object whose `cases` are theirs."""
    return json.dumps(result[0] if len(result) == 1 else {"cases": result})


@contextmanager
def linked_corpus(cases: Path, kept: Path) -> Iterator[Path]:
    """A corpus for the time, with the cases of the folder `cases`; what is added goes to `kept` instead."""
    with tempfile.TemporaryDirectory(prefix="assay-cases-") as name:
        root, given = Path(name), Corpus(cases)
        for case_id in given.ids():
            place = Corpus(root).folder(case_id)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(given.folder(case_id))
        try:
            yield root
        finally:
            for case_id in Corpus(root).ids():
                if not Corpus(root).folder(case_id).is_symlink():
                    Corpus(kept).add(Corpus(root).get(case_id))


@contextmanager
def find_case(
    case: str, corpus: Path | None, data_set: int | None = None
) -> Iterator[tuple[Corpus, TestCase]]:
    """The one case that `case` names, as `find_cases`; raises UsageError where that names several."""
    with find_cases(case, corpus, data_set) as (store, found):
        if len(found) > 1:
            result = ", ".join(str(_data_set_number(one.provenance.test)) for one in found)
            error = UsageError(f"{case} has {len(found)} data sets, {result}, and one is asked for")
            error.add_note(
                f"name it with --data-set, such as --data-set {_data_set_number(found[0].provenance.test)}; "
                "`assay replay` runs all, and says which fail"
            )
            raise error
        yield store, found[0]


@contextmanager
def find_cases(
    case: str, corpus: Path | None, data_set: int | None = None
) -> Iterator[tuple[Corpus, list[TestCase]]]:
    """The cases that `case` names, and a corpus that holds them: a folder, an ONNX model, or part of an id.

    A model is a case for each data set that lies beside it, or the one that is asked for. A folder's case is
    in a corpus of its own for the time. Raises UsageError: there is none, or an id begins several.
    """
    if _is_model(Path(case)):
        yield _cases_of_model(Path(case), data_set)
        return
    if data_set is not None:
        raise UsageError(f"--data-set is of the data beside an ONNX model, and {case} is none")
    if Path(case, "case.json").exists():
        found = read_case(Path(case))
        with tempfile.TemporaryDirectory(prefix="assay-case-") as folder:
            single = Corpus(folder)
            single.add(found)
            yield single, [found]
        return
    yield _find_by_id(case, corpus or load_settings().data_dir / "corpus")


def _cases_of_model(file: Path, data_set: int | None) -> tuple[Corpus, list[TestCase]]:
    if not os.path.lexists(file):  # where a link leads to nothing, its reader says so
        raise UsageError(f"there is no file {file}")
    if file.is_dir():
        raise _folder_error(file)
    corpus, names = _import_models(file)
    chosen = [one for one, name in names.items() if data_set in (None, _data_set_number(name))]
    if not chosen:
        known = ", ".join(
            str(_data_set_number(name)) for name in names.values() if _data_set_number(name) is not None
        )
        raise UsageError(f"{file} has no data set {data_set}; it has {known or 'none'}")
    store = Corpus(corpus)
    return store, [store.get(one) for one in chosen]


def _data_set_number(test: str) -> int | None:
    """Of which data set a case is that was made of a model; None for drawn inputs."""
    _, found, number = test.rpartition(f"/{_SET}")
    return int(number) if found else None


def _find_by_id(case: str, root: Path) -> tuple[Corpus, list[TestCase]]:
    _hold_until_exit(ModelCache(load_settings().data_dir).hold(root))
    store = Corpus(root)
    try:
        return store, [store.get(store.find(case))]
    except UsageError as error:
        if Path(case).is_dir():
            raise _folder_error(Path(case)) from None
        error.add_note(
            "`assay run` stores the cases that it runs and its report names them; give more of the id, the "
            "folder of a case, or another corpus with --corpus"
        )
        raise


def _folder_error(folder: Path) -> UsageError:
    error = UsageError(f"{folder} is a folder, and no case in it is named")
    error.add_note(f"name a model in it, or a case's own folder; `assay run --cases {folder}` runs all")
    return error
