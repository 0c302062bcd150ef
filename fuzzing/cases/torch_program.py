"""TorchProgram: Python source, run unchanged. Run in the worker only, as it may do anything."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, FrozenSet

from fuzzing.cases import source_templates
from fuzzing.cases.programs import register_kind
from fuzzing.errors import CaseFormatError

MAX_BYTES = 1 << 20

#: Not a method that calls `forward`, which Dynamo would inline up to the first graph break and trace again.
_MODULE = """

class Program(torch.nn.Module):
    forward = staticmethod(forward)


def make():
    return Program().eval()
"""
_MODEL = """

def make():
    return fill(Model(), SEED).eval()
"""
_ARRANGE = """

def arrange(inputs):
    return [tensor.clone() for tensor in inputs.values()]
"""


@register_kind
@dataclass(frozen=True)
class TorchProgram:
    """Text that defines `forward(…)` or `class Model(torch.nn.Module)`; the case's inputs are its arguments.

    A Model's parameters are drawn with the seed `SEED`, a constant of the text, by default 0. A text with
    inputs of other strides or layouts defines `arrange(inputs)` itself: a dict of tensors to a list.
    """

    kind: ClassVar[str] = "TorchProgram"
    frontend: ClassVar[str] = "torch"
    filename: ClassVar[str] = "program.py"

    text: str

    def __post_init__(self) -> None:
        if not {"forward", "Model"} & self._defined:
            raise CaseFormatError(f"{self.filename} defines neither forward() nor class Model")

    def to_bytes(self) -> bytes:
        """The text in UTF-8."""
        return self.text.encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> TorchProgram:
        """The inverse of `to_bytes`; the text is parsed, but not run. Raises CaseFormatError."""
        try:
            return cls(data.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise CaseFormatError(f"{cls.filename} is not UTF-8: {error}") from None

    @classmethod
    def from_checked_bytes(cls, data: bytes) -> TorchProgram:
        """See `programs.checked_program`: parsing takes a quarter of the time of a call of torch."""
        found = object.__new__(cls)
        vars(found)["text"] = data.decode("utf-8")
        return found

    @cached_property
    def _defined(self) -> FrozenSet[str]:
        """The names that the text's outermost statements define."""
        try:
            if len(self.text.encode()) > MAX_BYTES:
                raise CaseFormatError(f"{self.filename} is longer than {MAX_BYTES} bytes")
            body = ast.parse(self.text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise CaseFormatError(f"{self.filename} is not Python: {error}") from None
        names = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
        return frozenset(names | {target.id for target in targets if isinstance(target, ast.Name)})

    def source(self) -> str:
        """The text, followed by `make()` and `arrange(inputs)`."""
        model = "Model" in self._defined
        return (
            self.text.rstrip("\n")
            + ("\n\n\nimport hashlib\n\nimport numpy as np" if model else "\n\n")
            + "\nimport torch\n"
            + ("" if not model or "SEED" in self._defined else "\nSEED = 0\n")
            + (f"\n{source_templates.FILL}{_MODEL}" if model else _MODULE)
            + ("" if "arrange" in self._defined else _ARRANGE)
        )
