"""The interface of a backend. Each file in this folder holds one compiler and is found by its name.

Outside the worker only the class attributes are used, and the compiler need not be installed. Inside the
worker `load` imports the compiler, and the phases run. A backend's file therefore imports its compiler in
methods only, and at module level the standard library, numpy and `fuzzing.cases`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
from typing import Any, ClassVar, Dict, Iterable, List, NamedTuple, Tuple, TypeVar

from fuzzing.cases.programs import Program
from fuzzing.cases.values import Value
from fuzzing.errors import UnknownNameError, UsageError
from fuzzing.registry import did_you_mean

#: Values by name, in the order of the program or of the compiler.
Named = List[Tuple[str, Value]]


class UnsupportedPattern(NamedTuple):
    r"""An exception by which a compiler reports that it does not support a program.

    error    regular expression, searched in the exception's class name
    message  regular expression, searched in its message
    why      the reason shown to people, with `\1`... taken from the message's groups
    """

    error: str
    message: str
    why: str


#: Begins the pattern of a line, which is then none of Python or numpy. Their TypeErrors have the words of a
#: refusal, but a compiler that adds None to a number has failed.
NOT_PYTHONS = (
    r"(?![^\n]*\b(?:not supported between instances|unsupported operand type\(s\)|unsupported format string"
    r"|ufunc\b[^\n]{0,200}\bnot supp))"
)


class AblationLevel(NamedTuple):
    """A configuration of a backend with part of the compiler switched on.

    options    set in addition to the run's
    component  the part of the compiler that it adds to the previous level
    """

    options: Dict[str, str]
    component: str


class Instrumentation:
    """How a backend runs one case whose failure is localized.

    disabled    names of passes to leave out; unknown names are ignored
    record      whether to note what the case goes through
    stop_after  the stage after which the case is evaluated without the compiler; "" for none
    coverage    whether to note what of the compiler the case reaches
    sources     whether to note the Python files that are imported once the case has run
    library     whether to run what the library makes of the case for the compiler, and not the compiler, see
                `Backend.run_capture`
    notes       in order, as (kind, name):
                bisectable_pass  a pass that can be disabled by this name, and did something
                entered, left    a pass that began or ended, each time
                converter        the frontend's converter of an operator
                stage            a possible value of `stop_after`
                applied_pass     coverage: a pass that changed the model
                lines            coverage: lines of the compiler's Python package, see `shared.line_recorder`
                source           a Python file that is imported; not in the log

    Notes also go to the process's log: a crash loses `notes`.
    """

    def __init__(
        self,
        disabled: Iterable[str] = (),
        record: bool = False,
        stop_after: str = "",
        coverage: bool = False,
        library: bool = False,
        sources: bool = False,
    ) -> None:
        self.disabled = frozenset(disabled)
        self.record = record
        self.stop_after = stop_after
        self.coverage = coverage
        self.library = library
        self.sources = sources
        self.notes: List[Tuple[str, str]] = []

    def note(self, what: str, name: str) -> None:
        """Adds a note. Only `entered` and `left` are repeated."""
        wanted = self.coverage if what in (APPLIED_PASS, LINES) else self.record
        if wanted and (what in ("entered", "left") or (what, name) not in self.notes):
            self.notes.append((what, name))
            os.write(2, f"{NOTE_PREFIX}{what} {name}\n".encode())


#: The kinds of notes on coverage.
APPLIED_PASS, LINES = "applied_pass", "lines"
#: The kind of notes on imported files.
SOURCE = "source"
#: Prefix of the lines that Instrumentation writes to the log.
NOTE_PREFIX = "assay-note "


class Unsupported(Exception):  # noqa: N818 - a statement about the case, not an error of Assay
    """Raised by a backend: this compiler's API cannot express the case's inputs."""


class Backend:
    """A compiler, driven through the phases import, convert, compile, run.

    name             value of `--backend`
    package          distribution on the Python package index
    import_name      the module that must be importable
    traced           folders of the package whose lines coverage notes; empty for all
    kinds            the program kinds it takes
    captured         those that their library captures for it, see `run_capture`
    options          settings with their allowed values, the default first
    ablation         levels from the least of the compiler to all of it; () if nothing can be switched off
    rungs            options of screening rungs by name, cheapest first; the last is the whole compiler
    sticky           messages (regular expressions) after which the process, or its device, is unusable
    devices          device names the backend accepts, the default first
    unsupported      how the compiler reports a missing feature
    environment      variables its worker needs; "{scratch}" becomes a folder that is deleted with the worker,
                     "{cache}" one that outlives it (also exported as ASSAY_CACHE; its TMPDIR stays scratch)
    programs         programs of the machine that it starts, found on PATH
    packages         distributions whose versions a report lists
    exporters        program kind → distributions beside its library that make it what the compiler reads
    newest_opsets    release, as "2024.1" → the newest operator set of the ONNX that it was made for
    narrow_operators  operators that it computes in a narrower type than their tensors have: name in ONNX or
                     torch → type → narrower type
    reference        whether it is a library that computes references, not a compiler under test
    forkable         whether a process that has loaded it may be forked if it has one thread
    reloadable       whether a fork of a process that has loaded it may load it again with other options, and
                     is then as a new process with these
    has_native_translators  whether its frontend has native code for each operator of ONNX
    instrumentation  how to run the current case; set by the worker
    """

    name: ClassVar[str]
    package: ClassVar[str]
    import_name: ClassVar[str]
    traced: ClassVar[tuple[str, ...]] = ()
    kinds: ClassVar[tuple[str, ...]] = ("OnnxModel", "EquivalentModels")
    captured: ClassVar[tuple[str, ...]] = ()
    devices: ClassVar[tuple[str, ...]] = ("CPU",)
    options: ClassVar[dict[str, tuple[str, ...]]] = {}
    ablation: ClassVar[tuple[AblationLevel, ...]] = ()
    rungs: ClassVar[dict[str, dict[str, str]]] = {}
    sticky: ClassVar[tuple[str, ...]] = ()
    unsupported: ClassVar[tuple[UnsupportedPattern, ...]] = ()
    environment: ClassVar[dict[str, str]] = {}
    programs: ClassVar[tuple[str, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ("numpy",)
    exporters: ClassVar[dict[str, tuple[str, ...]]] = {}
    newest_opsets: ClassVar[dict[str, int]] = {}
    narrow_operators: ClassVar[dict[str, dict[str, str]]] = {}
    reference: ClassVar[bool] = False
    forkable: ClassVar[bool] = True
    reloadable: ClassVar[bool] = False
    has_native_translators: ClassVar[bool] = False
    instrumentation: Instrumentation = Instrumentation()

    @classmethod
    def requirements(cls, version: str) -> list[str]:
        """Requirements for pip, as exact as needed, of this compiler at `version`."""
        return [f"{cls.package}=={version}"]

    @classmethod
    def newest_opset(cls, version: str) -> int | None:
        """The newest operator set of ONNX that the compiler at `version` knows; None if not recorded."""
        return cls.newest_opsets.get(".".join(version.split(".")[:2]))

    @classmethod
    def computed_in(cls, device: str, options: dict[str, str]) -> dict[str, str]:
        """Float types that the compiler documents to compute in a narrower one: type → narrower type.

        options  resolved, see `resolve_options`
        """
        del device, options
        return {}

    @classmethod
    def reference_options(cls, options: dict[str, str]) -> dict[str, str]:
        """Options of the library's runs that these options of the compiler ask for.

        options  resolved, see `resolve_options`
        """
        del options
        return {}

    @classmethod
    def resolve_options(cls, given: dict[str, str]) -> dict[str, str]:
        """`given` with the default of every other option; raises UsageError for forbidden values."""
        for name, value in given.items():
            if name not in cls.options:
                known = ", ".join(sorted(cls.options)) or "none"
                hint = did_you_mean(name, cls.options)
                raise UsageError(f"{cls.name} has no option {name!r}; {hint}it has: {known}")
            if value not in cls.options[name]:
                allowed = ", ".join(cls.options[name])
                hint = did_you_mean(value, cls.options[name]).rstrip()
                message = f"{cls.name}'s option {name} is one of {allowed}, not {value!r}"
                raise UsageError(f"{message}; {hint}" if hint else message)
        return {name: given.get(name, allowed[0]) for name, allowed in cls.options.items()}

    @classmethod
    def non_default_options(cls, given: dict[str, str]) -> dict[str, str]:
        """The part of `given` that differs from the defaults; raises UsageError for values that are not
        allowed.
        """
        return {
            name: value for name, value in cls.resolve_options(given).items() if value != cls.options[name][0]
        }

    def load(self, device: str, options: dict[str, Any]) -> None:
        """Imports the compiler and prepares `device`; once per worker. `options` may leave out defaults."""
        raise NotImplementedError

    def is_usable(self) -> bool:
        """Whether the process can run further cases after one that failed."""
        return True

    def convert(self, program: Program, inputs: Named) -> Any:
        """Converts the program to the compiler's own representation; `inputs` are those of the run."""
        raise NotImplementedError

    def compile(self, model: Any) -> Any:
        """Compiles that representation to something that runs."""
        raise NotImplementedError

    def run(self, executable: Any, inputs: Named) -> Named:
        """Runs on the inputs, matched by name where the compiler keeps names; the outputs in order."""
        raise NotImplementedError

    def run_capture(self, program: Program, inputs: Named) -> Named:
        """Runs on its library what the library makes of a captured program for this compiler.

        The result is the outputs, as from `run`, or the exported ONNX model's bytes as the one output MODEL.
        Raises Unsupported if the library cannot run what it has made.
        """
        raise NotImplementedError


#: Kind of program → modules that its library's programs run with, which a backend imports with the first one.
LIBRARIES: dict[str, Tuple[str, ...]] = {
    "TorchCall": ("torch",),
    "TorchProgram": ("torch",),
    "KerasLayer": ("keras", "torch"),
}
#: Modules that torch imports with the first program that it captures: of the 1.6 s of a process's first
#: torch.export they take 1.4 (torch 2.13). The last one is ours.
_EXPORT = ("torch._dynamo", "torch.export._trace", "fuzzing.backends.shared.torch_decomposition_tables")
#: Kind of program → what its library imports and computes with the first program that it captures.
CAPTURE_MODULES: dict[str, Tuple[str, ...]] = {"TorchCall": _EXPORT, "TorchProgram": _EXPORT}
#: The output of `Backend.run_capture` that is a model.
MODEL = "model"
_BACKENDS: dict[str, type[Backend]] = {}
B = TypeVar("B", bound=type[Backend])


def register(cls: B) -> B:
    """Class decorator: registers a backend under its name."""
    _BACKENDS[cls.name] = cls
    return cls


def library_modules(backend: type[Backend], kind: str) -> tuple[str, ...]:
    """The modules to import before a worker for programs of this kind is forked."""
    captured = CAPTURE_MODULES.get(kind, ()) if kind in backend.captured else ()
    return (*LIBRARIES.get(kind, ()), *captured)


def names() -> tuple[str, ...]:
    """The names of all backends, sorted: the modules and packages of `fuzzing.backends` but two."""
    package = importlib.import_module("fuzzing.backends")
    found = (info.name for info in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in found if name not in ("base", "shared")))


def compilers() -> tuple[str, ...]:
    """The names of the backends that are compilers under test."""
    return tuple(name for name in names() if not get(name).reference)


def reference_backend(kind: str) -> type[Backend]:
    """The backend that computes references of programs of this kind. Raises UnknownNameError."""
    for name in names():
        backend = get(name)
        if backend.reference and kind in backend.kinds:
            return backend
    raise UnknownNameError(f"no reference backend runs programs of kind {kind!r}")


def reference_packages(kind: str) -> tuple[str, ...]:
    """The packages of the reference of programs of a kind; none for pairs, whose sides judge each other."""
    found = (get(name) for name in names())
    return next((backend.packages for backend in found if backend.reference and kind in backend.kinds), ())


def get(name: str) -> type[Backend]:
    """The backend of this name, or the one that a file `…/mine.py` registers; raises UnknownNameError."""
    if name.endswith(".py"):
        return _from_file(name)
    if name not in _BACKENDS:
        if name not in names():
            raise UnknownNameError(
                f"no backend is called {name!r}; {did_you_mean(name, names())}"
                f"there are: {', '.join(compilers())}"
            )
        importlib.import_module(f"fuzzing.backends.{name}")
    return _BACKENDS[name]


def _from_file(path: str) -> type[Backend]:
    """Runs the file of a backend that is not part of Assay. It must register one class."""
    before = dict(_BACKENDS)
    spec = importlib.util.spec_from_file_location("assay_backend_file", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):  # noqa: PTH113 - worker: keep it small
        raise UnknownNameError(f"there is no backend file {path}")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    # Classes that the file imports as base classes do not count.
    added = [
        cls for name, cls in _BACKENDS.items() if before.get(name) is not cls and cls.__module__ == spec.name
    ]
    if len(added) != 1:
        raise UnknownNameError(f"{path} registers {len(added)} backends; it must register one")
    return added[0]
