"""Short scripts, and golden files for each program kind and backend; `ASSAY_GOLDEN=write` makes them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from bot.reports.campaign_view import ToolchainView
from bot.reports.reproducer_short import ending, render_short
from bot.runners.reproducer_run import BUG_SHOWN, Ending, shows, try_script
from fuzzing.cases import OnnxModel, Program, Provenance, Tensor, TestCase
from fuzzing.cases.arguments import TensorArg
from fuzzing.cases.keras_layer import KerasLayer
from fuzzing.cases.torch_call import Init, TorchCall
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from fuzzing.triage.onnx_text import onnx_code
from tests.bot.reports.test_reproducer import addition

GOLDEN = Path(__file__).parents[2] / "golden" / "reproducers"
MAX_LINES = 25
X = Tensor.of(np.array([[1.0, -2.0], [3.0, 4.0]], np.float32))
RELU = "import torch\n\n\ndef forward(x):\n    return torch.relu(x)\n"
PROGRAMS: dict[str, Program] = {
    "TorchCall": TorchCall("torch.nn.Linear", (TensorArg("x"),), init=Init((2, 3))),
    "TorchProgram": TorchProgram(RELU),
    "KerasLayer": KerasLayer(
        "keras.layers.Dense", (("units", 3),), (TensorArg("x", dtype="float32", shape=(2, 2)),)
    ),
}
KINDS = {
    "onnxruntime": ("OnnxModel", "KerasLayer"),
    "openvino": ("OnnxModel", "TorchCall", "TorchProgram", "KerasLayer"),
    "tvm": ("OnnxModel", "TorchCall", "TorchProgram", "KerasLayer"),
    "iree": ("OnnxModel",),
    "tinygrad": ("OnnxModel",),
    "inductor": ("TorchCall", "TorchProgram"),
    "tensorrt": ("OnnxModel", "TorchCall", "TorchProgram"),
}


def case_of(kind: str, want: float = 3.5) -> TestCase:
    if kind == "OnnxModel":
        return addition(want)
    program = PROGRAMS[kind]
    return TestCase(program, (("x", X),), Provenance("here", "test_it", "relu", program.frontend, "1"))


def outcome_of(backend: str, kind: str, verdict: Verdict = Verdict.WRONG_RESULT, signal: str = "") -> Outcome:
    output = "c" if kind == "OnnxModel" else "0"
    mismatch = Mismatch(output, "value", "differs", worst=(1,), got="3.0", want="3.5", rtol=1e-3, atol=1e-5)
    wrong = (mismatch,) if verdict is Verdict.WRONG_RESULT else ()
    summary = f"output {output}: 1 of 2 elements are wrong" if wrong else "what happened"
    evidence = Evidence(mismatches=wrong, signal=signal)
    device = "CUDA" if backend == "tensorrt" else "CPU"
    return Outcome("0" * 64, backend, "t", device, verdict, Phase.RUN, summary, {}, evidence)


def script_of(backend: str, kind: str, case: TestCase | None = None, outcome: Outcome | None = None) -> str:
    case = case or case_of(kind)
    toolchain = ToolchainView(f"{backend} 1.2.3", {backend: "1.2.3"}, (f"{backend}==1.2.3",))
    code = onnx_code(case.program.to_bytes()) if kind == "OnnxModel" else ""
    return render_short(case, outcome or outcome_of(backend, kind), toolchain, code)


@pytest.mark.parametrize(
    ("backend", "kind"), [(backend, kind) for backend, kinds in KINDS.items() for kind in kinds]
)
def test_golden(backend: str, kind: str) -> None:
    script = script_of(backend, kind)
    path = GOLDEN / f"{backend}.{kind}.py.txt"
    if os.environ.get("ASSAY_GOLDEN") == "write":
        path.write_text(script, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == script, f"{path} differs; ASSAY_GOLDEN=write writes it"
    assert script.startswith("# pip install ")
    assert len(script.splitlines()) <= MAX_LINES + {"iree": 6, "tinygrad": 3, "tvm": 2}.get(backend, 0)


@pytest.mark.parametrize(("backend", "short"), [("openvino", False), ("tvm", False), ("inductor", True)])
def test_a_compiler_that_takes_arrays_gets_no_element_types_that_numpy_lacks(
    backend: str, short: bool
) -> None:
    halves = Tensor("bfloat16", (2, 2), bytes(8))
    case = replace(case_of("TorchProgram"), inputs=(("x", halves),))
    assert bool(script_of(backend, "TorchProgram", case)) is short
    returned = replace(case_of("TorchProgram"), expected=(("0", halves),))
    assert bool(script_of(backend, "TorchProgram", returned)) is short


def test_a_sequence_for_a_tensor_has_no_short_script() -> None:
    outcome = outcome_of("tvm", "OnnxModel")
    mismatch = Mismatch("c", "type", "a sequence instead of a tensor")
    assert not script_of(
        "tvm", "OnnxModel", outcome=replace(outcome, evidence=Evidence(mismatches=(mismatch,)))
    )


@pytest.mark.parametrize(("phase", "pipeline"), [(Phase.COMPILE, True), (Phase.CONVERT, False)])
def test_tvm_compiles_as_where_the_failure_was_seen(phase: Phase, pipeline: bool) -> None:
    outcome = replace(outcome_of("tvm", "OnnxModel", Verdict.CRASH), phase=phase)
    assert ('get_pipeline("zero")' in script_of("tvm", "OnnxModel", outcome=outcome)) is pipeline


WRONG = Ending("AssertionError", assertion=True)


#: Compiled, its result is right and the gradient of its first input is not.
CUT = """import torch


def forward(x, n):
    return (x.detach() if torch.compiler.is_compiling() else x) * 2 + x * 0 + n
"""


@pytest.mark.compiler_inductor
@pytest.mark.parametrize("text", [CUT, CUT.replace("x.detach() if", "x if")])
def test_a_wrong_gradient_is_shown_and_no_right_one(text: str) -> None:
    given = (("x", X), ("n", Tensor.of(np.array(3))))
    case = replace(case_of("TorchProgram"), program=TorchProgram(text), inputs=given)
    outcome = outcome_of("inductor", "TorchProgram")
    mismatch = replace(outcome.evidence.mismatches[0], output="gradient.0")
    outcome = replace(
        outcome,
        configuration="backward=on torch_backend=aot_eager",
        evidence=Evidence(mismatches=(mismatch,)),
    )
    script = script_of("inductor", "TorchProgram", case, outcome)
    assert len([line for line in script.splitlines() if line]) <= MAX_LINES
    if "detach" in text:
        assert try_script(script, sys.executable, ending(outcome)) == BUG_SHOWN
    else:
        assert subprocess.run([sys.executable, "-c", script], check=False, timeout=120).returncode == 0


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_it_shows_a_wrong_result_and_no_right_one(backend: str) -> None:
    wrong, right = (script_of(backend, "OnnxModel", case_of("OnnxModel", want)) for want in (3.5, 3.0))
    assert try_script(wrong, sys.executable, WRONG) == BUG_SHOWN
    assert try_script(right, sys.executable, WRONG) != BUG_SHOWN


def test_a_crash_just_runs_the_model() -> None:
    outcome = outcome_of("onnxruntime", "OnnxModel", Verdict.CRASH, signal="SIGSEGV")
    script = script_of("onnxruntime", "OnnxModel", outcome=outcome)
    assert "# The process dies of SIGSEGV (run)." in script
    assert "assert" not in script
    assert ending(outcome) == Ending("SIGSEGV")


#: Models that IREE 3.13.0 does not compile, and what its API says.
UNCOMPILED = {
    "(float[3,2] x, bool[2] c) => (float[N,2] y) { y = Compress<axis=0>(x, c) }": Evidence(
        error="fuzzing.backends.iree.IreeError",
        message="'tensor.cast' op operand type 'tensor<?x1xi1>' and result type 'tensor<?xi1>' are cast "
        "incompatible",
    ),
    "(int64[1] x) => (int64[N] y) { y = Unique<sorted=0>(x) }": Evidence(signal="SIGSEGV"),
}


@pytest.mark.compiler_iree
@pytest.mark.parametrize("text", UNCOMPILED, ids=["message", "signal"])
def test_a_failure_is_told_as_the_tool_of_the_script_tells_it(text: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 11]> g {text}')
    case = replace(case_of("OnnxModel"), program=OnnxModel(model.SerializeToString()))
    crash = outcome_of("iree", "OnnxModel", Verdict.CRASH)
    summary = f"IreeError: {UNCOMPILED[text].message}"
    outcome = replace(crash, phase=Phase.COMPILE, evidence=UNCOMPILED[text], summary=summary)
    script = script_of("iree", "OnnxModel", case, outcome)
    assert "IreeError" not in script  # it is a class of ours
    assert "CompilerToolError" in script
    assert "The process dies" not in script, "a tool that it starts does"
    assert try_script(script, sys.executable, ending(outcome)) == BUG_SHOWN
    other = next(seen for seen in UNCOMPILED.values() if seen != outcome.evidence)
    assert try_script(script, sys.executable, ending(replace(outcome, evidence=other))) != BUG_SHOWN


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino", "tvm", "iree"])
@pytest.mark.parametrize("phase", [Phase.CONVERT, Phase.COMPILE])
def test_a_model_that_is_not_compiled_needs_no_inputs(backend: str, phase: Phase) -> None:
    outcome = replace(outcome_of(backend, "OnnxModel", Verdict.CRASH), phase=phase)
    given = (("a", Tensor("float8_e4m3fn", (2,), b"\0\0")), ("b", Tensor.of(np.ones(2, np.float32))))
    script = script_of(backend, "OnnxModel", replace(case_of("OnnxModel"), inputs=given), outcome)
    assert script, "an input without an expression in numpy is not needed"
    assert "np." not in script
    assert "numpy" not in script
    assert "got" not in script
    assert len(script.splitlines()) <= (20 if backend != "iree" else 25)


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_a_script_without_inputs_ends_well_where_the_compiler_is_mended(backend: str) -> None:
    outcome = replace(outcome_of(backend, "OnnxModel", Verdict.CRASH), phase=Phase.COMPILE)
    script = script_of(backend, "OnnxModel", outcome=outcome)
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=120).returncode == 0


def test_a_large_output_is_compared_where_it_is_wrong() -> None:
    large = np.random.default_rng(0).random((8, 8)).astype(np.float32)
    case = replace(case_of("OnnxModel"), expected=(("c", Tensor.of(large)),))
    outcome = outcome_of("onnxruntime", "OnnxModel")
    mismatch = replace(outcome.evidence.mismatches[0], worst=(2, 3))
    outcome = replace(outcome, evidence=Evidence(mismatches=(mismatch,)))
    script = script_of("onnxruntime", "OnnxModel", case, outcome)
    assert f"np.testing.assert_allclose(got[2, 3], np.array({large[2, 3]!s}, np.float32)" in script


#: TVM's messages have a traceback of their own.
_BEGIN = "Traceback (most recent call last):"
NESTED = f"{_BEGIN}\n  x\nFail: no\n{_BEGIN}\n  1: f\nCheck failed"


@pytest.mark.parametrize(
    ("ended", "returncode", "stderr", "shown"),
    [
        (Ending("SIGSEGV"), -11, "", True),
        (Ending("SIGSEGV"), -6, "", False),
        (Ending("Fail"), 1, "Traceback:\n  x\nonnxruntime.capi.Fail: no\n", True),
        (Ending("Fail"), 1, "Traceback:\n  x\nImportError: Fail\n", False),
        (Ending("Fail", ("Check", "failed")), 1, NESTED, True),
        (Ending("Fail", ("failed", "Check")), 1, NESTED, False),
        (Ending("AssertionError"), 0, "AssertionError: no\n", False),
    ],
)
def test_what_counts_as_shown(ended: Ending, returncode: int, stderr: str, shown: bool) -> None:
    assert shows(ended, "pass", returncode, stderr) is shown


@pytest.mark.compiler_onnxruntime
def test_a_keras_program_is_exported_with_the_shapes_of_its_inputs(tmp_path: Path) -> None:
    """Keras' own export gives a scalar an axis, so a right result would count as wrong."""
    program = KerasLayer("keras.ops.absolute", (), (TensorArg("x", dtype="float32", shape=()),))
    given = (("x", Tensor.of(np.array(-2, np.float32))),)
    script = script_of(
        "onnxruntime", "KerasLayer", replace(case_of("KerasLayer"), program=program, inputs=given)
    )
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, check=False, timeout=120, capture_output=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr.decode()[-800:]
