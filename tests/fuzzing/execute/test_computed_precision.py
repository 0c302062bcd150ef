from __future__ import annotations

import sys

import numpy as np
import pytest

from fuzzing import backends
from fuzzing.cases import Tensor, TensorArg, TestCase, TorchCall, TorchProgram
from fuzzing.cases.equivalent_pair import EquivalentPair
from fuzzing.cases.programs import Program
from fuzzing.execute.computed_precision import ComputedPrecision
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Verdict
from tests.fuzzing.backends.backend_kit import onnx_case, program_case

IMAGE = Tensor.of(np.random.Generator(np.random.PCG64(7)).random((1, 1, 4, 4)))
NARROW = {"float64": "float32"}
RESIZE = onnx_case(
    "(double[1,1,4,4] x) => (double[1,1,7,7] y) <float[4] s = {1, 1, 1.75, 1.75}>",
    'y = Resize <mode = "linear"> (x, , s)',
    x=IMAGE,
)
NORMALIZED = onnx_case(
    "(double[1,1,4,4] x, double[1] s) => (double[1,1,4,4] y)",
    "y = GroupNormalization <num_groups = 1> (x, s, s)",
    x=IMAGE,
    s=Tensor.of(np.array([0.7])),
)
CALL = TorchCall(
    "torch.nn.functional.interpolate", (TensorArg("x"),), (("size", (7, 7)), ("mode", "bilinear"))
)
RESIZED = TorchProgram("def forward(x):\n    return torch.nn.functional.interpolate(x, size=(7, 7))\n")
ADDED = TorchProgram("def forward(x):\n    resize = x + x\n    return resize\n")


@pytest.mark.parametrize(
    ("program", "narrow"),
    [
        (RESIZE.program, NARROW),
        (onnx_case("(double[2] Resize) => (double[2] y)", "y = Neg(Resize)", x=IMAGE).program, {}),
        (NORMALIZED.program, NARROW),
        (CALL, NARROW),
        (TorchCall("torch.add", (TensorArg("x"), TensorArg("x"))), {}),
        (RESIZED, NARROW),
        (ADDED, {}),
        (EquivalentPair(ADDED, RESIZED, "rule"), NARROW),
        (EquivalentPair(ADDED, ADDED, "rule"), {}),
    ],
)
def test_a_program_is_judged_by_the_types_of_its_operators(program: Program, narrow: dict[str, str]) -> None:
    tvm = backends.get("tvm")
    assert ComputedPrecision(tvm, "CPU", tvm.resolve_options({})).of(program) == narrow


def test_what_a_backend_computes_narrower_holds_for_all_programs() -> None:
    openvino = backends.get("openvino")
    found = ComputedPrecision(openvino, "CPU", openvino.resolve_options({})).of(ADDED)
    assert found["float64"] == "float32"


def test_a_stage_that_the_standard_computes_in_float32_is_judged_by_it() -> None:
    """ONNX's `stash_type`: a result rounded to float32 on the way is right on every compiler."""
    onnxruntime = backends.get("onnxruntime")
    precision = ComputedPrecision(onnxruntime, "CPU", onnxruntime.resolve_options({}))
    assert precision.of(NORMALIZED.program) == NARROW
    assert precision.of(RESIZE.program) == {}


@pytest.mark.compiler_tvm
@pytest.mark.parametrize("case", [RESIZE, program_case(CALL, x=IMAGE)], ids=["onnx", "torch"])
def test_float64_images_that_tvm_resizes_in_float32_are_right(case: TestCase) -> None:
    with Evaluator(Shard("", (), "tvm", "digest", sys.executable)) as evaluator:
        [outcome] = evaluator.evaluate([case])
    assert outcome.verdict is Verdict.PASS, outcome.summary
