"""onnxruntime behind a fault: Shape gives the whole shape, whatever its `end` says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

from fuzzing.backends.base import register

sys.path.append(str(Path(__file__).parents[3]))
from tests.support.faults import ModelContext, Rewriter


@register
class Shapeless(Rewriter):
    """See the head of this file."""

    name: ClassVar[str] = "shapeless"
    options: ClassVar[dict[str, tuple[str, ...]]] = {"fault": ("shape-end",)}

    def rewrite(self, fault: str, model: Any, context: ModelContext) -> None:
        for node in model.graph.node:
            if node.op_type == "Shape":
                left = [one for one in node.attribute if one.name != "end"]
                del node.attribute[:]
                node.attribute.extend(left)
