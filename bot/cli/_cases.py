"""Finding the case that a command names."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.settings import load_settings
from fuzzing.cases import Corpus, TestCase, read_case
from fuzzing.errors import UsageError


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
    """The case that `case` names, and a corpus that holds it: a folder, or the beginning of an id.

    A folder's case is in a corpus of its own for the time. Raises UsageError: there is none, or several.
    """
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
