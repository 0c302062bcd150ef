"""Eager torch behind a fault: squeeze takes every axis of length 1 away, whichever it is told."""

from __future__ import annotations

from typing import Any, ClassVar

from fuzzing.backends.base import Named, register
from fuzzing.backends.shared import torch_programs
from fuzzing.backends.torch_eager import TorchEager


@register
class Squeezing(TorchEager):
    """See the head of this file."""

    name: ClassVar[str] = "squeezing"
    reference: ClassVar[bool] = False

    def run(self, executable: Any, inputs: Named) -> Named:
        from torch.utils._python_dispatch import TorchDispatchMode

        class Squeezes(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                name = str(func)
                return args[0].squeeze() if name == "aten.squeeze.dim" else func(*args, **(kwargs or {}))

        built: torch_programs.Built = executable
        with Squeezes():  # type: ignore[no-untyped-call]
            return built.run(inputs, self._device)
