"""OpenVINO's layer tests of its ONNX frontend: a class for each network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bot.proposals.candidate_names import class_name, operator_word
from bot.proposals.code_style import CodeStyle
from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import Place, ProposalSettings, Writer, onnx_values, writer

_FOLDER = "tests/layer_tests"


@writer
class OpenVinoOnnxWriter(Writer):
    """`tests/layer_tests/onnx_tests/test_OPERATOR.py`, compared with onnxruntime."""

    name = "openvino-onnx"
    backend = "openvino"
    frontend = "onnx"
    companions: ClassVar[tuple[str, ...]] = (
        f"{_FOLDER}/conftest.py",
        f"{_FOLDER}/pytest.ini",
        f"{_FOLDER}/onnx_tests/conftest.py",
        *(
            f"{_FOLDER}/common/{name}.py"
            for name in (
                "__init__",
                "constants",
                "layer_test_class",
                "onnx_layer_test_class",
                "utils/__init__",
            )
        ),
    )
    style: ClassVar[CodeStyle] = CodeStyle(line_length=120, quotes="preserve")

    def place(self, regression: Regression, tree: Tree, settings: ProposalSettings) -> Place | None:
        """The operator's file, if the repository has such tests."""
        del settings
        path = f"{_FOLDER}/onnx_tests/test_{operator_word(regression)}.py"
        return Place(path) if tree.has(f"{_FOLDER}/common/onnx_layer_test_class.py") else None

    def values(self, regression: Regression, tree: Tree) -> Mapping[str, Any]:
        """The parts of the network."""
        del tree
        return onnx_values(regression)

    def test_id(self, place: Place, name: str) -> str:
        """The test in its own class."""
        return f"{place.path}::{class_name(name)}::{name}"
