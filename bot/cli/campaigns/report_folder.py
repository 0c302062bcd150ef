"""The folder of `assay run --report`: of several runs, each has its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path

from bot.errors import UsageError

_REPORT = "report.json"
_CLAIM = ".assay-run"  # a run writes to this folder, or wrote to it


@contextmanager
def report_folder(report: Path | None) -> Iterator[Path]:
    """Creates the report folder before the campaign runs, so that an error is reported early.

    A folder that another run writes to, or wrote to, is kept: this one gets the first free of its subfolders
    `2`, `3`, …. None gives a temporary folder.
    """
    if report is None:
        with tempfile.TemporaryDirectory(prefix="assay-report-") as folder:
            yield Path(folder)
        return
    try:
        report.mkdir(parents=True, exist_ok=True)
        chosen = next(filter(_claim, chain([report], (report / str(number) for number in count(2)))))
    except OSError as error:
        raise UsageError(f"--report {report}: cannot be written: {error.strerror}") from None
    try:
        yield chosen
    finally:
        if not any(chosen.rglob(_REPORT)):
            (chosen / _CLAIM).unlink(missing_ok=True)


def _claim(folder: Path) -> bool:
    """Whether a folder is free; from then on it is not."""
    folder.mkdir(exist_ok=True)
    if (folder / _REPORT).exists():  # of a version of Assay without claims
        return False
    try:
        (folder / _CLAIM).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
