"""OpenVINO's layer tests of its PyTorch frontend."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from bot.proposals.input_expressions import numpy_input
from bot.proposals.openvino_layer_tests import LAYER_TESTS, LayerTestWriter
from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import writer
from bot.reports.reproducer import full_configuration

#: Older releases give a reference network to `_test`, always None.
_REFERENCE = re.compile(r"def _test\(self, \w+, ref_net\b")


@writer
class OpenVinoPytorchWriter(LayerTestWriter):
    """`tests/layer_tests/pytorch_tests/test_OPERATOR.py`, compared with eager torch."""

    name = "openvino-pytorch"
    frontend = "torch"
    folder = f"{LAYER_TESTS}/pytorch_tests"
    base = f"{LAYER_TESTS}/pytorch_tests/pytorch_layer_test_class.py"
    suite: ClassVar[tuple[str, ...]] = (f"{folder}/test_*.py",)
    companions: ClassVar[tuple[str, ...]] = (
        base,
        f"{LAYER_TESTS}/conftest.py",
        f"{LAYER_TESTS}/pytest.ini",
        f"{LAYER_TESTS}/pytorch_tests/conftest.py",
        *(f"{LAYER_TESTS}/common/{name}.py" for name in ("__init__", "constants", "utils/__init__")),
    )

    def values(self, regression: Regression, tree: Tree) -> Mapping[str, Any]:
        """The program, and what the base class takes."""
        options, _ = full_configuration(regression.outcome)
        return {
            **super().values(regression, tree),
            "arrays": [numpy_input(value) for _, value in regression.case.inputs],
            "takes_reference": _REFERENCE.search(tree.read(self.base) or "") is not None,
            "traced": options.get("capture") == "traced",
        }
