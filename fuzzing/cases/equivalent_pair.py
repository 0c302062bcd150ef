"""EquivalentPair: two programs that must give equal outputs for equal inputs on one library or compiler.

It needs no reference: each side is the other's. EAGLE (ICSE 2022) tests libraries this way.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, ClassVar, Dict, Tuple, Type

from fuzzing.cases import canonical_json
from fuzzing.cases.programs import OnnxModel, checked_program, register_kind
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.errors import CaseFormatError

_KEYS = frozenset({"left", "right", "rule", "subject"})
#: The sides, as the names of their outputs begin.
SIDES = ("left", "right")


class OneSidedError(Exception):
    """One side of a pair returned and the other raised."""


class BothSidesError(Exception):
    """Both sides of a pair raised: the inputs are no test of their equality."""


@register_kind
@dataclass(frozen=True)
class EquivalentPair:
    """Two torch programs.

    left, right  take the same inputs; for each input, both return equal outputs or both raise
    rule         the equivalence rule they are an instance of (`fuzzing.equivalence`)
    subject      what the rule rewrote, as the rule reads it: a smaller subject gives a smaller pair. "" if
                 the pair cannot be made anew
    """

    kind: ClassVar[str] = "EquivalentPair"
    frontend: ClassVar[str] = "torch"
    filename: ClassVar[str] = "pair.json"
    side: ClassVar[Type[Any]] = TorchProgram
    #: Whether the library is known to run both sides, so that a compiler that runs neither fails.
    known_to_run: ClassVar[bool] = False

    left: Any
    right: Any
    rule: str
    subject: str = ""

    def __post_init__(self) -> None:
        for program in self.sides:
            if not isinstance(program, self.side):
                raise CaseFormatError(f"a side of {self.kind} is a {self.side.__name__}")

    @property
    def sides(self) -> Tuple[Any, Any]:
        """The left and the right program."""
        return self.left, self.right

    def to_bytes(self) -> bytes:
        """The pair as canonical JSON."""
        sides: Dict[str, Any] = {name: self._encode(getattr(self, name).to_bytes()) for name in SIDES}
        return canonical_json.to_text({**sides, "rule": self.rule, "subject": self.subject})

    @classmethod
    def from_bytes(cls, data: bytes) -> EquivalentPair:
        """The inverse of `to_bytes`; raises CaseFormatError for any other bytes."""
        obj = canonical_json.from_text(data, _KEYS, cls.filename)
        if not all(isinstance(value, str) for value in obj.values()):
            raise CaseFormatError(f"{cls.filename} holds something that is not text")
        left, right = (cls.side.from_bytes(cls._decode(obj[name])) for name in SIDES)
        pair = cls(left, right, obj["rule"], obj["subject"])
        canonical_json.check_spelling(data, pair.to_bytes(), cls.filename)
        return pair

    @classmethod
    def from_checked_bytes(cls, data: bytes) -> EquivalentPair:
        """See `programs.checked_program`."""
        obj = json.loads(data)
        left, right = (checked_program(cls.side.kind, cls._decode(obj[name])) for name in SIDES)
        return cls(left, right, obj["rule"], obj["subject"])

    @classmethod
    def _encode(cls, data: bytes) -> str:
        return data.decode()

    @classmethod
    def _decode(cls, text: str) -> bytes:
        return text.encode()

    def source(self) -> str:
        """Both sides as people read them."""
        left, right = (side.text.strip() if isinstance(side, TorchProgram) else "" for side in self.sides)
        return f"# Equal by the rule {self.rule}.\n\n# Left:\n{left}\n\n\n# Right:\n{right}\n"


@register_kind
@dataclass(frozen=True)
class EquivalentModels(EquivalentPair):
    """Two ONNX models with the same inputs and as many outputs."""

    kind: ClassVar[str] = "EquivalentModels"
    frontend: ClassVar[str] = "onnx"
    filename: ClassVar[str] = "models.json"
    side: ClassVar[Type[Any]] = OnnxModel
    known_to_run: ClassVar[bool] = True

    @classmethod
    def _encode(cls, data: bytes) -> str:
        return base64.b64encode(data).decode()

    @classmethod
    def _decode(cls, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except ValueError as error:
            raise CaseFormatError(f"{cls.filename} holds a model that is not base64: {error}") from None
