"""Families of ONNX operators that one part of a compiler reads, whatever operator it is of.

ONNX writes the text of such operators from one template, and frontends convert what they share in one helper:
the order of dimensions in recurrent networks, the axes of reductions. A bug there shows in each operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Operator → family (templates `RNNDocGenerator` and `ReduceOpGenerator` of onnx/defs).
_FAMILIES = dict.fromkeys(("RNN", "GRU", "LSTM"), "RNN, GRU, LSTM") | {
    f"Reduce{kind}": "reductions"
    for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
}
#: Family → needs that are about the shared part, with the complaint that shows it; "" for any. An axis left
#: out changes the shape; wrong numbers along an axis are the operator's own.
_SHARED = {
    "RNN, GRU, LSTM": {"layout": ""},
    "reductions": {"zero-size": "", "axes": "wrong shapes"},
}


def shared_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A signature's fields with the family and what is shared for the operator, if the failure needs that:
    `reductions: zero-size`, and needs without the operator's name. Else the fields as they are.
    """
    operator = str(fields.get("operator", ""))
    family = _FAMILIES.get(operator, "")
    if not family or "needs" not in fields:
        return dict(fields)
    lists = {
        name: [_without_name(str(need), operator) for need in fields.get(name, ())]
        for name in ("needs", "proven")
        if name in fields
    }
    shared = [
        need
        for need, complaint in _SHARED[family].items()
        if need in lists["needs"] and complaint in ("", fields.get("complaint"))
    ]
    return {**fields, **lists, "operator": f"{family}: {', '.join(shared)}"} if shared else dict(fields)


def _without_name(need: str, operator: str) -> str:
    for mark in (".", " "):
        need = need.removeprefix(operator + mark)
    return need
