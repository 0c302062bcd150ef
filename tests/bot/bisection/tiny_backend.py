"""A compiler that adds: a release is a wheel of one function, made by the tests with a fault or without."""

from __future__ import annotations

from typing import Any, ClassVar

from fuzzing.backends.base import Backend, Named, UnsupportedPattern, register
from fuzzing.cases.programs import Program
from fuzzing.cases.values import Tensor


@register
class Tiny(Backend):
    """Takes any model of two inputs for x + y, and one of one input for the smoke test's relu(x + 1)."""

    name: ClassVar[str] = __file__  # a shard's outcomes must name the backend as the shard does
    package: ClassVar[str] = "tinyc"
    import_name: ClassVar[str] = "tinyc"
    options: ClassVar[dict[str, tuple[str, ...]]] = {"mode": ("fast", "slow")}
    unsupported: ClassVar[tuple[UnsupportedPattern, ...]] = (
        UnsupportedPattern("", "tinyc has no (.*)", r"no \1"),
    )

    @classmethod
    def requirements(cls, version: str) -> list[str]:
        return [f"tinyc=={version}", "numpy"]

    def load(self, device: str, options: dict[str, Any]) -> None:
        import tinyc  # type: ignore[import-not-found]

        self._add = tinyc.add

    def convert(self, program: Program, inputs: Named) -> Any:
        return program

    def compile(self, model: Any) -> Any:
        return model

    def run(self, executable: Any, inputs: Named) -> Named:
        arrays = [value.array() for _, value in inputs if isinstance(value, Tensor)]
        if len(arrays) == 1:  # whatever fault the release has: a bisection skips one that fails here
            return [("y", Tensor.of((arrays[0] + 1).clip(0)))]
        return [("z", Tensor.of(self._add(*arrays)))]
