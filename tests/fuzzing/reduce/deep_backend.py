"""onnxruntime behind a converter that refuses Elu wherever it stands, in bodies too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import onnx

from fuzzing.backends.base import Named, register
from fuzzing.backends.onnxruntime import OnnxRuntime
from fuzzing.cases.programs import Program


@register
class Deep(OnnxRuntime):
    """See the head of this file."""

    name: ClassVar[str] = "deep"

    def convert(self, program: Program, inputs: Named) -> Any:
        if "Elu" in _operators(onnx.load_from_string(program.to_bytes()).graph):
            raise ValueError("cannot lower this operator")
        return super().convert(program, inputs)


def _operators(graph: Any) -> Iterator[str]:
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _operators(attribute.g)
