"""Eager torch that doubles the derivative of tanh: its results are right, its gradients are not."""

from __future__ import annotations

from typing import Any, ClassVar

from fuzzing.backends.base import Named, register
from fuzzing.backends.inductor import Inductor
from fuzzing.backends.shared import torch_programs
from fuzzing.backends.torch_eager import TorchEager


@register
class WrongGradient(TorchEager):
    """See the head of this file."""

    name: ClassVar[str] = "wrong_gradient"
    reference: ClassVar[bool] = False
    options: ClassVar[dict[str, tuple[str, ...]]] = {"backward": ("off", "on"), "doubled": ("yes", "no")}

    @classmethod
    def reference_options(cls, options: dict[str, str]) -> dict[str, str]:
        """As of inductor."""
        return Inductor.reference_options(options)

    def load(self, device: str, options: dict[str, Any]) -> None:
        super().load(device, {"backward": options.get("backward", "off")})
        self._factor = 2 if options.get("doubled", "yes") == "yes" else 1

    def run(self, executable: torch_programs.Built, inputs: Named) -> Named:
        from torch.utils._python_dispatch import TorchDispatchMode

        factor = self._factor

        class Doubles(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                result = func(*args, **(kwargs or {}))
                return result * factor if str(func) == "aten.tanh_backward.default" else result

        with Doubles():  # type: ignore[no-untyped-call]
            return executable.run(inputs, self._device)
