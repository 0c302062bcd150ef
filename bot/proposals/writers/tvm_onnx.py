"""TVM's tests of its ONNX importer: functions of pytest that call the file's `check_correctness`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bot.proposals.code_style import CodeStyle
from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import Writer, writer


@writer
class TvmOnnxWriter(Writer):
    """`tests/python/relax/test_frontend_onnx.py`, compared with onnxruntime."""

    name = "tvm-onnx"
    backend = "tvm"
    frontend = "onnx"
    style: ClassVar[CodeStyle] = CodeStyle(line_length=100)
    first_party = "tvm"
    path = "tests/python/relax/test_frontend_onnx.py"
    helper = "check_correctness"
    suite: ClassVar[tuple[str, ...]] = ("tests/python/relax/test_frontend_onnx*.py",)

    def values(self, regression: Regression, tree: Tree) -> Mapping[str, Any]:
        """The parts of the model, and whether the file's helper has to compare types."""
        checks = "check_dtypes" in (tree.read(self.path) or "")
        return {**super().values(regression, tree), "check_dtypes": checks and regression.symptom == "dtype"}
