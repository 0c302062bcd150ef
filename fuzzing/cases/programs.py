"""The kinds of program a case may hold. Kinds register themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, ClassVar, Protocol, TypeVar

from fuzzing.errors import CaseFormatError

#: protobuf rejects messages of 2 GiB; programs of compiler tests are far smaller.
MAX_PROGRAM_BYTES = 256 << 20


class Program(Protocol):
    """The program that a case compiles.

    kind      its name in `case.json`
    frontend  the part of a compiler that loads it, as in `--frontend`: onnx, torch, keras
    filename  of its one file
    """

    kind: ClassVar[str]
    frontend: ClassVar[str]
    filename: ClassVar[str]

    def to_bytes(self) -> bytes:
        """The content of the program's file."""
        ...

    @classmethod
    def from_bytes(cls, data: bytes) -> Program:
        """The inverse of `to_bytes`."""
        ...


_KINDS: dict[str, type[Program]] = {}
P = TypeVar("P", bound=type[Program])


def register_kind(cls: P) -> P:
    """Class decorator: registers a program kind."""
    _KINDS[cls.kind] = cls
    return cls


def get_kind(name: str) -> type[Program]:
    """The program kind `name`; raises CaseFormatError if there is none."""
    try:
        return _KINDS[name]
    except KeyError:
        known = ", ".join(sorted(_KINDS))
        raise CaseFormatError(f"unknown program kind {name!r}; this Assay knows {known}") from None


def checked_program(kind: str, data: bytes) -> Program:
    """The program of bytes that its kind's `from_bytes` has read before: they are not checked again.

    A kind may have a quicker `from_checked_bytes` for them.
    """
    found = get_kind(kind)
    read: Callable[[bytes], Program] = getattr(found, "from_checked_bytes", found.from_bytes)
    return read(data)


@register_kind
@dataclass(frozen=True)
class OnnxModel:
    """A serialized ONNX ModelProto, with its original bytes."""

    kind: ClassVar[str] = "OnnxModel"
    frontend: ClassVar[str] = "onnx"
    filename: ClassVar[str] = "model.onnx"

    model: bytes

    def to_bytes(self) -> bytes:
        """The original bytes."""
        return self.model

    @classmethod
    def from_bytes(cls, data: bytes) -> OnnxModel:
        """A model of these bytes, which are not parsed; `fuzzing.migrate` checks models."""
        if not data:
            raise CaseFormatError("model.onnx is empty")
        return cls(data)
