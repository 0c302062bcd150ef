"""Eager torch: the reference of TorchCall and TorchProgram, in the shard's interpreter."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from fuzzing.backends.base import Backend, Named, UnsupportedPattern, register
from fuzzing.backends.inductor import header_cache
from fuzzing.backends.shared import torch_programs
from fuzzing.cases.programs import Program

#: In the text of a program that compiles a part of itself, as sides of pairs do.
_COMPILES = "torch.compile("


@register
class TorchEager(Backend):
    """Runs the module uncompiled.

    options: `precision`, "float64" for the float64 check; `undefined`, the number to put where torch leaves a
    result open (`undefined_results`), by default torch's own; `backward`, on for the gradients of the inputs
    too (`torch_gradients`).
    """

    name: ClassVar[str] = "torch_eager"
    package: ClassVar[str] = "torch"
    import_name: ClassVar[str] = "torch"
    kinds: ClassVar[tuple[str, ...]] = ("TorchCall", "TorchProgram")
    devices: ClassVar[tuple[str, ...]] = ("CPU", "CUDA")
    options: ClassVar[dict[str, tuple[str, ...]]] = {
        "precision": ("native", "float64"),
        "undefined": ("native", "0", "1"),
        "backward": ("off", "on"),
    }
    packages: ClassVar[tuple[str, ...]] = ("torch", "numpy")
    environment: ClassVar[dict[str, str]] = {"ASSAY_CACHE": "{cache}", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    reference: ClassVar[bool] = True
    unsupported: ClassVar[tuple[UnsupportedPattern, ...]] = (
        UnsupportedPattern("NotImplementedError", r"([^\n]*)", r"torch lacks this: \1"),
    )

    def load(self, device: str, options: dict[str, Any]) -> None:
        """Imports torch, with one thread: the machine's cores serve other workers."""
        import torch

        torch.set_num_threads(1)
        self._device = device.lower()
        self._precision: str = options.get("precision", "native")
        self._undefined: str = options.get("undefined", "native")
        self._backward = options.get("backward") == "on"
        self._compiles = False

    def convert(self, program: Program, inputs: Named) -> Any:  # noqa: ARG002
        """The program's module. Before the first one that calls torch.compile, inductor's set-up is done.

        It takes 20 s of a core, which are the machine's and not the program's.
        """
        if not self._compiles and _COMPILES in getattr(program, "text", "") and self._device == "cpu":
            header_cache.prepare(header_cache.open_header_cache(os.environ.get("ASSAY_CACHE", "")))
            self._compiles = True
        return torch_programs.build(program, self._device, self._precision, self._backward)

    def compile(self, model: Any) -> Any:
        """Nothing to do."""
        return model

    def run(self, executable: Any, inputs: Named) -> Named:
        """One call, seeded."""
        built: torch_programs.Built = executable
        if self._undefined == "native":
            return built.run(inputs, self._device)
        from fuzzing.backends.torch_eager.undefined_results import FillUndefined

        with FillUndefined(int(self._undefined)):
            return built.run(inputs, self._device)
