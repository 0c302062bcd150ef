"""What OpenVINO's layer tests have in common: a file for each operator, a class for each network."""

from __future__ import annotations

from typing import ClassVar

from bot.proposals.candidate_names import class_name, operator_word
from bot.proposals.code_style import CodeStyle
from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import Place, ProposalSettings, Writer

LAYER_TESTS = "tests/layer_tests"


class LayerTestWriter(Writer):
    """Base of the writers for `tests/layer_tests`; one for each frontend.

    folder  holds the tests, base  is the file of their class

    The repository configures no formatter there; its files keep to 120 columns.
    """

    backend = "openvino"
    style: ClassVar[CodeStyle] = CodeStyle(line_length=120, quotes="preserve")
    folder: ClassVar[str]
    base: ClassVar[str]

    def place(self, regression: Regression, tree: Tree, settings: ProposalSettings) -> Place | None:
        """The operator's file, if the repository has such tests."""
        del settings
        word = operator_word(regression)
        paths = [f"{self.folder}/test_{one}.py" for one in (word, word.replace("_", ""))]
        path = next((one for one in paths if tree.has(one)), paths[0])  # CumSum is in test_cumsum.py
        return Place(path) if tree.has(self.base) else None

    def test_id(self, place: Place, name: str) -> str:
        """The test in its own class."""
        return f"{place.path}::{class_name(name)}::{name}"
