"""tinygrad's tests of its ONNX importer: methods that call the class's `helper_test_single_op`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bot.proposals.code_style import CodeStyle
from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import Writer, writer


@writer
class TinygradOnnxWriter(Writer):
    """`test/external/external_test_onnx_ops.py`, compared with onnxruntime."""

    name = "tinygrad-onnx"
    backend = "tinygrad"
    frontend = "onnx"
    style: ClassVar[CodeStyle] = CodeStyle(line_length=150, indent=2)
    first_party = "tinygrad"
    path = "test/external/external_test_onnx_ops.py"
    class_name = "TestMainOnnxOps"
    helper = "helper_test_single_op"
    suite: ClassVar[tuple[str, ...]] = ("test/external/external_test_onnx_*.py", "test/models/test_onnx.py")
    companions: ClassVar[tuple[str, ...]] = ("extra/__init__.py", "extra/onnx_helpers.py", "pyproject.toml")

    def values(self, regression: Regression, tree: Tree) -> Mapping[str, Any]:
        """The parts of the model; `single` if it is one operator that gets its inputs in order."""
        outline, values = regression.outline, super().values(regression, tree)
        if not outline:
            return {**values, "single": None}
        constants = [(one["name"], one["array"]) for one in outline["initializers"]]
        given = dict([*values["feeds"], *constants])
        operators = outline["operators"]
        single = operators[0] if len(operators) == 1 and not operators[0]["domain"] else None
        if single is not None and set(single["inputs"]) != set(given):
            single = None
        ordered = [(name, given[name]) for name in dict.fromkeys(single["inputs"])] if single else []
        return {**values, "single": single, "given": ordered}
