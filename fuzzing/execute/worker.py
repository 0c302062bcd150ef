"""The worker: one compiler, imported once, serving many cases.

The supervisor starts it as a script, under any toolchain's interpreter, in isolated mode. It needs the
standard library, numpy and the compiler only. It decides nothing: it reports what happened.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import mmap
import os
import re
import sys
from functools import lru_cache
from os import SEEK_END, lseek
from time import monotonic_ns  # on Linux the same clock as perf_counter
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

    from fuzzing.backends.base import Backend
    from fuzzing.backends.shared.capture_runner import CaptureRunner
    from fuzzing.backends.shared.pair_runner import PairRunner
    from fuzzing.execute.batches import CaseRequest, Named

    #: A case that has ended: number, start of each phase and end of the last, outputs, exception, and notes
    #: if it was instrumented.
    _Ended = tuple[int, list[int], Named, Optional["_CaughtError"], Sequence[tuple[str, str]]]

_FLUSH_NS = 20_000_000


def import_package(root: str) -> None:
    """Makes the package `fuzzing` at `root` importable, and nothing beside it.

    Its parent on the path would expose the supervisor's own site-packages, with another numpy.
    """
    if "fuzzing" in sys.modules:
        return
    init = os.path.join(root, "__init__.py")  # noqa: PTH118 - the standard library only, so far
    spec = importlib.util.spec_from_file_location("fuzzing", init, submodule_search_locations=[root])
    if spec is None or spec.loader is None:
        raise SystemExit(f"there is no package at {root}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzzing"] = module
    spec.loader.exec_module(module)


class _CaughtError(NamedTuple):
    """An exception without its frames, which hold the compiler's objects.

    codes   of the functions in its traceback, outermost first
    log     start and end in the log of what the case has printed
    sticky  whether the process is unusable after it
    """

    kind: type[BaseException]
    message: str
    codes: List[CodeType]
    log: tuple[int, int]
    sticky: bool = False


class Worker:
    """Serves cases from one pipe to another."""

    def __init__(self, spec: dict[str, Any], page: Any) -> None:
        from fuzzing.execute import batches, protocol

        self._protocol = protocol
        self._parse_requests = batches.parse_requests
        self._answers = batches.AnswerBatch()
        self._page = protocol.page_view(page)
        self._in: int = spec["in"]
        self._out: int = spec["out"]
        self._log: int = spec["log"]
        self._full = _max_file_bytes() // 4
        self._root: str = spec["root"]

    def serve(self, backend: Backend) -> None:
        """Runs cases until the pipe is closed, or until an error that makes the process unusable.

        Or until the log, which has the file size limit, has too little room for a case's output.

        Cases are read and answers written several at a time: between two compilations the caches are cold,
        and each costs four times as much. A crash loses at most _FLUSH_NS of answers, whose cases the
        supervisor runs again.
        """
        from fuzzing.backends.shared.pair_runner import PairRunner
        from fuzzing.cases.equivalent_pair import EquivalentPair

        # One expression, which costs a quarter of several; without patterns it matches nothing.
        sticky = re.compile("|".join([f"(?:{pattern})" for pattern in backend.sticky]) or "(?!)")
        page, full = self._page, self._full
        pairs = PairRunner(backend)
        ended: list[_Ended] = []
        flushed = 0
        while (frame := self._protocol.read_frame(self._in)) is not None:
            for case_request in self._parse_requests(*frame):
                phases = pairs if isinstance(case_request.program, EquivalentPair) else backend
                end = (
                    self._run_instrumented(backend, phases, case_request)
                    if case_request.instrumentation
                    else self._run_case(phases, case_request)
                )
                ended.append(end)
                caught = end[3]
                if caught is not None and (sticky.search(caught.message) or not backend.is_usable()):
                    ended[-1] = (*end[:3], caught._replace(sticky=True), end[4])
                    self._flush(ended)
                    return
                if end[1][-1] - flushed > _FLUSH_NS:
                    flushed = self._flush(ended)
                if page[1] > full:
                    self._flush(ended)
                    return
            flushed = self._flush(ended)

    def _run_instrumented(
        self, backend: Backend, phases: Backend | PairRunner | CaptureRunner, case_request: CaseRequest
    ) -> _Ended:
        """Runs a case with its instrumentation, and returns the notes too."""
        from fuzzing.backends.base import SOURCE, Instrumentation
        from fuzzing.backends.shared.capture_runner import CaptureRunner
        from fuzzing.backends.shared.line_recorder import note_lines

        assert case_request.instrumentation is not None
        backend.instrumentation = Instrumentation(**case_request.instrumentation)
        if backend.instrumentation.library:
            phases = CaptureRunner(backend)
        with note_lines(backend.instrumentation, backend.import_name.partition(".")[0], backend.traced):
            number, marks, outputs, caught, _ = self._run_case(phases, case_request)
        notes = backend.instrumentation.notes
        if backend.instrumentation.sources:
            notes += [(SOURCE, path) for path in _imported_sources()]
        backend.instrumentation = Instrumentation()
        return number, marks, outputs, caught, notes

    def ready(self, versions: dict[str, str], isolation: str) -> None:
        """Reports that the compiler is imported, and the sandbox level."""
        self._send({"ready": True, "versions": versions, "isolation": isolation})

    def fail(self, error: BaseException) -> None:
        """Reports that the compiler cannot be imported."""
        self._send({"ready": False, **self._describe_error(_caught(error))})

    def _send(self, header: dict[str, Any]) -> None:
        self._write(self._protocol.pack(header))

    def _flush(self, ended: list[_Ended]) -> int:
        """Writes the answers, empties the list and returns the time."""
        if ended:
            add, encode = self._answers.add, self._protocol.encode_values
            for number, marks, outputs, caught, notes in ended:
                encoded = 0, b""
                if caught is None:
                    try:
                        encoded = encode(outputs)
                    except Exception as error:  # noqa: BLE001 - a backend's outputs may be anything
                        caught = _caught(error)  # noqa: PLW2901
                add(number, marks, caught and self._describe_error(caught), encoded, notes)
            self._write(self._answers.frame())
            ended.clear()
        return monotonic_ns()

    def _write(self, frame: bytes) -> None:
        view = memoryview(frame)
        while view:
            view = view[os.write(self._out, view) :]

    def _run_case(self, backend: Backend | PairRunner | CaptureRunner, case_request: CaseRequest) -> _Ended:
        """Runs a case.

        This runs between two compilations, with cold caches, where each line takes several times as long as
        usual; all work that can be deferred is in `_flush`.
        """
        number, program, inputs, _ = case_request
        page = self._page
        page[1] = log = lseek(self._log, 0, SEEK_END)  # its size, at a fifth of fstat's cost
        page[0] = number
        caught = None
        outputs: Named = []
        model = executable = None
        page[2] = now = monotonic_ns()
        marks = [now]
        try:
            model = backend.convert(program, inputs)
            page[3] = now = monotonic_ns()
            marks.append(now)
            executable = backend.compile(model)
            page[4] = now = monotonic_ns()
            marks.append(now)
            outputs = backend.run(executable, inputs)
        except Exception as error:  # noqa: BLE001 - any exception of a compiler is evidence
            caught = _caught(error, log, lseek(self._log, 0, SEEK_END))
        # Destructors belong to the case: a crash in them must not be charged to the next one.
        del model, executable
        page[5] = now = monotonic_ns()
        marks.append(now)
        return number, marks, outputs, caught, ()

    def _describe_error(self, caught: _CaughtError) -> dict[str, Any]:
        """Description of an exception, without Assay's own functions."""
        theirs = [code for code in caught.codes if not code.co_filename.startswith(self._root)]
        return {
            "error": caught.kind.__name__,
            "module": caught.kind.__module__,
            "message": caught.message,
            "traceback": [f"{_relative(code.co_filename)}:{_qualified(code)}" for code in theirs[-50:]],
            "log": list(caught.log),
            "sticky": caught.sticky,
        }


def _caught(error: BaseException, begin: int = 0, end: int = 0) -> _CaughtError:
    """An exception, and the case's part of the log."""
    codes = []
    trace = error.__traceback__
    while trace is not None:  # not `traceback`, which reads every source file
        codes.append(trace.tb_frame.f_code)
        trace = trace.tb_next
    return _CaughtError(type(error), _error_text(error), codes, (begin, end))


def _error_text(error: BaseException) -> str:
    try:
        return str(error)[:16_000]
    except Exception as other:  # noqa: BLE001 - the compiler's class may be wrong, too
        return f"({type(other).__name__} from its __str__)"


def _max_file_bytes() -> int:
    """The limit of a file's size, in bytes."""
    import resource

    bound, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return sys.maxsize if bound == resource.RLIM_INFINITY else bound


def _qualified(code: CodeType) -> str:
    """A function's name with its class, where Python knows it (3.11): converters may all have one name.

    The code that stands for a C++ function in TVM's tracebacks has its name alone.
    """
    qualified = str(getattr(code, "co_qualname", code.co_name)).replace(".<locals>", "")
    return qualified if qualified.endswith(code.co_name) else code.co_name


@lru_cache(maxsize=4096)
def _relative(filename: str) -> str:
    """A file's name below site-packages or the standard library: the same on every machine."""
    for marker in (
        "site-packages/",
        "dist-packages/",
        f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/",
    ):
        _, found, rest = filename.rpartition(marker)
        if found:
            return rest
    return os.path.basename(filename)  # noqa: PTH119


def _imported_sources() -> List[str]:
    """The Python files of the modules that are imported by now."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return sorted(file for file in files if isinstance(file, str) and file.endswith(".py"))


def _versions(packages: list[str]) -> dict[str, str]:
    from importlib import metadata

    found = {"python": ".".join(str(part) for part in sys.version_info[:3])}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def main(argument: str) -> None:
    """Imports the backend named in `argument` (JSON) and serves until the pipe is closed."""
    import faulthandler

    spec = json.loads(argument)
    import_package(spec["root"])
    isolation = os.environ.pop("ASSAY_SANDBOX_LEVEL", "none")  # set by `fuzzing.execute.sandbox.launcher`
    faulthandler.enable(spec["log"])
    failure = None
    try:
        backend: Backend = importlib.import_module("fuzzing.backends.base").get(spec["backend"])()
        backend.load(spec["device"], spec["options"])
        versions = _versions(spec["packages"])
        for library in spec["libraries"]:
            with contextlib.suppress(Exception):  # it fails again with the first case, whose failure it is
                importlib.import_module(library)
    except Exception as error:  # noqa: BLE001 - reported to the supervisor, which raises it
        failure = error
    if "forkserver" in spec:
        from fuzzing.execute import forkserver_child

        loaded = spec["options"]
        spec = forkserver_child.fork_workers(spec, isolation, may_fork=failure is None)
        faulthandler.enable(spec["log"])
        if failure is None and spec["options"] != loaded:
            try:
                backend.load(spec["device"], spec["options"])
            except Exception as error:  # noqa: BLE001 - as above
                failure = error
    worker = Worker(spec, mmap.mmap(spec["page"], 0))
    if failure is not None:
        worker.fail(failure)
        return
    worker.ready(versions, isolation)
    worker.serve(backend)
    # Compilers' own exit handlers may crash or hang, and Assay has none.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
