"""Localization on the real compilers: real faults of theirs (docs/generation.md), and planted ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fuzzing.cases import TorchProgram
from fuzzing.execute.evaluator import Evaluator
from fuzzing.localize.failing_case import names
from fuzzing.localize.methods.last_pass import find_open_passes
from fuzzing.outcomes import Verdict
from tests.fuzzing.localize.localize_kit import case_of, localize_facts, onnx_case, shard_of, unary

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
def test_onnxruntimes_transpose_optimizer_is_named() -> None:
    case = onnx_case(PAD_BEHIND_TRANSPOSE, np.ones((1, 1, 2), np.float32))
    facts = localize_facts(case, shard_of("onnxruntime"))
    assert facts["ablation"].found == ("graph optimiser, level basic",)
    assert facts["passes"].found == ("TransposeOptimizer", "TransposeOptimizer_CPUExecutionProvider")
    assert facts["subgraph"].found == ("Transpose", "Pad")
    assert facts["passes"].confirmed
    assert facts["subgraph"].confirmed


@pytest.mark.compiler_openvino
def test_openvinos_conversion_of_a_reduction_is_named() -> None:
    facts = localize_facts(onnx_case(REDUCTION, RAMP, opset=13), shard_of("openvino"))
    assert (facts["stage"].found, facts["stage"].confirmed) == (("conversion",), True)
    assert facts["subgraph"].found == facts["converter"].found == ("ReduceL1",)
    assert facts["passes"].found == ()


@pytest.mark.compiler_openvino
def test_openvinos_model_can_be_evaluated_after_its_passes() -> None:
    with Evaluator(shard_of("openvino")) as evaluator:
        [(outcome, seen)] = evaluator.instrumented([unary("Abs", "Sqrt")], {"record": True})
        assert outcome.verdict is Verdict.PASS
        stages = [name for what, name in seen if what == "stage"]
        assert (stages[0], len(stages) > 100, len(set(stages))) == ("conversion", True, len(stages))
        verdicts = []
        for stage in (stages[0], stages[len(stages) // 2], stages[-1]):
            [(outcome, _)] = evaluator.instrumented([unary("Abs", "Sqrt")], {"stop_after": stage})
            verdicts.append(outcome.verdict)
        assert verdicts == [Verdict.PASS, Verdict.PASS, Verdict.UNSUPPORTED]  # last come the plugin's own
        [(outcome, _)] = evaluator.instrumented([unary("Abs")], {"stop_after": "tea time"})
        assert outcome.verdict is Verdict.UNSUPPORTED
        lrn = onnx_case("g (float[1,2,3] x) => (float[1,2,3] out) { out = LRN<size = 3>(x) }", RAMP)
        [(outcome, _)] = evaluator.instrumented([lrn], {"stop_after": "conversion"})
        assert outcome.verdict is Verdict.UNSUPPORTED
        assert "no reference kernel after conversion: opset1::LRN" in outcome.summary


@pytest.mark.slow
@pytest.mark.compiler_tvm
def test_tvms_passes_are_noted_and_can_be_left_out() -> None:
    ramp = np.linspace(0.5, 2, 4, dtype=np.float32)
    text = "import torch\ndef forward(x, y):\n    return torch.add(x, y, alpha=2)\n"
    dropping, sine = case_of(TorchProgram(text), ramp, ramp), unary("Abs", "Sin")
    with Evaluator(shard_of(TVM)) as evaluator:
        instrumented = evaluator.instrumented([sine, unary("Atan"), dropping], {"record": True})
        [(cured, _)] = evaluator.instrumented([sine], {"disabled": ["FuseSines"]})
    (wrong, seen), (raised, stop_after), (dropped, called) = instrumented
    assert (wrong.verdict, cured.verdict) == (Verdict.WRONG_RESULT, Verdict.PASS)
    assert {"FuseSines", "FoldConstant", "FuseOps"} <= set(names(seen, "bisectable_pass"))
    assert "LegalizeOps" not in names(seen, "bisectable_pass")
    assert names(seen, "converter") == ("Abs._impl_v13", "Sin._impl_v7")
    assert raised.verdict is Verdict.CRASH
    assert find_open_passes(stop_after)[-1] == "CountAtans"
    assert dropped.verdict is Verdict.WRONG_RESULT  # TVM 0.27 takes no notice of alpha
    [converter] = names(called, "converter")
    assert converter.startswith("add.Tensor: ")


@pytest.mark.slow
@pytest.mark.compiler_inductor
def test_inductors_lowerings_are_noted_and_can_be_left_out() -> None:
    case = case_of(TorchProgram("import torch\ndef forward(x):\n    return torch.asin(x)\n"), RAMP / 2)
    with Evaluator(shard_of(INDUCTOR)) as evaluator:
        [(failed, seen)] = evaluator.instrumented([case], {"record": True})
        [(cured, _)] = evaluator.instrumented([case], {"disabled": ["lowering of asin"]})
        [again] = evaluator.evaluate([case])
    assert (failed.verdict, cured.verdict, again.verdict) == (Verdict.CRASH, Verdict.PASS, Verdict.CRASH)
    assert {"lowering of asin", "pattern matcher"} <= set(names(seen, "bisectable_pass"))


@pytest.mark.compiler_iree
def test_irees_phase_that_fails_is_named() -> None:
    # IREE 3.13 lowers ReverseSequence of int64 lengths to casts that LLVM does not take.
    graph = """g (float[3,2] x, int64[2] y) => (float[3,2] out) {
        out = ReverseSequence<batch_axis = 1, time_axis = 0>(x, y)
    }"""
    with Evaluator(shard_of("iree")) as evaluator:
        [(outcome, seen)] = evaluator.instrumented(
            [onnx_case(graph, RAMP.reshape(3, 2), np.array([2, 1]))], {"record": True}
        )
        parts = names(seen, "bisectable_pass")
        [(passed, _)] = evaluator.instrumented([unary("Abs", "Sqrt")], {"disabled": parts})
    assert outcome.verdict is Verdict.CRASH
    assert find_open_passes(seen) == ["hal"]
    assert "iree-opt-const-eval" in parts
    assert passed.verdict is Verdict.PASS
