"""Shared code of backends for Keras programs: building, inputs, export to ONNX.

Keras runs on its torch backend, so a backend that uses this sets KERAS_BACKEND=torch in its environment.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import warnings
from typing import Any, Dict, Iterator, List

from fuzzing.backends.base import Named, Unsupported
from fuzzing.backends.shared import torch_programs
from fuzzing.cases.keras_layer import KerasLayer
from fuzzing.cases.values import Tensor

#: For `Backend.environment`.
ENVIRONMENT = {"KERAS_BACKEND": "torch"}


class Built:
    """A KerasLayer whose text has been run.

    model    the functional keras.Model returned by `make()`, with its weights drawn
    program  its source, in double precision if requested
    floatx   Keras's default type for it
    """

    def __init__(self, model: Any, arrange: Any, program: KerasLayer, floatx: str) -> None:
        self.model = model
        self.program = program
        self.floatx = floatx
        self._arrange = arrange

    def arrange(self, inputs: Named) -> List[Any]:
        """The model's inputs as fresh tensors of the declared types and shapes.

        Raises Unsupported if a value is absent or does not have the declared type.
        """
        given = {name: self._tensor(name, value) for name, value in inputs}
        return list(self._arrange(given))

    def _tensor(self, name: str, value: Any) -> Any:
        declared = next((tensor for tensor in self.program.tensors if tensor.name == name), None)
        if not isinstance(value, Tensor):
            raise Unsupported("a Keras model takes tensors only")
        tensor = torch_programs.to_torch(value)
        if declared is not None and declared.shape != value.shape:
            raise Unsupported(f"{name} is declared as {declared.shape}, the case gives {value.shape}")
        return tensor.double() if declared is not None and declared.dtype == "float64" else tensor

    def run(self, inputs: Named) -> Named:
        """Calls the model for inference, seeded and without gradients; the outputs in order."""
        import torch

        arguments = self.arrange(inputs)
        torch_programs.reseed()
        with torch.no_grad(), _floatx(self.floatx):
            return torch_programs.named_outputs(self.model(arguments, training=False))


def build(program: KerasLayer, precision: str = "native") -> Built:
    """Runs the text of a KerasLayer. Propagates its exceptions."""
    import keras

    native = _build(program, "float32")
    if precision == "native":
        return native
    wide = _build(program.widened(), "float64")
    for weight, drawn in zip(wide.model.weights, native.model.weights):
        weight.assign(keras.ops.convert_to_numpy(drawn.value))  # the same weights, not the same draws
    return wide


def _build(program: KerasLayer, floatx: str) -> Built:
    import keras

    keras.utils.clear_session(free_memory=False)  # collecting garbage would cost 0.2 s a case
    keras.utils.set_random_seed(torch_programs.RNG_SEED)
    with _floatx(floatx):
        space: Dict[str, Any] = torch_programs.execute(program.source(), program.filename)
        return Built(space["make"](), space["arrange"], program, floatx)


@contextlib.contextmanager
def _floatx(name: str) -> Iterator[None]:
    """Within it `name` is Keras's default type, in which layers compute."""
    import keras

    before, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx(name)
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_floatx(before)
        keras.config.set_dtype_policy(policy)


def to_onnx(built: Built, inputs: Named) -> bytes:
    """The model as ONNX with static input shapes; inputs are named as in the program.

    Keras uses torch's TorchScript exporter for a model with any dynamic dimension, and otherwise the one on
    Dynamo, which is fifty times as slow. Here the first is tried first. Raises Unsupported with the message
    of the second if both fail, since no compiler was involved.
    """
    try:
        return _to_onnx_by_script(built, inputs)
    except Exception:  # noqa: BLE001 - torch raises anything here; the second exporter then reports it
        return _to_onnx_by_keras(built, inputs)


def _to_onnx_by_script(built: Built, inputs: Named) -> bytes:
    import torch

    class Flat(torch.nn.Module):
        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model

        def forward(self, *arguments: Any) -> Any:
            return self.model(list(arguments), training=False)

    buffer = io.BytesIO()
    arguments = tuple(built.arrange(inputs))
    names = [tensor.name for tensor in built.program.tensors]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export: Any = torch.onnx.export  # annotated without the buffers it takes
        export(Flat(built.model).eval(), arguments, buffer, input_names=names, dynamo=False)
    return buffer.getvalue()


def _to_onnx_by_keras(built: Built, inputs: Named) -> bytes:
    import keras

    shapes = {name: value.shape for name, value in inputs if isinstance(value, Tensor)}
    signature = [
        keras.InputSpec(shape=shapes[tensor.name], dtype=tensor.dtype, name=tensor.name)
        for tensor in built.program.tensors
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")  # noqa: PTH118 - worker: keep it small
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                built.model.export(path, format="onnx", verbose=False, input_signature=[signature])
        except Exception as error:  # all of it is about Keras and torch
            lines = str(error).strip().splitlines() or [""]
            raise Unsupported(f"Keras cannot export it: {type(error).__name__}: {lines[0][:300]}") from error
        with open(path, "rb") as file:
            return file.read()
