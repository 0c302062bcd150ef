"""Small repositories with the layout, the helpers and the settings of each compiler's own.

Each has one test and what the real file gives its tests; they run on the installed packages.
"""

from __future__ import annotations

from pathlib import Path

ASF = """\
# Licensed to the Apache Software Foundation (ASF) under one
# or more contributor license agreements.
"""
TVM_ONNX = (
    ASF
    + '''"""Tests of the importer."""

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnxruntime
import tvm_ffi
from onnx import TensorProto, helper

import tvm
import tvm.testing
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx


def check_correctness(
    model, inputs=None, ir_version=8, opset=14, rtol=1e-7, atol=1e-5, check_dtypes=False
):
    model.ir_version, model.opset_import[0].version = ir_version, opset
    session = onnxruntime.InferenceSession(model.SerializeToString())
    wanted = session.run(None, inputs)
    machine = relax.VirtualMachine(tvm.compile(from_onnx(model), target="llvm"), tvm.cpu())
    got = machine["main"](*[tvm.runtime.tensor(inputs[given.name]) for given in model.graph.input])
    for one, want in zip([got] if len(wanted) == 1 else got, wanted):
        one = np.array(list(one)) if isinstance(one, tvm_ffi.Shape) else one.numpy()
        assert not check_dtypes or one.dtype == want.dtype
        tvm.testing.assert_allclose(one, want, rtol=rtol, atol=atol)


def test_relu():
    node = helper.make_node("Relu", ["x"], ["y"])
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "relu", info[:1], info[1:]))
    check_correctness(model, {"x": np.array([-1, 1], dtype="float32")})


if __name__ == "__main__":
    tvm.testing.main()
'''
)
TVM_TORCH = (
    ASF
    + """import torch
from torch.export import export

import tvm
import tvm.testing
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program


def verify_model_numerically(torch_model, example_args, rtol=1e-7, atol=1e-7):
    module = from_exported_program(export(torch_model, args=example_args))
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    got = machine["main"](*[tvm.runtime.tensor(one.numpy()) for one in example_args])
    with torch.no_grad():
        want = torch_model(*example_args)
    got = got if hasattr(got, "numpy") else got[0]
    tvm.testing.assert_allclose(got.numpy(), want.numpy(), rtol=rtol, atol=atol)


if __name__ == "__main__":
    tvm.testing.main()
"""
)
ORT = """\
# Copyright (c) Microsoft Corporation. All rights reserved.
# Licensed under the MIT License.
import os
import unittest

import numpy as np

import onnxruntime as onnxrt


class TestInferenceSession(unittest.TestCase):
    def test_providers(self):
        self.assertIn("CPUExecutionProvider", onnxrt.get_available_providers())
        self.assertTrue(np.isfinite(len(os.sep)))


class TestOther(unittest.TestCase):
    def test_version(self):
        self.assertTrue(onnxrt.__version__)


if __name__ == "__main__":
    unittest.main(verbosity=1)
"""
PYTORCH = """\
# Owner(s): ["oncall: cpu inductor"]
import torch
import torch._dynamo.test_case


def check_model(self, model, example_inputs, *, atol=None, rtol=None):
    actual = torch.compile(model, fullgraph=True)(*example_inputs)
    self.assertEqual(actual, model(*example_inputs), atol=atol, rtol=rtol)


class CPUReproTests(torch._dynamo.test_case.TestCase):
    common = check_model

    def test_identity(self):
        x = torch.ones(2)
        self.assertEqual(x, x)


if __name__ == "__main__":
    torch._dynamo.test_case.run_tests()
"""
OPENVINO_TORCH = """\
import numpy as np
import openvino
import torch


class PytorchLayerTest:
    def _test(self, model, ref_net, kind, ie_device, precision, ir_version, dynamic_shapes=True, **kwargs):
        inputs = self._prepare_input()
        given = tuple(map(torch.from_numpy, inputs))
        converted = openvino.convert_model(torch.export.export(model.eval(), given))
        got = openvino.compile_model(converted, ie_device)(inputs)[0]
        eps = kwargs.get("custom_eps", 1e-4)
        np.testing.assert_allclose(got, model(*given).detach().numpy(), rtol=eps, atol=eps)
"""
OPENVINO_ONNX = """\
import numpy as np
import onnxruntime
import openvino


class OnnxRuntimeLayerTest:
    def _test(self, net, ref_net, ie_device, precision, ir_version, temp_dir, custom_eps=1e-4):
        inputs = self._prepare_input({})
        model = openvino.Core().read_model(net.SerializeToString())
        got = openvino.compile_model(model, ie_device)(inputs)
        wanted = onnxruntime.InferenceSession(net.SerializeToString()).run(None, inputs)
        for at, want in enumerate(wanted):
            np.testing.assert_allclose(got[at], want, rtol=custom_eps, atol=custom_eps)
"""
OPENVINO_CONFTEST = """\
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "pytorch_tests")]


@pytest.fixture
def ie_device():
    return "CPU"


@pytest.fixture
def precision():
    return "FP32"


@pytest.fixture
def ir_version():
    return 11


@pytest.fixture
def temp_dir(tmp_path):
    return str(tmp_path)
"""
TINYGRAD_HELPERS = """\
import numpy as np
import onnxruntime
from tinygrad.nn.onnx import OnnxRunner

def validate(onnx_file, inputs, rtol=1e-5, atol=1e-5):
  wanted = onnxruntime.InferenceSession(onnx_file).run(None, inputs)
  for got, want in zip(OnnxRunner(onnx_file)(inputs).values(), wanted):
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=atol)
"""
TINYGRAD = """\
from typing import Any
import unittest, onnx, tempfile
import numpy as np
from extra.onnx_helpers import validate

class TestOnnxOps(unittest.TestCase):
  DOMAIN = ""
  def helper_test_single_op(self, op:str, inps:dict[str, Any], opts:dict, outs, rtol=1e-3, atol=1e-6):
    types = {name: onnx.helper.np_dtype_to_tensor_dtype(arr.dtype) for name, arr in inps.items()}
    info = onnx.helper.make_tensor_value_info
    infos = [info(name, types[name], arr.shape) for name, arr in inps.items()]
    node = onnx.helper.make_node(op, list(inps), outs, domain=self.DOMAIN, **opts)
    results = [onnx.helper.make_empty_tensor_value_info(name) for name in outs]
    graph = onnx.helper.make_graph([node], op, infos, results)
    model = onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 22)])
    with tempfile.NamedTemporaryFile() as tmp:
      onnx.save(model, tmp.name)
      validate(tmp.name, inps, rtol, atol)

class TestMainOnnxOps(TestOnnxOps):
  def test_neg(self):
    self.helper_test_single_op("Neg", {"x": np.ones(2, np.float32)}, {}, ["y"])

class TestContribOnnxOps(TestOnnxOps):
  DOMAIN = "com.microsoft"

if __name__ == "__main__":
  unittest.main()
"""
TORCH_TENSORRT = """\
import torch
from torch.testing._internal.common_utils import TestCase


class DispatchTestCase(TestCase):
    def run_test(self, mod, inputs, rtol=1e-3, atol=1e-3, use_dynamo_tracer=False, enable_passes=False):
        self.assertTrue(use_dynamo_tracer and enable_passes)
        exported = torch.export.export(mod.eval(), tuple(inputs))
        self.assertEqual(exported.module()(*inputs), mod(*inputs), rtol=rtol, atol=atol)
"""
IREE_LISTS = """\
{
  "config_name": "cpu_llvm_sync",
  "skip_run_tests": [],
  "expected_compile_failures": [
    "onnx/node/generated/test_affine_grid_2d",
    "onnx/node/generated/test_cumsum_1d_exclusive"
  ],
  "expected_run_failures": [
    "onnx/node/generated/test_cumsum_1d",
    "onnx/node/generated/test_cumsum_2d_axis_0"
  ]
}
"""
_LAYERS = "tests/layer_tests"


def settings(line_length: int, package: str) -> str:
    """A pyproject.toml with the linters of a repository."""
    return f"""[tool.ruff]
line-length = {line_length}
[tool.ruff.lint]
select = ["E", "F", "I"]
ignore = ["E402"]
[tool.ruff.lint.isort]
known-first-party = ["{package}"]
"""


FILES: dict[str, dict[str, str]] = {
    "tvm": {
        "tests/python/relax/test_frontend_onnx.py": TVM_ONNX,
        "tests/python/relax/test_frontend_from_exported_program.py": TVM_TORCH,
        "pyproject.toml": settings(100, "tvm"),
    },
    "onnxruntime": {
        "onnxruntime/test/python/onnxruntime_test_python.py": ORT,
        "pyproject.toml": settings(120, "onnxruntime"),
    },
    "inductor": {
        "test/inductor/test_cpu_repro.py": PYTORCH,
        "pyproject.toml": "[tool.black]\nline-length = 88\n",
    },
    "openvino": {
        f"{_LAYERS}/pytorch_tests/pytorch_layer_test_class.py": OPENVINO_TORCH,
        f"{_LAYERS}/common/onnx_layer_test_class.py": OPENVINO_ONNX,
        f"{_LAYERS}/conftest.py": OPENVINO_CONFTEST,
    },
    "torch-tensorrt": {
        "tests/py/dynamo/conversion/__init__.py": "",
        "tests/py/dynamo/conversion/harness.py": TORCH_TENSORRT,
        "pyproject.toml": "[tool.black]\nline-length = 88\n",
    },
    "iree": {
        "tests/external/iree-test-suites/onnx_ops/onnx_ops_cpu_llvm_sync.json": IREE_LISTS,
    },
    "tinygrad": {
        "extra/onnx_helpers.py": TINYGRAD_HELPERS,
        "test/external/external_test_onnx_ops.py": TINYGRAD,
        "pyproject.toml": '[tool.ruff]\nline-length = 150\nindent-width = 2\nlint.select = ["F", "E501"]\n',
    },
}


def make_tree(folder: Path, repository: str) -> Path:
    """The repository in a new folder."""
    for name, text in FILES[repository].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
