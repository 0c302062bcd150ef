"""Shared code of backends that read ONNX: models as they are, Keras programs exported."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np

from fuzzing.backends.base import MODEL, Named
from fuzzing.backends.shared import keras_models
from fuzzing.cases.values import Tensor

#: `kinds` and `environment` of a backend that reads ONNX.
KINDS = ("OnnxModel", "KerasLayer", "EquivalentModels")
#: `captured` of such a backend.
CAPTURED = ("KerasLayer",)
ENVIRONMENT = keras_models.ENVIRONMENT
#: For `Backend.exporters`: Keras exports through torch, whose exporter writes with onnxscript.
EXPORTERS: Dict[str, Tuple[str, ...]] = {"KerasLayer": ("onnx", "onnxscript")}


def model_bytes(program: Any, inputs: Named) -> bytes:
    """The program as a ModelProto's bytes; raises Unsupported if Keras cannot export it."""
    if program.kind == "KerasLayer":
        return keras_models.to_onnx(keras_models.build(program), inputs)
    data: bytes = program.to_bytes()
    return data


def exported_model(program: Any, inputs: Named) -> Named:
    """The result of `Backend.run_capture` for a program that is exported to ONNX."""
    return [(MODEL, Tensor.of(np.frombuffer(model_bytes(program, inputs), np.uint8)))]


def positional_names(count: int) -> List[str]:
    """Names for outputs that a frontend has renamed. No library uses such names, so outputs are compared by
    position: with "0", "1" the outputs of a program that also returns None would be mixed up.
    """
    return [f"output {place}" for place in range(count)]
