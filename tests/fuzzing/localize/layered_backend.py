"""A compiler of passes over ONNX, some of them faulty, that tells of itself as real ones do.

onnxruntime runs what comes out, unoptimized. Each pass can be left out by its name; each is a stage, after
which ONNX's own reference evaluates the model; each is noted as it begins and ends.

convert     refuses Erf, once its converter has begun
tidy        right; nothing works without it (the model is not run)
fold        right
fuse-tanh   Tanh comes out as Sigmoid
fuse-tanh-2 the same, where fuse-tanh was left out: it then has something to do
merge-sqrt  Sqrt behind Abs comes out as its input
explode     raises at Elu
die         aborts the process at Selu
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np
import onnx

from fuzzing.backends.base import Backend, Named, Unsupported, get, register
from fuzzing.cases import Tensor
from fuzzing.cases.programs import OnnxModel, Program

Model = Any  # onnx.ModelProto


def _fuse_tanh(model: Model) -> bool:
    found = [node for node in model.graph.node if node.op_type == "Tanh"]
    for node in found:
        node.op_type = "Sigmoid"
    return bool(found)


def _merge_sqrt(model: Model) -> bool:
    makers = {name: node for node in model.graph.node for name in node.output}
    found = False
    for node in model.graph.node:
        maker = makers.get(node.input[0])
        if node.op_type == "Sqrt" and maker is not None and maker.op_type == "Abs":
            node.op_type, found = "Identity", True
    return found


def _explode(model: Model) -> bool:
    if any(node.op_type == "Elu" for node in model.graph.node):
        raise ValueError("check failed: an exponential exploded")
    return False


def _die(model: Model) -> bool:
    if any(node.op_type == "Selu" for node in model.graph.node):
        os.abort()
    return False


PASSES = {
    "tidy": lambda model: True,
    "fold": lambda model: True,
    "fuse-tanh": _fuse_tanh,
    "fuse-tanh-2": _fuse_tanh,
    "merge-sqrt": _merge_sqrt,
    "explode": _explode,
    "die": _die,
}


@register
class Layered(Backend):
    """See the head of this file."""

    name: ClassVar[str] = "layered"
    package: ClassVar[str] = "onnxruntime"
    import_name: ClassVar[str] = "onnxruntime"

    def load(self, device: str, options: dict[str, Any]) -> None:
        self._behind = get("onnxruntime")()
        self._behind.load(device, {"optimization": "disabled"})

    def convert(self, program: Program, inputs: Named) -> Model:
        model = onnx.load_from_string(program.to_bytes())
        for node in model.graph.node:
            self.instrumentation.note("converter", f"{node.op_type}.convert")
            if node.op_type == "Erf":
                raise ValueError("no error function")
        return model

    def compile(self, model: Model) -> Any:
        self.instrumentation.note("stage", "conversion")
        if self.instrumentation.stop_after != "conversion":
            for name in PASSES:
                self._pass(name, model)
                if name == self.instrumentation.stop_after:
                    break
        if self.instrumentation.stop_after:
            return model
        if "tidy" in self.instrumentation.disabled:
            raise RuntimeError("the model is untidy")
        return self._behind.compile(self._behind.convert(OnnxModel(model.SerializeToString()), []))

    def _pass(self, name: str, model: Model) -> None:
        if name in self.instrumentation.disabled:
            return
        self.instrumentation.note("entered", name)
        if PASSES[name](model):
            self.instrumentation.note("bisectable_pass", name)
        self.instrumentation.note("stage", name)
        self.instrumentation.note("left", name)

    def run(self, executable: Any, inputs: Named) -> Named:
        if not self.instrumentation.stop_after:
            return self._behind.run(executable, inputs)
        from onnx.reference import ReferenceEvaluator

        if any(node.op_type == "Selu" for node in executable.graph.node):
            raise Unsupported("no reference kernel for Selu")
        names = [out.name for out in executable.graph.output]
        given = {name: np.asarray(value.array()) for name, value in inputs if isinstance(value, Tensor)}
        found = ReferenceEvaluator(executable).run(None, given)
        return [(name, Tensor.of(np.asarray(value))) for name, value in zip(names, found, strict=True)]
