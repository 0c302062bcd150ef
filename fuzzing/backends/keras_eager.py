"""Eager Keras on its torch backend: the reference of KerasLayer, in the shard's interpreter."""

from __future__ import annotations

from typing import Any, ClassVar

from fuzzing.backends.base import Backend, Named, UnsupportedPattern, register
from fuzzing.backends.shared import keras_models
from fuzzing.cases.keras_layer import KerasLayer
from fuzzing.cases.programs import Program
from fuzzing.errors import InternalError


@register
class KerasEager(Backend):
    """Calls the model uncompiled; options: `precision`, "float64" for the float64 check."""

    name: ClassVar[str] = "keras_eager"
    package: ClassVar[str] = "keras"
    import_name: ClassVar[str] = "keras"
    kinds: ClassVar[tuple[str, ...]] = ("KerasLayer",)
    options: ClassVar[dict[str, tuple[str, ...]]] = {"precision": ("native", "float64")}
    environment: ClassVar[dict[str, str]] = keras_models.ENVIRONMENT
    packages: ClassVar[tuple[str, ...]] = ("keras", "torch", "numpy")
    reference: ClassVar[bool] = True
    unsupported: ClassVar[tuple[UnsupportedPattern, ...]] = (
        UnsupportedPattern("NotImplementedError", r"([^\n]*)", r"Keras lacks this: \1"),
    )

    def load(self, device: str, options: dict[str, Any]) -> None:  # noqa: ARG002
        """Imports keras, with one thread: the machine's cores serve other workers."""
        import keras  # noqa: F401 - a missing package is found here, not at the first case
        import torch

        torch.set_num_threads(1)
        self._precision: str = options.get("precision", "native")

    def convert(self, program: Program, inputs: Named) -> Any:  # noqa: ARG002
        """The program's model."""
        if not isinstance(program, KerasLayer):
            raise InternalError(f"keras_eager was given a {program.kind}")
        return keras_models.build(program, self._precision)

    def compile(self, model: Any) -> Any:
        """Nothing to do."""
        return model

    def run(self, executable: Any, inputs: Named) -> Named:
        """One call, seeded."""
        built: keras_models.Built = executable
        return built.run(inputs)
