"""The kinds of program a case may hold. A kind registers itself; the corpus knows none by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

from fuzzing.errors import CaseFormatError

#: protobuf refuses messages of 2 GiB; no compiler test worth keeping comes near this.
MAX_PROGRAM_BYTES = 256 << 20


class Program(Protocol):
    """What a case compiles.

    kind      its name in `case.json`
    frontend  the part of a compiler that loads it, named as `--frontend` takes it: onnx, torch, keras
    filename  the one file that holds it
    """

    kind: ClassVar[str]
    frontend: ClassVar[str]
    filename: ClassVar[str]

    def to_bytes(self) -> bytes:
        """The program's file, byte for byte."""
        ...

    @classmethod
    def from_bytes(cls, data: bytes) -> Program:
        """The inverse of `to_bytes`."""
        ...


_KINDS: dict[str, type[Program]] = {}
P = TypeVar("P", bound=type[Program])


def register_kind(cls: P) -> P:
    """Class decorator: makes a program kind known to the corpus."""
    _KINDS[cls.kind] = cls
    return cls


def get_kind(name: str) -> type[Program]:
    """The program kind `name`; raises CaseFormatError if there is none."""
    try:
        return _KINDS[name]
    except KeyError:
        known = ", ".join(sorted(_KINDS))
        raise CaseFormatError(f"unknown program kind {name!r}; this Assay knows {known}") from None


@register_kind
@dataclass(frozen=True)
class OnnxModel:
    """A serialised ONNX ModelProto, kept as the bytes it came in."""

    kind: ClassVar[str] = "OnnxModel"
    frontend: ClassVar[str] = "onnx"
    filename: ClassVar[str] = "model.onnx"

    model: bytes

    def to_bytes(self) -> bytes:
        """The ModelProto's bytes."""
        return self.model

    @classmethod
    def from_bytes(cls, data: bytes) -> OnnxModel:
        """A model of these bytes. They are not parsed here: see `fuzzing.migrate` for checking."""
        if not data:
            raise CaseFormatError("model.onnx is empty")
        return cls(data)
