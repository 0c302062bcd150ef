"""A compiler with one wrong operator: onnxruntime, for which a Reciprocal is an Identity."""

from __future__ import annotations

from typing import Any, ClassVar

import onnx

from fuzzing.backends.base import Backend, Named, get, register
from fuzzing.cases.programs import OnnxModel, Program


@register
class WrongOperator(Backend):
    name: ClassVar[str] = "wrong-operator"
    package: ClassVar[str] = "onnxruntime"
    import_name: ClassVar[str] = "onnxruntime"

    def load(self, device: str, options: dict[str, Any]) -> None:
        self._honest = get("onnxruntime")()
        self._honest.load(device, {})

    def convert(self, program: Program, inputs: Named) -> Any:
        model = onnx.load_model_from_string(program.to_bytes())
        for node in model.graph.node:
            if node.op_type == "Reciprocal":
                node.op_type = "Identity"
        return self._honest.convert(OnnxModel(model.SerializeToString()), inputs)

    def compile(self, model: Any) -> Any:
        return self._honest.compile(model)

    def run(self, executable: Any, inputs: Named) -> Named:
        return self._honest.run(executable, inputs)
