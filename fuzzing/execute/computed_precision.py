"""The float types in which a backend computes a program."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fuzzing.backends.base import Backend
from fuzzing.cases import EquivalentPair, OnnxModel
from fuzzing.cases.programs import Program

#: ONNX's operators with `stash_type`: by default their first stage is computed in float32, so that results
#: in float64 need be no better.
_STASHED = ("LayerNormalization", "GroupNormalization", "RMSNormalization")
#: The tag of NodeProto.op_type in serialized models (onnx.proto: field 4, of the length-delimited kind).
_OP_TYPE = 4 << 3 | 2


class ComputedPrecision:
    """What `backend` computes narrower than the types of a program's tensors.

    options  resolved, see `Backend.resolve_options`
    """

    def __init__(self, backend: type[Backend], device: str, options: dict[str, str]) -> None:
        self._everywhere = backend.computed_in(device, options)
        self._by_operator = backend.narrow_operators

    def of(self, program: Program) -> Mapping[str, str]:
        """Type → narrower type, in which the whole program is judged; {} for most backends and programs."""
        found = dict(self._everywhere)
        if program.frontend == "onnx" and any(_has_operator(program, name) for name in _STASHED):
            found.setdefault("float64", "float32")
        for operator, narrow in self._by_operator.items():
            if _has_operator(program, operator):
                found.update(narrow)
        return found


def _has_operator(program: Program, name: str) -> bool:
    """Whether a model has nodes of this type, or a program's text the name. Needs neither onnx nor torch."""
    if isinstance(program, EquivalentPair):
        return _has_operator(program.left, name) or _has_operator(program.right, name)
    if isinstance(program, OnnxModel):
        return bytes((_OP_TYPE, len(name))) + name.encode() in program.model
    return re.search(rf"\b{name}\b", program.to_bytes().decode()) is not None
