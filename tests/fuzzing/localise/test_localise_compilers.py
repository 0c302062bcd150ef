"""Localisation on the real compilers: real faults of theirs (docs/generation.md), and planted ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fuzzing.cases import TorchProgram
from fuzzing.execute.bench import Bench
from fuzzing.localise.ways.raising import begun
from fuzzing.outcomes import Verdict
from tests.fuzzing.localise.localise_kit import case_of, facts_of, onnx_case, shard_of, unary

TVM = str(Path(__file__).parent / "planted_tvm.py")
INDUCTOR = str(Path(__file__).parents[1] / "backends" / "planted_inductor.py")
RAMP = np.linspace(0.5, 2, 6, dtype=np.float32).reshape(1, 2, 3)

PAD_BEHIND_TRANSPOSE = """g (float[1,1,2] x) => (float[1,1,1] out)
    <int64[2] pads = {-1, 0}, int64[1] axes = {2}> {
        a = Sqrt(x)  b = Transpose<perm = [1, 0, 2]>(a)  c = Pad(b, pads, , axes)  out = Exp(c)
    }"""
REDUCTION = """g (float[1,2,3] x) => (float[1,2,1] out) {
    a = Relu(x)  b = ReduceL1<axes = [2]>(a)  out = Tanh(b)
}"""


@pytest.mark.compiler_onnxruntime
def test_onnxruntimes_transpose_optimiser_is_named() -> None:
    case = onnx_case(PAD_BEHIND_TRANSPOSE, np.ones((1, 1, 2), np.float32))
    facts = facts_of(case, shard_of("onnxruntime"))
    assert facts["ladder"].found == ("graph optimiser, level basic",)
    assert facts["parts"].found == ("TransposeOptimizer", "TransposeOptimizer_CPUExecutionProvider")
    assert facts["subgraph"].found == ("Transpose", "Pad")
    assert facts["parts"].confirmed
    assert facts["subgraph"].confirmed


@pytest.mark.compiler_openvino
def test_openvinos_conversion_of_a_reduction_is_named() -> None:
    facts = facts_of(onnx_case(REDUCTION, RAMP, opset=13), shard_of("openvino"))
    assert (facts["stage"].found, facts["stage"].confirmed) == (("conversion",), True)
    assert facts["subgraph"].found == facts["converter"].found == ("ReduceL1",)
    assert facts["parts"].found == ()


@pytest.mark.compiler_openvino
def test_what_openvino_has_no_reference_kernel_for_is_said() -> None:
    case = onnx_case(
        "g (float[1,1,1] x) => (float[1,1,1] out) { out = LRN<size = 3, bias = 0.5>(x) }",
        np.ones((1, 1, 1), np.float32),
    )
    fact = facts_of(case, shard_of("openvino"), "stage")["stage"]
    assert fact.found == ()
    assert "LRN" in fact.how


@pytest.mark.compiler_openvino
def test_openvinos_model_can_be_evaluated_after_its_passes() -> None:
    with Bench(shard_of("openvino")) as bench:
        [(outcome, seen)] = bench.watched([unary("Abs", "Sqrt")], {"closely": True})
        assert outcome.verdict is Verdict.PASS
        stages = [name for what, name in seen if what == "stage"]
        assert (stages[0], len(stages) > 100, len(set(stages))) == ("conversion", True, len(stages))
        verdicts = []
        for stage in (stages[0], stages[len(stages) // 2], stages[-1]):
            [(outcome, _)] = bench.watched([unary("Abs", "Sqrt")], {"until": stage})
            verdicts.append(outcome.verdict)
        assert verdicts == [Verdict.PASS, Verdict.PASS, Verdict.UNSUPPORTED]  # last come the plugin's own
        [(outcome, _)] = bench.watched([unary("Abs")], {"until": "tea time"})
        assert outcome.verdict is Verdict.UNSUPPORTED


@pytest.mark.slow
@pytest.mark.compiler_tvm
def test_tvms_pass_is_named_where_it_can_be_left_out() -> None:
    facts = facts_of(unary("Abs", "Sin"), shard_of(TVM), "parts", "converter")
    assert (facts["parts"].found, facts["parts"].confirmed) == (("FuseSines",), True)
    assert facts["converter"].found == ("Abs._impl_v13", "Sin._impl_v7")


@pytest.mark.compiler_tvm
def test_tvm_tells_the_pass_that_raises_and_the_converters_of_torch() -> None:
    ramp = np.linspace(0.5, 2, 4, dtype=np.float32)
    text = "import torch\ndef forward(x, y):\n    return torch.add(x, y, alpha=2)\n"
    with Bench(shard_of(TVM)) as bench:
        watched = bench.watched([unary("Atan"), case_of(TorchProgram(text), ramp, ramp)], {"closely": True})
    (raised, seen), (dropped, called) = watched
    assert raised.verdict is Verdict.CRASH
    assert begun(seen)[-1] == "CountAtans"
    assert dropped.verdict is Verdict.WRONG_RESULT  # TVM 0.27 takes no notice of alpha
    [converter] = [name for what, name in called if what == "converter"]
    assert converter.startswith("add.Tensor: ")


@pytest.mark.slow
@pytest.mark.compiler_inductor
def test_of_torchs_layers_the_decomposition_is_named() -> None:
    text = "import torch\ndef forward(x):\n    return torch.abs(torch.nn.functional.silu(x))\n"
    shard = shard_of(INDUCTOR, rung="aot_eager_decomp_partition")
    fact = facts_of(case_of(TorchProgram(text), RAMP), shard, "parts")["parts"]
    assert (fact.found, fact.confirmed) == (("decomposition of aten.silu.default",), True)


@pytest.mark.slow
@pytest.mark.compiler_inductor
def test_of_inductor_the_lowering_is_named() -> None:
    text = "import torch\ndef forward(x):\n    return torch.relu(torch.asin(x))\n"
    fact = facts_of(case_of(TorchProgram(text), RAMP), shard_of(INDUCTOR), "parts")["parts"]
    assert (fact.found, fact.confirmed) == (("lowering of asin",), True)


@pytest.mark.compiler_iree
def test_irees_phase_that_fails_is_named() -> None:
    # IREE 3.13 lowers ReverseSequence of int64 lengths to casts that LLVM does not take.
    graph = """g (float[3,2] x, int64[2] y) => (float[3,2] out) {
        out = ReverseSequence<batch_axis = 1, time_axis = 0>(x, y)
    }"""
    case = onnx_case(graph, RAMP.reshape(3, 2), np.array([2, 1]))
    facts = facts_of(case, shard_of("iree"), "raising", "parts")
    assert facts["raising"].found == ("hal",)
    assert facts["parts"].found == ()
