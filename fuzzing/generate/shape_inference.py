"""ONNX's strict shape inference and checker, in a child process.

Both are C++ that trusts its input. Of random models, one in some thousands crashes the process (onnx 1.23.2:
a Split with more outputs than its num_outputs indexes a vector out of range). Such a model counts as
refused, and a new process is started.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any, TextIO

import onnx
from onnx import ModelProto

from fuzzing.errors import InfrastructureError
from fuzzing.generate.json_process import JsonProcess, ProcessExitedError
from fuzzing.graph.ir import Graph
from fuzzing.graph.onnx_types import type_of
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.types import TensorType

#: For one model; inference takes a millisecond.
_SECONDS = 60.0


class ShapeInference:
    """Infers types in the child process.

    crashes  number of models that crashed the process
    """

    def __init__(self) -> None:
        self.crashes = 0
        self._child: JsonProcess | None = None

    def infer_types(self, graph: Graph, sound: int = 0) -> list[TensorType] | None:
        """The type of each edge, of a graph whose edges have no names; None if ONNX refuses it.

        sound  how many of the first nodes are known to pass the inference
        """
        model = base64.b64encode(to_onnx(graph).SerializeToString()).decode()
        try:
            inferred = self._process().request({"onnx": model, "sound": sound})["types"]
        except ProcessExitedError:
            self.crashes += 1
            self._child = None
            return None
        if inferred is None:
            return None
        types = list(graph.types)
        for name, (dtype, shape) in inferred.items():
            types[int(name[1:])] = TensorType(dtype, None if shape is None else tuple(shape))
        return types

    def _process(self) -> JsonProcess:
        if self._child is None:
            try:
                command = [sys.executable, "-m", "fuzzing.generate.shape_inference"]
                self._child = JsonProcess(command, {}, _SECONDS, "install Assay again")
            except ProcessExitedError as error:
                raise InfrastructureError(f"ONNX cannot be imported: {error}") from error
        return self._child


# The process that answers ----------------------------------------------------------------------------


def infer(model: ModelProto, sound: int) -> dict[str, tuple[str, list[int | None] | None]] | None:
    """The types of the nodes' outputs, by name; None if ONNX refuses the model.

    Nodes are inferred one at a time, as runtimes do: inference that continues after a refused node crashes
    where an operator without checks (EyeLike) meets an input without a type.
    """
    nodes, outputs = list(model.graph.node), [output.name for output in model.graph.output]
    del model.graph.node[sound:], model.graph.output[:]
    inferred = model
    for node in nodes[sound:]:
        model.graph.node.append(node)
        try:
            inferred = onnx.shape_inference.infer_shapes(
                model, check_type=True, strict_mode=True, data_prop=True
            )
        except onnx.shape_inference.InferenceError:
            return None
    known = {item.name: item for item in inferred.graph.value_info}
    inferred.graph.output.extend([known[name] for name in outputs if name in known])
    try:
        onnx.checker.check_model(inferred)
    except onnx.checker.ValidationError:
        return None
    types = {name: type_of(item.type) for name, item in known.items()}
    return {
        name: (type_.dtype, None if type_.shape is None else list(type_.shape))
        for name, type_ in types.items()
    }


def _write_line(out: TextIO, answer: Any) -> None:
    out.write(json.dumps(answer) + "\n")
    out.flush()


def main() -> int:
    """Answers requests until stdin closes."""
    _write_line(sys.stdout, {"event": "ready"})
    for line in sys.stdin:
        request = json.loads(line)
        model = ModelProto.FromString(base64.b64decode(request["onnx"]))
        _write_line(sys.stdout, {"types": infer(model, request["sound"])})
    return 0


if __name__ == "__main__":
    sys.exit(main())
