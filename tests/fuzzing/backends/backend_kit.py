"""What the tests of several compilers share: cases, and runs in which many cases have one worker."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any

import numpy as np
import onnx.parser

from fuzzing import backends
from fuzzing.cases import (
    KerasLayer,
    OnnxModel,
    Program,
    Provenance,
    Tensor,
    TensorArg,
    TestCase,
    TorchCall,
    TorchProgram,
    Value,
)
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution

#: The domain of operators that no engine for inference has.
TRAINING = "ai.onnx.preview.training"
NOWHERE = Provenance("tests", "", "", "", "")


def onnx_case(signature: str, body: str, opset: int = 17, /, **inputs: Value) -> TestCase:
    """An ONNX model in ONNX's own text, with its inputs."""
    opsets = f'"" : {opset}, "{TRAINING}" : 1'
    text = f"<ir_version: 8, opset_import: [{opsets}]> agraph {signature} {{ {body} }}"
    program = OnnxModel(onnx.parser.parse_model(text).SerializeToString())
    return TestCase(program, tuple(inputs.items()), NOWHERE)


def program_case(program: Program, **inputs: Value) -> TestCase:
    """A program with its inputs."""
    return TestCase(program, tuple(inputs.items()), NOWHERE)


def floats(*shape: int) -> Tensor:
    """0, 1, 2, ... as float32 of this shape."""
    return Tensor.of(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape))


def run_all(backend: str, cases: dict[str, TestCase], **options: str) -> dict[str, Execution]:
    """What becomes of each case, all in one worker unless one of them ends it."""
    supervisor: Supervisor[str] = Supervisor(WorkerCommand(sys.executable, backend, options=dict(options)))
    return dict(supervisor.run(cases.items()))


def arrays(execution: Execution) -> list[np.ndarray[Any, Any]]:
    """The outputs of a run that must have succeeded."""
    assert execution.ending == "returned", f"{execution.error}: {execution.message}"
    return [value.array() for _, value in execution.outputs if isinstance(value, Tensor)]


def reason(backend: str, error: str, message: str) -> str | None:
    """Why the backend's own table calls this exception unsupported, None if it does not."""
    for pattern in backends.get(backend).unsupported:
        found = re.search(pattern.message, message)
        if found and re.search(pattern.error, error):
            return found.expand(pattern.why)
    return None


@cache
def torch_cases() -> dict[str, TestCase]:
    """Torch programs that every road can take: a call, one of a strided input, one of several outputs."""
    add = TorchCall("torch.add", (TensorArg("x"), TensorArg("y")))
    transposed = TorchCall("torch.neg", (TensorArg("x", strides=(1, 3)),))
    two = TorchProgram("def forward(x):\n    return (x + 1, None, (x * 2,))\n")
    unread = TorchProgram("def forward(x, y, z):\n    y.sum()\n    return x - z\n")
    return {
        "call": program_case(add, x=floats(2, 3), y=floats(3)),
        "strides": program_case(transposed, x=floats(3, 2)),
        "two outputs": program_case(two, x=floats(2, 2)),
        "unread input": program_case(unread, x=floats(2), y=floats(2), z=floats(1)),
    }


def keras_case() -> TestCase:
    """A dense layer without bias over ones: its output is the sum of the weights, whatever they are."""
    tensor = TensorArg("x", dtype="float32", shape=(2, 3))
    program = KerasLayer("keras.layers.Dense", (("activation", "relu"), ("units", 4)), (tensor,))
    return program_case(program, x=floats(2, 3))
