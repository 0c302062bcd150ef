"""Finding the cases that a command names."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from bot.cli.common.model_cache import ModelCache
from bot.runners import run_tool
from bot.settings import load_settings
from bot.terminal import echo
from fuzzing.cases import Corpus, TestCase, read_case
from fuzzing.errors import UsageError

T = TypeVar("T")
MODEL_SUFFIX = ".onnx"
_SET = "test_data_set_"  # as `fuzzing.migrate.onnx_files` names the cases of a model with data
_DETAIL = 200  # characters of onnx's message about a model


def open_corpus(path: Path) -> Path:
    """The corpus at `path`, or one made from the ONNX model or folder of models there.

    Prints models that cannot become a case to stderr. The corpus exists at least until the command ends.
    Raises UsageError if there is no case.
    """
    if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
        raise UsageError(f"{path} cannot be read; check its permissions")
    if path.is_dir() and (next(Corpus(path).ids(), None) or not _has_models(path)):
        _hold_until_exit(ModelCache(load_settings().data_dir).hold(path))
        return path.resolve()
    if not path.is_dir() and not _is_model(path):
        raise UsageError(f"{path} is not an ONNX model; give a model, a folder of models, or a corpus folder")
    return _import_models(path)[0]


def _is_model(path: Path) -> bool:
    return path.suffix.lower() == MODEL_SUFFIX


def _has_models(folder: Path) -> bool:
    return any(_is_model(one) for one in folder.rglob("*.*"))


def _hold_until_exit(resource: AbstractContextManager[T]) -> T:
    """Enters a context that the current command exits when it ends."""
    return click.get_current_context().with_resource(resource)


def _import_models(path: Path) -> tuple[Path, dict[str, str]]:
    """A corpus made of models, and the names of its cases by id, in order; raises as `open_corpus`."""
    model_cache = ModelCache(load_settings().data_dir)
    with model_cache.new_set(path) as folder:
        corpus = folder / ((path.resolve() if path.is_dir() else path).name or "models")
        cases, left_out = _run_importer(path, corpus)
        if not cases:
            raise _no_case_error(path, left_out)
        for line in left_out:
            echo(f"left out {line}", err=True)
        return _hold_until_exit(model_cache.store(folder, cases)) / corpus.name, cases


def _no_case_error(path: Path, left_out: Sequence[str]) -> UsageError:
    for line in left_out[1:]:
        echo(f"left out {line}", err=True)
    error = UsageError(f"no model in {path} can be run: {left_out[0] if left_out else 'there is none'}")
    if any(f": an {what} " in line for line in left_out for what in ("input", "operator")):
        error.add_note(
            "put inputs and outputs that cannot be generated beside the model: "
            "test_data_set_0/input_0.pb, …, output_0.pb"
        )
    return error


def _run_importer(path: Path, root: Path) -> tuple[dict[str, str], list[str]]:
    """Makes cases of models; returns their names by id, and what was left out and why."""
    cases: dict[str, str] = {}
    left_out: list[str] = []

    def take(event: dict[str, Any]) -> None:
        if event["event"] == "skip":
            detail = " ".join(event["detail"].split())[:_DETAIL]
            left_out.append(f"{event['test']}: {event['reason']}" + (f" ({detail})" if detail else ""))
        elif event["event"] == "case" and event["id"] in cases:
            left_out.append(f"{event['test']}: same case as {cases[event['id']]}")
        elif event["event"] == "case":
            cases[event["id"]] = event["test"]

    run_tool("fuzzing.migrate.onnx_files", ["--corpus", str(root), str(path.absolute())], take)
    return cases, ["".join(char if char.isprintable() else "�" for char in line) for line in left_out]


def cases_to_json(result: Sequence[dict[str, Any]]) -> str:
    """The --json output for cases: one object, or an object with a list of `cases`."""
    return json.dumps(result[0] if len(result) == 1 else {"cases": result})


@contextmanager
def linked_corpus(cases: Path, kept: Path, only: Collection[str] | None = None) -> Iterator[Path]:
    """A temporary corpus with the cases of the folder `cases`, or `only` some of them.

    Cases added to it are moved to `kept`.
    """
    with tempfile.TemporaryDirectory(prefix="assay-cases-") as name:
        root, given = Path(name), Corpus(cases)
        for case_id in given.ids() if only is None else only:
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
    """As `find_cases` for a single case; raises UsageError if there are several."""
    with find_cases(case, corpus, data_set) as (store, found):
        if len(found) > 1:
            result = ", ".join(str(_data_set_number(one.provenance.test)) for one in found)
            error = UsageError(f"{case} has {len(found)} data sets ({result}); choose one")
            error.add_note(
                f"use --data-set, such as --data-set {_data_set_number(found[0].provenance.test)}; "
                "`assay replay` runs all of them"
            )
            raise error
        yield store, found[0]


@contextmanager
def find_cases(
    case: str, corpus: Path | None, data_set: int | None = None
) -> Iterator[tuple[Corpus, list[TestCase]]]:
    """The cases that `case` names (a folder, an ONNX model, or the beginning of an id) and their corpus.

    A model gives a case for each of its data sets, or for the chosen one. Raises UsageError if no case
    matches or an id is ambiguous.
    """
    if _is_model(Path(case)):
        yield _cases_of_model(Path(case), data_set)
        return
    if data_set is not None:
        raise UsageError(f"--data-set needs an ONNX model, and {case} is not one")
    if Path(case, "case.json").exists():
        found = read_case(Path(case))
        with tempfile.TemporaryDirectory(prefix="assay-case-") as folder:
            single = Corpus(folder)
            single.add(found)
            yield single, [found]
        return
    yield _find_by_id(case, corpus or load_settings().data_dir / "corpus")


def _cases_of_model(file: Path, data_set: int | None) -> tuple[Corpus, list[TestCase]]:
    if not os.path.lexists(file):  # where a link leads to nothing, its reader reports it
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
            "`assay run` stores the cases it runs and its report lists them; give more of the id, the folder "
            "of a case, or another corpus with --corpus"
        )
        raise


def _folder_error(folder: Path) -> UsageError:
    error = UsageError(f"{folder} is a folder, not a case")
    error.add_note(f"name a model in it or the folder of one case; `assay run --cases {folder}` runs all")
    return error
