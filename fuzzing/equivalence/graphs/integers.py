"""Rewrites by laws of integers."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto, helper

from fuzzing.equivalence.graphs.detours import register_detour
from fuzzing.equivalence.graphs.editor import Editor, ValueType
from fuzzing.equivalence.graphs.rewrite import register_rewrite

#: From here on, float32 does not hold every integer.
_LARGE = 2**24


@register_rewrite("constant-quotient", proof="trunc((2c+s)/2) = c, where s is 1 for c ≥ 0 and -1 for c < 0.")
def constant_quotient(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """The node's small integer constants as quotients, which ONNX rounds toward zero."""
    copied, before = NodeProto(), []
    copied.CopyFrom(node)
    for place, name in enumerate(node.input):
        value = editor.initializer(name)
        if value is None or value.dtype not in (np.int32, np.int64) or not (abs(value) < _LARGE).all():
            continue
        quotient = editor.fresh("quotient")
        dividend = editor.constant(2 * value + np.where(value < 0, -1, 1).astype(value.dtype), "dividend")
        divisor = editor.constant(np.array(2, value.dtype), "divisor")
        before.append(helper.make_node("Div", [dividend, divisor], [quotient]))
        copied.input[place] = quotient
    return [*before, copied] if before else None


@register_detour("truth-shifted", "A bool b is true exactly if b+n = 1+n, in integers that hold 1+n.")
def truth_shifted(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """In int32, where a compiler that computes in float32 takes n and 1+n as equal."""
    if kind.dtype != "bool":
        return None
    number, shifted = editor.fresh(y), editor.fresh(y)
    terms = [editor.constant(np.array(term, np.int32)) for term in (_LARGE, _LARGE + 1)]
    return [
        helper.make_node("Cast", [x], [number], to=TensorProto.INT32),
        helper.make_node("Add", [number, terms[0]], [shifted]),
        helper.make_node("Equal", [shifted, terms[1]], [y]),
    ]
