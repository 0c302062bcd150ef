"""Measures which lines of a Python frontend each case covers, with coverage.py, for orders by coverage.

`python -m fuzzing.prioritize.coverage_measurement --backend tvm --package tvm.relax.frontend --corpus DIR
[--catalog FILE]…` converts each case with the backend, many in one process, and prints JSON lines:

    {"event": "covered", "id": ID, "files": {FILE: [LINE, …]}}
    {"event": "died", "id": ID}              the process died, or exceeded --limit: no line counts
    {"event": "end", "cases": N, "died": N}

Lines that run on import do not count, as they are the same for all cases. For experiments on trusted cases:
unlike a campaign's worker, the process is not sandboxed. Exit codes: 0 success, 2 usage error, 3 failure of
the machine.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import importlib.util
import json
import pkgutil
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fuzzing.cases import Corpus
from fuzzing.entry_point import emit_event_now, note, run_main
from fuzzing.errors import InfrastructureError, UsageError
from fuzzing.prioritize.instances import read_instances
from fuzzing.prioritize.strategies import Coverage

_LIMIT_S = 40.0  # for each case, as in OPERA
_PROGRESS_EVERY = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.prioritize.coverage_measurement")
    parser.add_argument("--backend", required=True)
    parser.add_argument("--package", required=True, help="whose lines count, such as tvm.relax.frontend")
    parser.add_argument("--corpus", required=True, type=Path)
    parser.add_argument(
        "--catalog", action="append", default=[], type=Path, help="which cases; all by default"
    )
    parser.add_argument("--limit", type=float, default=_LIMIT_S, help="seconds for each case")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    work = _serve if given.serve else _measure_all
    return run_main(parser.prog, lambda: work(given), events=not given.serve)


def load(path: Path) -> Coverage:
    """Reads the output of this module from a file, gzipped if its name ends in .gz: case id → lines.

    Raises UsageError for another file.
    """
    found: dict[str, frozenset[tuple[str, int]]] = {}
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            for event in map(json.loads, file):
                if event["event"] == "covered":
                    lines = ((name, int(at)) for name, ats in event["files"].items() for at in ats)
                    found[event["id"]] = frozenset(lines)
    except OSError as error:
        raise UsageError(f"cannot read the coverage {path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"{path} was not printed by fuzzing.prioritize.coverage_measurement: {error!r}"
        ) from None
    return found


# The parent process


def _measure_all(given: argparse.Namespace) -> None:
    package_folder(given.package)
    died = count = 0
    child: _Worker | None = None
    try:
        for count, case_id in enumerate(_ids(given), 1):
            child = child or _Worker(given)
            files = child.covered(case_id, given.limit)
            if files is None:
                child.end()
                died, child = died + 1, None
                emit_event_now(event="died", id=case_id)
            else:
                emit_event_now(event="covered", id=case_id, files=files)
            if count % _PROGRESS_EVERY == 0:
                note(f"{count} cases run, {died} of them ended their process")
    finally:
        if child is not None:
            child.end()
    emit_event_now(event="end", cases=count, died=died)


def _ids(given: argparse.Namespace) -> Iterator[str]:
    if not given.catalog:
        yield from Corpus(given.corpus).ids()
    for path in given.catalog:
        try:
            with open(path, encoding="utf-8") as file:
                yield from (one.id for one in read_instances(file))
        except OSError as error:
            raise UsageError(f"cannot read the catalog {path}: {error.strerror}") from None


class _Worker:
    """The converting process."""

    def __init__(self, given: argparse.Namespace) -> None:
        command = [
            *(sys.executable, "-m", "fuzzing.prioritize.coverage_measurement", "--serve"),
            *("--backend", given.backend, "--package", given.package, "--corpus", str(given.corpus)),
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self._line(None) != b"ready\n":
            code = self._process.wait()
            raise InfrastructureError(
                f"{given.backend} cannot be loaded (exit code {code}); its own words stand above"
            )

    def covered(self, case_id: str, limit: float) -> dict[str, list[int]] | None:
        """The lines by file; None if the process died or had to be killed."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{case_id}\n".encode())
            self._process.stdin.flush()
        line = self._line(limit)
        found: dict[str, list[int]] | None = json.loads(line) if line.endswith(b"\n") else None
        return found

    def _line(self, limit: float | None) -> bytes:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], limit)
        return self._process.stdout.readline() if ready else b""

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()


# The converting process


def _serve(given: argparse.Namespace) -> None:
    from fuzzing import backends

    answers = sys.stdout
    sys.stdout = sys.stderr  # compilers print to stdout
    backend = backends.get(given.backend)()
    backend.load("CPU", backend.resolve_options({}))
    _import_all(given.package)
    measure = _measurer(given.package)
    answers.write("ready\n")
    answers.flush()
    corpus = Corpus(given.corpus)
    for line in sys.stdin:
        case = corpus.get(line.strip())
        measure.start()
        with suppress(Exception):  # a case that the frontend rejects has still covered lines
            backend.convert(case.program, list(case.values()))
        measure.stop()
        data = measure.get_data()
        files = {file: sorted(data.lines(file)) for file in sorted(data.measured_files())}
        measure.erase()
        answers.write(json.dumps(files) + "\n")
        answers.flush()


def _import_all(package: str) -> None:
    """Imports what a frontend imports lazily for its first cases."""
    inside = pkgutil.walk_packages([package_folder(package)], f"{package}.", onerror=lambda _: None)
    for name in (package, *(module.name for module in inside)):
        with suppress(Exception):  # it needs a missing library; so will its cases
            importlib.import_module(name)


def _measurer(package: str) -> Any:
    try:
        import coverage
    except ImportError as error:
        raise UsageError(f"coverage.py measures what cases cover: pip install coverage ({error})") from None
    return coverage.Coverage(data_file=None, include=[f"{package_folder(package)}/*"], config_file=False)


def package_folder(package: str) -> str:
    """Folder of a package's files; raises UsageError if it is not installed."""
    try:
        found = importlib.util.find_spec(package)
    except ImportError:
        found = None
    if found is None or not found.submodule_search_locations:
        raise UsageError(f"there is no Python package {package}; name one that is installed here")
    return found.submodule_search_locations[0]


if __name__ == "__main__":
    sys.exit(main())
