"""OpenVINO's layer tests of its ONNX frontend."""

from __future__ import annotations

from typing import ClassVar

from bot.proposals.openvino_layer_tests import LAYER_TESTS, LayerTestWriter
from bot.proposals.writer import writer


@writer
class OpenVinoOnnxWriter(LayerTestWriter):
    """`tests/layer_tests/onnx_tests/test_OPERATOR.py`, compared with onnxruntime."""

    name = "openvino-onnx"
    frontend = "onnx"
    folder = f"{LAYER_TESTS}/onnx_tests"
    base = f"{LAYER_TESTS}/common/onnx_layer_test_class.py"
    suite: ClassVar[tuple[str, ...]] = (
        f"{folder}/test_*.py",
        "src/frontends/onnx/tests/*.cpp",
        "src/frontends/onnx/tests/tests_python/test_*.py",
    )
    companions: ClassVar[tuple[str, ...]] = (
        base,
        f"{LAYER_TESTS}/conftest.py",
        f"{LAYER_TESTS}/pytest.ini",
        f"{LAYER_TESTS}/onnx_tests/conftest.py",
        *(
            f"{LAYER_TESTS}/common/{name}.py"
            for name in ("__init__", "constants", "layer_test_class", "utils/__init__")
        ),
    )
