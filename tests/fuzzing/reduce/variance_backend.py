"""Eager torch behind a fault: variances are twice too large.

`fault=var` is as in a compiler that has one function for all that computes them, `fault=std` as in one that
has a function for each, of which one is wrong.
"""

from __future__ import annotations

from typing import Any, ClassVar

from fuzzing.backends.base import Named, register
from fuzzing.backends.shared import torch_programs
from fuzzing.backends.torch_eager import TorchEager

_FAULTY = {
    "var": {"var": 2.0, "var_mean": 2.0, "std": 2.0**0.5, "std_mean": 2.0**0.5},
    "std": {"std": 2.0**0.5},
}


@register
class Variance(TorchEager):
    """See the head of this file."""

    name: ClassVar[str] = "variance"
    reference: ClassVar[bool] = False
    options: ClassVar[dict[str, tuple[str, ...]]] = TorchEager.options | {"fault": tuple(_FAULTY)}

    def load(self, device: str, options: dict[str, Any]) -> None:
        super().load(device, options)
        self._factors = _FAULTY[options.get("fault", "var")]

    def run(self, executable: Any, inputs: Named) -> Named:
        from torch.utils._python_dispatch import TorchDispatchMode

        factors = self._factors

        class Scales(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                factor = factors.get(str(func).split(".")[1], 1.0)
                made = func(*args, **(kwargs or {}))
                if factor == 1.0:
                    return made
                return (made[0] * factor, *made[1:]) if isinstance(made, tuple) else made * factor

        built: torch_programs.Built = executable
        with Scales():  # type: ignore[no-untyped-call]
            return built.run(inputs, self._device)
