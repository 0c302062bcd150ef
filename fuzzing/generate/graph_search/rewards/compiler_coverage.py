"""The reward `compiler-coverage`: coverage gain, and 1 for a model that reaches a new part of the compiler.

Parts are what a run under coverage notes: lines of the compiler's Python package (TVM), and passes that
changed the model (onnxruntime, OpenVINO, whose passes are native code).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from fuzzing.backends.base import APPLIED_PASS, LINES
from fuzzing.backends.shared.line_recorder import parse_lines
from fuzzing.generate.graph_search.rewards import ModelRun, Reward, coverage_gain, register_reward
from fuzzing.generate.graph_search.search import SearchStep

#: A pass by name, or a line of a file.
Part = tuple[str, int]


@register_reward("compiler-coverage")
class CompilerCoverage(Reward):
    """Coverage gain, and 1 for a model that reaches a pass or a line that no model before it reached."""

    instrumentation: ClassVar[Mapping[str, Any]] = MappingProxyType({"coverage": True})

    def __init__(self) -> None:
        self.reached: set[Part] = set()

    def __call__(self, step: SearchStep, run: ModelRun) -> float:
        """The worth of a model."""
        before = len(self.reached)
        self.reached.update(compiler_parts(run.notes))
        return 1.0 if len(self.reached) > before else coverage_gain(step)


def compiler_parts(notes: Iterable[tuple[str, str]]) -> set[Part]:
    """The parts of the compiler that notes name."""
    found: set[Part] = set()
    for kind, name in notes:
        if kind == APPLIED_PASS:
            found.add((name, 0))
        elif kind == LINES:
            path, lines = parse_lines(name)
            found.update((path, line) for line in lines)
    return found
