"""Eager torch behind a fault: the process dies of SIGSEGV after anything computed `tanh`.

Not within: the stack would name torch's functions, as no compiler's own thread does.
"""

from __future__ import annotations

import os
import signal
from typing import Any, ClassVar

from fuzzing.backends.base import Named, register
from fuzzing.backends.shared import torch_programs
from fuzzing.backends.torch_eager import TorchEager


@register
class Dying(TorchEager):
    """See the head of this file."""

    name: ClassVar[str] = "dying"
    reference: ClassVar[bool] = False

    def run(self, executable: Any, inputs: Named) -> Named:
        from torch.utils._python_dispatch import TorchDispatchMode

        called: set[str] = set()

        class Notes(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                called.add(str(func).split(".")[1])
                return func(*args, **(kwargs or {}))

        built: torch_programs.Built = executable
        with Notes():  # type: ignore[no-untyped-call]
            outputs = built.run(inputs, self._device)
        if "tanh" in called:
            os.kill(os.getpid(), signal.SIGSEGV)
        return outputs
