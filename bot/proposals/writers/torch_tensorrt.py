"""Torch-TensorRT's tests of its converters: methods of `DispatchTestCase`."""

from __future__ import annotations

from typing import ClassVar

from bot.proposals.candidate_names import class_name, operator_word
from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import Place, ProposalSettings, Writer, writer

_FOLDER = "tests/py/dynamo/conversion"
_BASE = f"{_FOLDER}/harness.py"


@writer
class TorchTensorRtWriter(Writer):
    """`tests/py/dynamo/conversion/test_OPERATOR_aten.py`, compared with eager torch.

    The harness traces the program with torch.export and lowers it to aten operators.
    """

    name = "torch-tensorrt"
    backend = "tensorrt"
    frontend = "torch"
    suite: ClassVar[tuple[str, ...]] = (f"{_FOLDER}/test_*.py",)
    companions: ClassVar[tuple[str, ...]] = (
        _BASE,
        f"{_FOLDER}/conftest.py",
        *(f"{folder}/__init__.py" for folder in ("tests/py/dynamo", _FOLDER)),
    )

    def place(self, regression: Regression, tree: Tree, settings: ProposalSettings) -> Place | None:
        """The operator's file and converter class, if the repository has such tests."""
        del settings
        word = operator_word(regression)
        place = Place(f"{_FOLDER}/test_{word}_aten.py", class_name(f"test_{word}_converter"))
        return place if tree.has(_BASE) else None
