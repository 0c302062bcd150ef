"""A backend for tests whose compiler is the hostile package of `test_hostile_toolchain`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from fuzzing.backends.base import Backend, Named, register
from fuzzing.cases.programs import Program


@register
class HostileBackend(Backend):
    name: ClassVar[str] = "hostile"
    package: ClassVar[str] = "hostile"
    import_name: ClassVar[str] = "hostile"

    def load(self, device: str, options: dict[str, Any]) -> None:
        import_module("hostile")

    def convert(self, program: Program, inputs: Named) -> Any:
        return program

    def compile(self, model: Any) -> Any:
        return model

    def run(self, executable: Any, inputs: Named) -> Named:
        return []
