"""What the paths of real compilers say: `fuzzing.prioritize.change.areas`."""

from __future__ import annotations

import pytest

from fuzzing.prioritize.change.areas import area_of

#: Path → role, frontends, whether all operators go through it.
PATHS = {
    "src/frontends/onnx/frontend/src/op/com.microsoft/pad.cpp": ("converter", "onnx", False),
    "src/frontends/onnx/frontend/src/utils/conv_factory.cpp": ("converter", "onnx", False),
    "src/frontends/onnx/frontend/src/core/graph.cpp": ("converter", "onnx", True),
    "src/frontends/onnx/tests/onnx_import.in.cpp": ("test", "onnx", False),
    "src/frontends/pytorch/src/op_table.cpp": ("converter", "torch", False),
    "src/frontends/pytorch/src/node_context.cpp": ("converter", "torch", True),
    "src/bindings/python/src/openvino/frontend/pytorch/ts_decoder.py": ("converter", "torch", True),
    "tests/layer_tests/pytorch_tests/test_convnd.py": ("test", "torch", False),
    "src/frontends/tensorflow/src/op/xla_conv_v2.cpp": ("converter", "keras", False),
    "src/core/shape_inference/include/max_pool_shape_inference.hpp": ("kernel", "", False),
    "src/plugins/intel_cpu/src/nodes/reduce.cpp": ("kernel", "", False),
    "src/plugins/intel_cpu/src/transformations/cpu_opset/x64/pass/x.cpp": ("pass", "", False),
    "src/common/transformations/src/transformations/op_conversions/gelu7_downgrade.cpp": ("pass", "", False),
    "src/core/tests/type_prop/matmul.cpp": ("test", "", False),
    "onnxruntime/core/providers/cpu/math/cumsum.cc": ("kernel", "onnx", False),
    "onnxruntime/core/providers/cuda/math/cumsum.cc": ("none", "", False),
    "onnxruntime/core/optimizer/conv_mul_fusion.cc": ("pass", "onnx", False),
    "onnxruntime/core/session/inference_session.cc": ("kernel", "onnx", True),
    "python/tvm/relax/frontend/onnx/onnx_frontend.py": ("converter", "onnx", False),
    "python/tvm/relax/frontend/torch/fx_translator.py": ("converter", "torch", False),
    "python/tvm/relax/frontend/tflite/tflite_frontend.py": ("none", "", False),
    "python/tvm/relax/transform/legalize_ops/nn.py": ("kernel", "", False),
    "src/relax/transform/fold_constant.cc": ("pass", "", False),
    "tests/python/relax/test_frontend_from_exported_program.py": ("test", "torch", False),
    "torch/_inductor/lowering.py": ("converter", "torch", False),
    "torch/_inductor/scheduler.py": ("converter", "torch", True),
    "torch/_inductor/fx_passes/pad_mm.py": ("pass", "torch", False),
    "torch/_meta_registrations.py": ("converter", "torch", False),
    "aten/src/ATen/native/Convolution.cpp": ("kernel", "torch", False),
    "test/inductor/test_torchinductor.py": ("test", "torch", False),
    "tinygrad/nn/onnx.py": ("converter", "onnx", False),
    "tinygrad/mixin/elementwise.py": ("kernel", "onnx", False),
    "tinygrad/uop/symbolic.py": ("pass", "onnx", False),
    "tinygrad/viz/serve.py": ("none", "", False),
    "tinygrad/runtime/ops_cpu.py": ("other", "", False),
    "test/external/external_test_onnx_ops.py": ("test", "onnx", False),
    "test/backend/test_ops.py": ("test", "", False),
    "compiler/bindings/python/iree/compiler/tools/import_onnx/__main__.py": ("converter", "onnx", True),
    "compiler/plugins/input/StableHLO/Conversion/Passes.cpp": ("none", "", False),
    "compiler/plugins/target/LLVMCPU/LLVMCPUTarget.cpp": ("other", "", False),
    "compiler/src/iree/compiler/DispatchCreation/FormDispatchRegions.cpp": ("pass", "onnx", False),
    "compiler/src/iree/compiler/DispatchCreation/test/form_regions.mlir": ("test", "onnx", False),
    "compiler/lib/lower.cpp": ("other", "", False),
    "compiler/tests/lower_test.cpp": ("test", "", False),
    "docs/operators/conv.cpp": ("none", "", False),
    "src/conv/CMakeLists.txt": ("none", "", False),
    "README.md": ("none", "", False),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_says_what_its_file_is_for(path: str) -> None:
    area = area_of(path)
    assert (area.role, " ".join(sorted(area.frontends)), area.shared) == PATHS[path]
