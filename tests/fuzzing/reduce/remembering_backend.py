"""onnxruntime behind a fault that depends on memory: Neg is ignored; where there are few elements only by a
process that compiled another model before.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any, ClassVar

from fuzzing.backends.base import register

sys.path.append(str(Path(__file__).parents[3]))
from tests.support.faults import ModelContext, Rewriter

#: Elements of an input that shows the fault in any process.
FEW = 4


@register
class Remembering(Rewriter):
    """See the head of this file."""

    name: ClassVar[str] = "remembering"
    options: ClassVar[dict[str, tuple[str, ...]]] = {"fault": ("neg",)}
    _compiled: ClassVar[int] = 0

    def rewrite(self, fault: str, model: Any, context: ModelContext) -> None:
        type(self)._compiled += 1
        shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim]
        if math.prod(shape) < FEW and self._compiled == 1:
            return
        for node in model.graph.node:
            if node.op_type == "Neg":
                node.op_type = "Identity"
