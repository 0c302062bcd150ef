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
