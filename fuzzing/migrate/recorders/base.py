"""The interface of recorders, and the sink they write to.

A recorder is in `fuzzing/migrate/recorders/LIBRARY.py`, imports its library inside functions, and registers
itself:

    @register_recorder
    class Keras:
        library: ClassVar[str] = "keras"

        def start(self, sink: Sink) -> None: ...

Wrappers follow this order, so that most calls cost only a key:

    if not sink.new(key):        # key: API, scalars, types and shapes; nothing is copied or serialized
        return original(...)
    recorded = …                 # before the call, which may write to its arguments
    result = original(...)       # exceptions propagate; then sink.forget(key): it may yet succeed
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
    """Receives what a recorder sees. No method raises into the test."""

    def new(self, key: Hashable) -> bool:
        """Whether `key` is new in this process; it is then known."""
        ...

    def forget(self, key: Hashable) -> None:
        """Makes `key` unknown: its call failed."""
        ...

    def case(self, case: TestCase) -> None:
        """Stores a case, whose provenance names `self.test()`; it survives a crash of the process."""
        ...

    def skip(self, api: str, reason: str, detail: str = "") -> None:
        """Records that a call of `api` became no case, once for each pair.

        reason  a sentence without particulars, so that skips can be counted by it
        detail  the particulars
        """
        ...

    def bug(self, api: str) -> None:
        """Stores the current exception, a bug of the recorder: `collect` reports it and fails."""
        ...

    def spent(self, seconds: float) -> None:
        """Counts recording time in seconds, beyond `case`'s own."""
        ...

    def test(self) -> str:
        """The current test: pytest's name for it, else the script's file, function and line."""
        ...


class Recorder(Protocol):
    """Records the calls of one library.

    library  the top-level module to wait for

    May also have `environment: ClassVar[Mapping[str, str]]`, which is set for the command.
    """

    library: ClassVar[str]

    def start(self, sink: Sink) -> None:
        """Starts recording. Called once in a process, right after the library is imported."""
        ...


def instance_key(case: TestCase) -> bytes:
    """A key of the case's operator instance: equal where only the inputs' elements differ."""
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
    """Class decorator: registers a recorder by its library."""
    _RECORDERS.add(cls, cls.library)
    return cls


names = _RECORDERS.names
get = _RECORDERS.get
