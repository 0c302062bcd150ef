"""The operator set `isra`: the 65 operators of Isra's release and the in-degrees its metrics allow.

Source: Isra's `settings.py` (the operators) and `bc.json` (the in-degrees).
"""

from __future__ import annotations

from collections.abc import Mapping

from fuzzing.coverage.operators import register_operators

_UNARY = """
    Abs AveragePool Ceil Cos Elu Erf Exp Flatten Floor GlobalAveragePool GlobalMaxPool HardSigmoid Identity
    LeakyRelu LpPool MaxPool Neg Reciprocal ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin
    ReduceProd ReduceSumSquare Relu Round Selu Sigmoid Sign Sin Softmax Softplus Softsign SpaceToDepth Sqrt
    Tanh ThresholdedRelu Transpose
"""
_BINARY = "Add Compress Div Expand Gather MatMul Mul PRelu Reshape Sub Tile Unsqueeze"

#: Operators → the numbers of inputs they may have.
_TABLE = (
    (_UNARY, (1,)),
    (_BINARY, (2,)),
    ("ReduceSum Split", (1, 2)),
    ("Conv Gemm", (2, 3)),
    ("Pad", (2, 3, 4)),
    ("Slice", (3, 4, 5)),
    ("Resize", (1, 2, 3, 4)),
    ("Concat Max Mean Min Sum", (1, 2, 3, 4, 5)),
    ("BatchNormalization", (5,)),
)


@register_operators("isra")
def in_degrees() -> Mapping[str, frozenset[int]]:
    """Operator → in-degrees, sorted by name."""
    found = {name: frozenset(degrees) for names, degrees in _TABLE for name in names.split()}
    return dict(sorted(found.items()))
