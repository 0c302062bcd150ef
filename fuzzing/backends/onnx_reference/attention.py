"""Attention according to the ONNX operator reference.

Corrections as in `corrections`. numpy only.
"""

from __future__ import annotations

from typing import Any, List, Tuple

import numpy as np

_KEYS, _MASK, _PAST = 1, 3, 4  # indices of inputs
_SCORES = 3  # index of qk_matmul_output among the outputs


def attention(node: Any, *inputs: Any, **attributes: Any) -> Tuple[Any, ...]:
    """Attention: masks are broadcast; with qk_matmul_output_mode 0, "qk_matmul_output is the output of qk
    matmul".

    softcap is applied after that, so this output is computed without it.
    """
    given = _with_whole_mask(list(inputs))
    found = tuple(node.own(*given, **attributes))
    if attributes.get("qk_matmul_output_mode") or not attributes.get("softcap"):
        return found
    plain = tuple(node.own(*given, **{**attributes, "softcap": 0.0}))
    return (*found[:_SCORES], *plain[_SCORES:])


def _with_whole_mask(inputs: List[Any]) -> List[Any]:
    """The inputs with a row of the mask for each query, and a column for each key where it has one.

    onnx takes the number of rows for that of the queries where it looks for the keys before each.
    """
    mask = inputs[_MASK] if len(inputs) > _MASK else None
    if mask is None or not mask.ndim:
        return inputs
    past = inputs[_PAST] if len(inputs) > _PAST else None
    queries, keys = (one.shape[1 if one.ndim == 3 else 2] for one in (inputs[0], inputs[_KEYS]))
    total = keys + (0 if past is None else past.shape[2])
    columns = total if mask.shape[-1] == 1 else mask.shape[-1]
    inputs[_MASK] = np.broadcast_to(mask, (*mask.shape[:-2], queries, columns))
    return inputs
