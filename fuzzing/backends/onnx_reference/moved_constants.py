"""Models whose constants moved by a rounding, to measure how sensitive a program is to them.

An initializer is as rounded as an input: a test whose inputs became initializers cancels the same terms. It
is moved as an input is (`fuzzing.oracles.perturbation`), to float64, for a float64 run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fuzzing.cases import Tensor
from fuzzing.oracles.perturbation import perturb_equally

#: Operators whose results jump, or change their size, when these operands move. Those of float16 move all the
#: same: TVM computes the places of a GridSample in the grid's type.
_EXACT = frozenset(
    {
        "AffineGrid",
        "GridSample",
        "NonMaxSuppression",
        "QuantizeLinear",
        "Range",
        "Resize",
        "RoiAlign",
        "Upsample",
    }
)
#: The float types that move.
_MOVED = frozenset({"float16", "float32", "float64"})


def move_constants(model: bytes, sign: int, computed_in: Mapping[str, str]) -> bytes | None:
    """The model with its float initializers moved, `sign` 1 or -1; None if it has none to move."""
    import onnx

    proto = onnx.load_from_string(model)
    exact = {name for node in proto.graph.node if node.op_type in _EXACT for name in node.input}
    moved = [
        tensor
        for tensor in proto.graph.initializer
        if (tensor.name not in exact or tensor.data_type == onnx.TensorProto.FLOAT16)
        and _move(tensor, sign, computed_in)
    ]
    return proto.SerializeToString() if moved else None


def _move(tensor: Any, sign: int, computed_in: Mapping[str, str]) -> bool:
    """Moves a tensor in place; whether it can be."""
    from onnx import numpy_helper

    array = numpy_helper.to_array(tensor)
    if array.dtype.name not in _MOVED or not array.size:
        return False
    [(_, value)] = perturb_equally((("", Tensor.of(np.asarray(array))),), sign, computed_in)
    assert isinstance(value, Tensor)
    tensor.CopyFrom(numpy_helper.from_array(value.array(), tensor.name))
    return True
