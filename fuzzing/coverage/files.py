"""From paths to a tally: models found one after another, read here or by several processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from fuzzing.coverage.models import InvalidModelError, extract_scopes, read
from fuzzing.coverage.operators import OperatorSet
from fuzzing.coverage.tally import Tally
from fuzzing.errors import InfrastructureError, UsageError
from fuzzing.process_pool import map_in_processes

_SUFFIX = ".onnx"
_BATCH = 64  # models; some tenths of a second, of which handing a tally over is a hundredth


@dataclass
class Batch:
    """What some files gave.

    broken  files that are no models, with why
    """

    tally: Tally
    broken: list[tuple[Path, str]] = field(default_factory=list)


def find_models(paths: Iterable[Path]) -> Iterator[Path]:
    """The models among files and folders, in the order of `paths`; within a folder, in that of names.

    No more than the entries of one folder a level are held. Raises UsageError for a path that is not there.
    """
    for path in paths:
        if path.is_dir():
            yield from _in_folder(path)
        elif path.exists():
            yield path
        else:
            raise UsageError(f"{path} is not there; name ONNX files, or folders that hold some")


def _in_folder(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise InfrastructureError(f"the folder {folder} cannot be read: {error.strerror}") from error
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _in_folder(Path(entry.path))
        elif entry.name.endswith(_SUFFIX):
            yield Path(entry.path)


def read_tally(operators: OperatorSet, paths: Iterable[Path]) -> Batch:
    """Reads the files, one at a time."""
    batch = Batch(Tally(operators))
    for path in paths:
        try:
            scopes = extract_scopes(read(path))
        except InvalidModelError as error:
            batch.broken.append((path, str(error)))
        else:
            batch.tally.add(scopes)
    return batch


def read_batches(paths: Iterable[Path], operators: OperatorSet, jobs: int) -> Iterator[Batch]:
    """Tallies of all files, in the order of these, by `jobs` processes; few batches are held at a time.

    Raises InfrastructureError if a process dies, as it does of a model that breaks ONNX itself.
    """
    rest = iter(paths)
    return map_in_processes(
        partial(read_tally, operators),
        iter(lambda: tuple(islice(rest, _BATCH)), ()),
        jobs,
        "a process that read models died, of memory or of a model that breaks ONNX itself; "
        "run again with --jobs 1 on parts of the folder to find the model",
    )
