"""ONNX Runtime's tests of its Python API: methods of unittest classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bot.proposals.code_style import CodeStyle
from bot.proposals.gtest_text import gtest_text
from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import Place, Writer, writer


@writer
class OnnxRuntimePythonWriter(Writer):
    """`TestInferenceSession` of `onnxruntime_test_python.py`."""

    name = "onnxruntime-python"
    backend = "onnxruntime"
    frontend = "onnx"
    style: ClassVar[CodeStyle] = CodeStyle(line_length=120)
    first_party = "onnxruntime"
    path = "onnxruntime/test/python/onnxruntime_test_python.py"
    class_name = "TestInferenceSession"
    suite: ClassVar[tuple[str, ...]] = (
        "onnxruntime/test/python/onnx*.py",
        "onnxruntime/test/providers/cpu/*_test.cc",
    )
    other_path = "onnxruntime/test/providers/cpu/test.cc"
    companions: ClassVar[tuple[str, ...]] = ("onnxruntime/test/python/helper.py",)

    def values(self, regression: Regression, tree: Tree) -> Mapping[str, Any]:
        """The parts of the model, and the level of optimization at which it fails."""
        return {**super().values(regression, tree), "output": _output(regression)}

    def other_text(self, regression: Regression, name: str) -> str:
        """The test for the C++ suite."""
        return gtest_text(regression, name)

    def command(self, place: Place, name: str) -> tuple[str, ...]:
        """The file is run as a program, in its own folder's import path."""
        return (place.path, f"{place.class_name}.{name}")


def _output(regression: Regression) -> str:
    """The failing output, "" for crashes."""
    mismatches = regression.outcome.evidence.mismatches
    return mismatches[0].output if mismatches else ""
