"""A compiler that fails at the last node of every model: the fault that any reduction may keep.

The option `fault` is `crash`, an error of a converter that names the node's operator, or `wrong`, a negated
first output, of floating types only.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import onnx

from fuzzing.backends.base import register

sys.path.append(str(Path(__file__).parents[2]))
from tests.support.faults import ModelContext, Rewriter, negate

_FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16}


@register
class LastNode(Rewriter):
    """See the head of this file."""

    name: ClassVar[str] = "last-node"
    options: ClassVar[dict[str, tuple[str, ...]]] = {"fault": ("crash", "wrong")}

    def rewrite(self, fault: str, model: Any, context: ModelContext) -> None:
        node = model.graph.node[-1]
        if fault == "crash":
            raise ValueError(f"converter of {node.op_type}: check failed: cannot lower this")
        types = {item.name: item.type.tensor_type.elem_type for item in model.graph.output}
        if types.get(node.output[0]) in _FLOATS:
            negate(model.graph, node)
