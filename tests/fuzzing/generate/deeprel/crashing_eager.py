"""Eager torch that dies of one operator: torch.Tensor.negative."""

from __future__ import annotations

import os
import signal
from typing import Any, ClassVar

from fuzzing.backends.base import Named, register
from fuzzing.backends.torch_eager import TorchEager
from fuzzing.cases.programs import Program


@register
class CrashingEager(TorchEager):
    """See the head of this file."""

    name: ClassVar[str] = "crashing_eager"

    def convert(self, program: Program, inputs: Named) -> Any:
        if getattr(program, "api", "") == "torch.Tensor.negative":
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().convert(program, inputs)
