"""Elementwise operators according to the ONNX operator reference.

Corrections as in `corrections`. numpy only.
"""

from __future__ import annotations

from typing import Any, Tuple

import numpy as np


def softsign(_node: Any, x: Any, **_: Any) -> Tuple[Any, ...]:
    """Softsign: "(x/(1+|x|))", in float64, rounded once."""
    wide = x.astype(np.float64)
    return (np.asarray(wide / (1 + np.abs(wide))).astype(x.dtype),)


def log_softmax(_node: Any, x: Any, axis: int = -1, **_: Any) -> Tuple[Any, ...]:
    """LogSoftmax: "Log(Softmax(input, axis=axis))", where Softmax underflows too."""
    if not x.size:
        return (x,)
    shifted = x - x.max(axis=axis, keepdims=True)
    return ((shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))).astype(x.dtype),)


def optional(_node: Any, value: Any = None, **_: Any) -> Tuple[Any, ...]:
    """Optional: "wraps" a value, which is what an optional that is not empty holds."""
    return (value,)
