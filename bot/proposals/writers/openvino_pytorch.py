"""OpenVINO's layer tests of its PyTorch frontend: a class for each program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from bot.proposals.candidate_names import class_name, operator_word
from bot.proposals.code_style import CodeStyle
from bot.proposals.regression import Regression
from bot.proposals.torch_forms import torch_form
from bot.proposals.tree import Tree
from bot.proposals.writer import Place, ProposalSettings, Writer, writer
from bot.reports.reproducer import full_configuration

_FOLDER = "tests/layer_tests/pytorch_tests"
_BASE = f"{_FOLDER}/pytorch_layer_test_class.py"
#: Older releases give a reference network to `_test`, always None.
_REFERENCE = re.compile(r"def _test\(self, \w+, ref_net\b")


@writer
class OpenVinoPytorchWriter(Writer):
    """`tests/layer_tests/pytorch_tests/test_OPERATOR.py`."""

    name = "openvino-pytorch"
    backend = "openvino"
    frontend = "torch"
    companions: ClassVar[tuple[str, ...]] = (
        _BASE,
        "tests/layer_tests/conftest.py",
        "tests/layer_tests/pytest.ini",
        f"{_FOLDER}/conftest.py",
        *(f"tests/layer_tests/common/{name}.py" for name in ("__init__", "constants", "utils/__init__")),
    )
    style: ClassVar[CodeStyle] = CodeStyle(line_length=120, quotes="preserve")

    def place(self, regression: Regression, tree: Tree, settings: ProposalSettings) -> Place | None:
        """The operator's file, if the repository has such tests."""
        del settings
        word = operator_word(regression)
        return Place(f"{_FOLDER}/test_{word}.py") if tree.has(_BASE) else None

    def values(self, regression: Regression, tree: Tree) -> Mapping[str, Any]:
        """The program, and what the base class takes."""
        options, _ = full_configuration(regression.outcome)
        return {
            "program": torch_form(regression),
            "takes_reference": _REFERENCE.search(tree.read(_BASE) or "") is not None,
            "traced": options.get("capture") == "traced",
        }

    def test_id(self, place: Place, name: str) -> str:
        """The test in its own class."""
        return f"{place.path}::{class_name(name)}::{name}"
