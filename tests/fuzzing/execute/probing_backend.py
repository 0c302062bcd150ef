"""A backend for tests: the program is Python source, run in the worker; it answers with its `result`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fuzzing.backends.base import Backend, Named, register
from fuzzing.cases.programs import Program
from fuzzing.cases.values import Tensor


@register
class ProbeBackend(Backend):
    name: ClassVar[str] = "probing"
    package: ClassVar[str] = "numpy"
    import_name: ClassVar[str] = "numpy"

    def load(self, device: str, options: dict[str, Any]) -> None:
        self._given = options

    def convert(self, program: Program, inputs: Named) -> Any:
        return program.to_bytes().decode()

    def compile(self, model: Any) -> Any:
        return model

    def run(self, executable: Any, inputs: Named) -> Named:
        names: dict[str, Any] = {"given": self._given}
        exec(executable, names)
        return [("result", Tensor.of(np.array(str(names["result"]), object)))]
