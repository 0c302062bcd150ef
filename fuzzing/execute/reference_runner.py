"""Runs a program's own library for references: which backend, interpreter and folder."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from fuzzing import backends
from fuzzing.cases import TestCase
from fuzzing.errors import CaseFormatError, InfrastructureError
from fuzzing.execute.limits import Limits
from fuzzing.execute.scratch_folder import ScratchFolder
from fuzzing.execute.supervisor import Supervisor, Tag
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution

#: Kinds whose library is bundled with Assay. For other kinds it is the toolchain's: a compiler is compared
#: with the torch or Keras beside it, not with another release.
_BUNDLED_KINDS = frozenset({"OnnxModel"})

#: Where outputs of the libraries are, below the corpus.
REFERENCES_FOLDER = ".references"


class ReferenceRunner:
    """The library for programs of one kind, and the folder of its outputs beside a corpus.

    If nothing can be written beside the corpus, a temporary folder is used.

    python        the interpreter of the toolchain
    options       of all the library's runs, as far as it has them (`Backend.reference_options`)
    keep_workers  from one `run` to the next, until `close`
    """

    def __init__(
        self,
        kind: str,
        corpus: Path,
        python: str,
        limits: Limits,
        options: Mapping[str, str] | None = None,
        *,
        keep_workers: bool = False,
    ) -> None:
        self.backend = backends.reference_backend(kind)
        self._python = sys.executable if kind in _BUNDLED_KINDS else python
        self._limits = limits
        self._keep_workers = keep_workers
        self._workers: dict[str, Supervisor[Any]] = {}
        known = self.backend.options
        self._options = {name: value for name, value in (options or {}).items() if name in known}
        setting = "".join(f"-{name}={value}" for name, value in sorted(self._options.items()))
        self._folder = corpus / REFERENCES_FOLDER / f"{self.backend.name}-{self._version()}{setting}"
        self._fallback_folder: Path | None = None

    def _version(self) -> str:
        """The library's version; "unknown" if the interpreter lacks it, which its worker reports."""
        package = self.backend.package
        if self._python == sys.executable:
            return metadata.version(package)
        root = Path(self._python).absolute().parent.parent
        sites = [str(path) for path in root.glob("lib/python3*/*-packages")]
        found = [item.version for item in metadata.distributions(name=package, path=sites)]
        return found[0] if found else "unknown"

    def run(
        self,
        cases: Iterable[tuple[Tag, TestCase]],
        options: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[tuple[Tag, Execution]]:
        """The execution of each case in the library's workers, as they end."""
        command = WorkerCommand(
            self._python,
            self.backend.name,
            options=self._options | dict(options or {}),
            limits=self._limits,
            environment=environment or {},
        )
        supervisor: Supervisor[Tag] = self._workers.get(repr(command)) or Supervisor(command)
        if not self._keep_workers:
            return supervisor.run(cases)
        self._workers[repr(command)] = supervisor
        return supervisor.serve(cases)

    def close(self) -> None:
        """Ends the workers kept."""
        for supervisor in self._workers.values():
            supervisor.close()
        self._workers.clear()

    def load(self, case: TestCase, suffix: str = "") -> dict[str, Any] | None:
        """The stored record of a case; None if there is none, or only a partial one."""
        for folder in filter(None, (self._folder, self._fallback_folder)):
            with contextlib.suppress(OSError, ValueError):
                record = json.loads(_path(folder, case, suffix).read_bytes())
                if isinstance(record, dict):
                    return record
        return None

    def store(self, case: TestCase, record: Mapping[str, Any], suffix: str = "") -> None:
        """Stores a record for a case, whole or not at all. Raises InfrastructureError if it cannot be
        written.
        """
        text = json.dumps(record)
        try:
            _write(_path(self._folder, case, suffix), text)
        except OSError:  # the corpus's disk may be read-only or full
            self._store_in_fallback(case, text, suffix)

    def _store_in_fallback(self, case: TestCase, text: str, suffix: str) -> None:
        if self._fallback_folder is None:
            scratch = ScratchFolder()
            weakref.finalize(self, scratch.remove)
            self._fallback_folder = Path(scratch.path)
        try:
            _write(_path(self._fallback_folder, case, suffix), text)
        except OSError as error:
            raise InfrastructureError(
                f"the reference of {self.backend.name} can be stored neither in {self._folder} nor in "
                f"{self._fallback_folder}: {error.strerror}; free some space, or set TMPDIR to another folder"
            ) from error


def _path(folder: Path, case: TestCase, suffix: str) -> Path:
    return folder / case.id[:2] / f"{case.id}{suffix}.json"


def _write(path: Path, text: str) -> None:
    """Writes a file atomically."""
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


class ReferenceRunners:
    """The libraries of all kinds of program in a corpus; arguments as those of `ReferenceRunner`."""

    def __init__(
        self,
        corpus: Path,
        python: str,
        limits: Limits,
        options: Mapping[str, str] | None = None,
        *,
        keep_workers: bool = False,
    ) -> None:
        self._given = corpus, python, limits, options
        self._keep_workers = keep_workers
        self._known: dict[str, ReferenceRunner] = {}

    def of(self, case: TestCase) -> ReferenceRunner:
        """The library of a case; raises UnknownNameError if there is none."""
        kind = case.program.kind
        if kind not in self._known:
            self._known[kind] = ReferenceRunner(kind, *self._given, keep_workers=self._keep_workers)
        return self._known[kind]

    def close(self) -> None:
        """Ends the workers kept."""
        for runner in self._known.values():
            runner.close()

    def groups(self, cases: Iterable[TestCase]) -> list[tuple[ReferenceRunner, list[TestCase]]]:
        """The cases by library; kinds may share one, and its worker."""
        groups: dict[str, tuple[ReferenceRunner, list[TestCase]]] = {}
        for case in cases:
            runner = self.of(case)
            groups.setdefault(runner.backend.name, (runner, []))[1].append(case)
        return list(groups.values())


def describe_failure(backend: str, execution: Execution) -> str:
    """Describes how a library failed to run a case."""
    how = execution.error or execution.ending
    if execution.ending == "killed":
        how = execution.signal or f"exit code {execution.exit_code}"
    return f"{backend} fails: {how} {execution.message}".strip()[:2000]


#: Exceptions of reading a record that another program wrote.
UNREADABLE_RECORD_ERRORS = (ValueError, TypeError, KeyError, CaseFormatError)
