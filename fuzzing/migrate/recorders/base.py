"""What a recorder is, and what it tells to.

A recorder lies in `fuzzing/migrate/recorders/LIBRARY.py`, imports its library inside functions, and
registers itself:

    @register_recorder
    class Keras:
        library: ClassVar[str] = "keras"

        def start(self, sink: Sink) -> None: ...

Its wrappers keep to this order, so that most calls cost no more than a key:

    if not sink.new(key):        # key: API, scalars, types and shapes; nothing is copied, nothing told
        return original(...)
    told = …                     # before the call, which may write to its arguments
    result = original(...)       # what it raises, raises; then sink.forget(key): it may yet succeed
    sink.case(TestCase(...))     # after it returned
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import ClassVar, Protocol, TypeVar

from fuzzing.cases import Absent, Input, Sequence, TestCase
from fuzzing.registry import Registry

#: What provenance names as the source of a recorded case.
SOURCE = "collected"


class Sink(Protocol):
    """Where a recorder puts what it sees. No method raises into the test."""

    def new(self, key: Hashable) -> bool:
        """Whether `key` is met for the first time in this process; it is then known."""
        ...

    def forget(self, key: Hashable) -> None:
        """Makes `key` unknown: the call it stood for failed."""
        ...

    def case(self, case: TestCase) -> None:
        """Keeps a case, whose provenance names `self.test()`; it survives if the process dies at once."""
        ...

    def skip(self, api: str, reason: str, detail: str = "") -> None:
        """Notes that a call of `api` became no case, once for each pair.

        reason  a sentence without particulars, so that skips can be counted by it
        detail  the particulars
        """
        ...

    def bug(self, api: str) -> None:
        """Keeps the exception in hand, a bug of the recorder's own: `collect` shows it and fails."""
        ...

    def spent(self, seconds: float) -> None:
        """Counts time that recording took, beyond `case`'s own."""
        ...

    def test(self) -> str:
        """The test that runs now: pytest's name for it, else the script's file, function and line."""
        ...


class Recorder(Protocol):
    """Records the calls of one library.

    library  the top-level module to wait for

    A recorder may also have `environment: ClassVar[Mapping[str, str]]`, which is set for the command.
    """

    library: ClassVar[str]

    def start(self, sink: Sink) -> None:
        """Begins to record. Called once in a process, right after the library has been imported."""
        ...


def instance_key(case: TestCase) -> bytes:
    """The operator instance that a case is, in short: equal where only the inputs' elements differ."""
    digest = hashlib.sha256(case.program.to_bytes())
    for name, value in case.inputs:
        digest.update(f"\0{name} {_meta(value)}".encode())
    return digest.digest()


def _meta(value: Input) -> str:
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_meta, value.items))}]"
    return "absent" if isinstance(value, Absent) else f"{value.dtype}{list(value.shape)}"


_RECORDERS: Registry[type[Recorder]] = Registry("recorder", "fuzzing.migrate.recorders")
R = TypeVar("R", bound=type[Recorder])


def register_recorder(cls: R) -> R:
    """Class decorator: makes a recorder known by its library."""
    _RECORDERS.add(cls, cls.library)
    return cls


names = _RECORDERS.names
get = _RECORDERS.get
