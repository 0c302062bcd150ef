"""Attention according to the ONNX operator reference.

Corrections as in `corrections`. numpy only.
"""

from __future__ import annotations

from typing import Any, Tuple

_SCORES = 3  # index of qk_matmul_output among the outputs


def attention(node: Any, *inputs: Any, **attributes: Any) -> Tuple[Any, ...]:
    """Attention: with qk_matmul_output_mode 0, "qk_matmul_output is the output of qk matmul".

    softcap is applied after that, so this output is computed without it.
    """
    found = tuple(node.own(*inputs, **attributes))
    if attributes.get("qk_matmul_output_mode") or not attributes.get("softcap"):
        return found
    plain = tuple(node.own(*inputs, **{**attributes, "softcap": 0.0}))
    return (*found[:_SCORES], *plain[_SCORES:])
