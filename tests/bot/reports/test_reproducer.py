"""Reproducers are judged by running them, each as a stranger would."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from bot.errors import InternalError
from bot.reports import reproducer
from bot.reports.campaign_view import ToolchainView
from fuzzing.cases import OnnxModel, Program, Provenance, Tensor, TestCase, Tolerance, Value
from fuzzing.cases.arguments import TensorArg
from fuzzing.cases.keras_layer import KerasLayer
from fuzzing.cases.torch_call import Init, TorchCall
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict

BUG_SHOWN, BUG_GONE, UNDECIDED = 1, 0, 2
TOOLCHAIN = ToolchainView(
    "openvino 2024.0.0", {"openvino": "2024.0.0", "numpy": "1.26.4"}, ("openvino==2024.0.0", "numpy<2")
)
BACKENDS = ["onnxruntime", "openvino"]


def model(operator: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any], **attributes: Any) -> bytes:
    node = helper.make_node(operator, list(inputs), list(outputs), **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()],
        [helper.make_tensor_value_info(name, *of) for name, of in outputs.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(made.SerializeToString())


def case_of(program: bytes, inputs: Mapping[str, Value], expected: Mapping[str, Value]) -> TestCase:
    origin = Provenance("onnx-node-tests", "test_it", "Add", "onnx", "1.23.2")
    return TestCase(OnnxModel(program), tuple(inputs.items()), origin, tuple(expected.items()))


def addition(want: float = 3.0, dtype: str = "float32") -> TestCase:
    shape = (helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [2])
    program = model("Add", {"a": shape, "b": shape}, {"c": shape})
    one, two = (Tensor.of(np.full(2, x, dtype)) for x in (1, 2))
    return case_of(program, {"a": one, "b": two}, {"c": Tensor.of(np.array([3.0, want], dtype))})


def outcome_of(
    verdict: Verdict, phase: Phase = Phase.RUN, backend: str = "onnxruntime", **seen: Any
) -> Outcome:
    return Outcome("0" * 64, backend, "t", "CPU", verdict, phase, "what happened", {}, Evidence(**seen))


def wrong(backend: str, output: str = "c", rtol: float = 1e-3, atol: float = 1e-7) -> Outcome:
    mismatch = Mismatch(output, "value", "differs", rtol=rtol, atol=atol)
    return outcome_of(Verdict.WRONG_RESULT, backend=backend, mismatches=(mismatch,))


def execute(
    folder: Path, case: TestCase, outcome: Outcome, path: Path | None = None, **options: Any
) -> tuple[int, str]:
    script = folder / "reproducer.py"
    script.write_text(reproducer.render(case, outcome, TOOLCHAIN, **options), encoding="utf-8")
    env = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=env, timeout=600)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wrong_result_shows_and_a_right_one_does_not(backend: str, tmp_path: Path) -> None:
    code, message = execute(tmp_path, addition(want=3.5), wrong(backend))
    assert code == BUG_SHOWN, message
    assert "THE BUG SHOWS: output c: 1 of 2 elements differ; the worst, at [1]: got 3.0, want 3.5" in message
    assert f"{backend} 20" in message or f"{backend} 1." in message
    code, message = execute(tmp_path, addition(), wrong(backend))
    assert code == BUG_GONE, message


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_bounds_are_those_of_the_oracle(backend: str, tmp_path: Path) -> None:
    assert execute(tmp_path, addition(3.000001), wrong(backend))[0] == BUG_GONE
    assert execute(tmp_path, addition(3.1), wrong(backend))[0] == BUG_SHOWN
    stated = replace(addition(3.1), tolerance=Tolerance(0.1, 0))
    assert execute(tmp_path, stated, wrong(backend, output="other"))[0] == BUG_GONE


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "bfloat16"])
def test_element_types(backend: str, dtype: str, tmp_path: Path) -> None:
    if dtype == "bfloat16":
        if backend == "onnxruntime":
            shape = (TensorProto.BFLOAT16, [2])
            program = model("Cast", {"a": shape}, {"c": (TensorProto.FLOAT, [2])}, to=TensorProto.FLOAT)
            given = Tensor.of(np.array([0x3F80, 0x4040], np.uint16), "bfloat16")  # 1 and 3
            want: Value = Tensor.of(np.array([1, 4], np.float32))
        else:
            shape = (TensorProto.BFLOAT16, [2])
            program = model("Neg", {"a": shape}, {"c": shape})
            given = Tensor.of(np.array([0x3F80, 0x4040], np.uint16), "bfloat16")
            want = Tensor.of(np.array([0xBF80, 0xC080], np.uint16), "bfloat16")  # -1 and -4
        case = case_of(program, {"a": given}, {"c": want})
    else:
        case = addition(4, dtype)
    code, message = execute(tmp_path, case, wrong(backend))
    assert code == BUG_SHOWN, message
    assert "1 of 2 elements differ; the worst, at [1]" in message


@pytest.mark.compiler_openvino
def test_a_scalar_of_a_type_that_numpy_lacks(tmp_path: Path) -> None:
    shape: Any = (TensorProto.BFLOAT16, [])
    given = Tensor.of(np.array(0x3F80, np.uint16), "bfloat16")  # 1, and as the wrong output -4
    program, want = (
        model("Neg", {"a": shape}, {"c": shape}),
        Tensor.of(np.array(0xC080, np.uint16), "bfloat16"),
    )
    code, message = execute(tmp_path, case_of(program, {"a": given}, {"c": want}), wrong("openvino"))
    assert code == BUG_SHOWN, message


@pytest.mark.compiler_onnxruntime
def test_memory_that_nothing_wrote_to_is_filled_at_the_second_try(tmp_path: Path) -> None:
    code, message = execute(tmp_path, addition(), wrong("onnxruntime"))
    script = (tmp_path / "reproducer.py").read_text()
    assert code == BUG_GONE, message
    unwritten = script.replace(
        "        say(faults=faults",
        """        if os.environ.get("MALLOC_PERTURB_"):
            faults.append("unwritten")
        say(faults=faults""",
    )
    (tmp_path / "reproducer.py").write_text(unwritten)
    done = subprocess.run(
        [sys.executable, tmp_path / "reproducer.py"], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, "THE BUG SHOWS: unwritten" in done.stdout) == (BUG_SHOWN, True)


#: apache-tvm 0.27 returns all three results of a BatchNormalization in a branch for the one output.
BRANCHES = """<ir_version: 8, opset_import: ["" : 15]>
g (float[1,1] x, bool c) => (float[1,1] y) <float[1] o = {1}, float[1] n = {0}> {
  y = If<then_branch: graph = b () => (float[1,1] p) { p = BatchNormalization(x, o, n, n, o) },
    else_branch: graph = b () => (float[1,1] q) { q = BatchNormalization(x, o, n, n, o) }>(c)
}"""


@pytest.mark.compiler_tvm
def test_a_sequence_for_a_tensor_is_a_difference(tmp_path: Path) -> None:
    one = Tensor.of(np.ones((1, 1), np.float32))
    given = {"x": one, "c": Tensor.of(np.array(True))}
    program = onnx.parser.parse_model(BRANCHES).SerializeToString()
    code, message = execute(tmp_path, case_of(program, given, {"y": one}), wrong("tvm", "y"))
    assert (code, "it is a sequence of 3 instead of a tensor" in message) == (BUG_SHOWN, True), message


@pytest.mark.parametrize("backend", BACKENDS)
def test_shapes_alone_are_compared_for_random_programs(backend: str, tmp_path: Path) -> None:
    case = replace(addition(want=9), comparison="shapes")
    assert execute(tmp_path, case, wrong(backend))[0] == BUG_GONE
    case = replace(case, expected=(("c", Tensor.of(np.zeros(3, np.float32))),))
    code, message = execute(tmp_path, case, wrong(backend))
    assert code == BUG_SHOWN
    assert "its shape is (2,) instead of (3,)" in message


#: onnxruntime 1.32's message, with the number of another release.
PROTOBUF_FAILS = (
    "[ONNXRuntimeError] : 6 : INVALID_PROTOBUF : Failed to load model because protobuf parsing failed."
)


def test_an_exception_shows_when_class_phase_and_words_are_the_same(tmp_path: Path) -> None:
    case = replace(addition(), program=OnnxModel(b"no model"))
    code, message = execute(tmp_path, case, outcome_of(Verdict.CRASH, Phase.COMPILE, error="InvalidProtobuf"))
    assert code == BUG_SHOWN, message
    assert "THE BUG SHOWS: InvalidProtobuf in compile" in message
    same = outcome_of(Verdict.CRASH, Phase.COMPILE, error="InvalidProtobuf", message=PROTOBUF_FAILS)
    assert execute(tmp_path, case, same)[0] == BUG_SHOWN
    other = outcome_of(Verdict.CRASH, Phase.COMPILE, error="InvalidProtobuf", message="Node 3 has no type")
    assert execute(tmp_path, case, other)[0] == UNDECIDED
    code, message = execute(tmp_path, case, outcome_of(Verdict.CRASH, Phase.RUN, error="Fail"))
    assert code == UNDECIDED
    assert "it fails in another way than reported" in message


def test_a_crash_that_is_gone(tmp_path: Path) -> None:
    crash = outcome_of(Verdict.CRASH, Phase.COMPILE, error="Fail")
    code, message = execute(tmp_path, addition(), crash)
    assert code == BUG_GONE
    assert "it runs to its end and every output is right" in message
    code, message = execute(tmp_path, addition(want=4), crash)
    assert code == UNDECIDED
    assert "it runs to its end now, but" in message


FAKE_COMPILER = """
import os, signal, time
__version__ = "0"
class SessionOptions: pass
class GraphOptimizationLevel: ORT_ENABLE_ALL = 99
class InferenceSession:
    def __init__(self, *args, **kwargs):
        {act}
"""


DIE = "os.kill(os.getpid(), signal.SIGSEGV)"
ALLOCATE_TOO_MUCH = "self.hoard = bytearray(b'x') * (1 << 28); signal.pause()"
OOM = Verdict.OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("act", "verdict", "seen", "code", "words"),
    [
        (DIE, Verdict.CRASH, {"signal": "SIGSEGV"}, BUG_SHOWN, "died of SIGSEGV in compile"),
        (DIE, Verdict.CRASH, {"error": "Fail"}, UNDECIDED, "not what was reported"),
        (DIE, Verdict.CRASH, {"signal": "SIGABRT"}, UNDECIDED, "not what was reported"),
        ("os._exit(3)", Verdict.CRASH, {}, BUG_SHOWN, "exit code 3 in compile"),
        ("signal.pause()", Verdict.HANG, {}, BUG_SHOWN, "still in compile after 0.5 s"),
        ("signal.pause()", Verdict.CRASH, {"error": "Fail"}, UNDECIDED, "still in compile"),
        ("raise MemoryError", OOM, {}, BUG_SHOWN, "ran out of memory in compile"),
        (ALLOCATE_TOO_MUCH, OOM, {}, BUG_SHOWN, "ran out of memory in compile"),
    ],
)
def test_processes_that_die_hang_or_hoard(
    act: str, verdict: Verdict, seen: dict[str, Any], code: int, words: str, tmp_path: Path
) -> None:
    (tmp_path / "onnxruntime.py").write_text(FAKE_COMPILER.format(act=act))
    limits = {"import": 60, "convert": 60, "compile": 0.5 if act == "signal.pause()" else 60, "run": 60}
    outcome = outcome_of(verdict, Phase.COMPILE, **seen)
    found, message = execute(tmp_path, addition(), outcome, tmp_path, limits=limits, memory=200 << 20)
    assert found == code, message
    assert words in message


def test_a_missing_compiler_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('not here')")
    code, message = execute(tmp_path, addition(), wrong("onnxruntime"), tmp_path)
    assert code == UNDECIDED
    assert "Is the compiler installed? pip install openvino==2024.0.0 'numpy<2'" in message


@pytest.mark.compiler_openvino
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of ONNX's own casts, as it builds its tests
def test_a_real_regression_of_openvino(tmp_path: Path) -> None:
    """Since 2024.6 read_model trips over a Split in the branch of an If that is never taken."""
    from fuzzing.migrate.onnx_node_tests import collect  # all: ONNX collects once in a process

    [found] = [case for case in collect() if case.name == "test_affine_grid_2d_expanded"]
    assert found.model is not None
    assert found.data_sets is not None
    names = [item.name for item in found.model.graph.input], [item.name for item in found.model.graph.output]
    given, want = found.data_sets[0]
    case = case_of(
        found.model.SerializeToString(),
        dict(zip(names[0], map(Tensor.of, given), strict=True)),
        dict(zip(names[1], map(Tensor.of, want), strict=True)),
    )
    outcome = outcome_of(Verdict.CRASH, Phase.CONVERT, "openvino", error="RuntimeError")
    code, message = execute(tmp_path, case, outcome)
    assert code == BUG_SHOWN, message
    assert "Conversion is failed for: Split" in message


def test_hostile_text_stays_a_comment(tmp_path: Path) -> None:
    hostile = 'x\n"""\nimport os; os._exit(77)\r\nos._exit(77)\x0cos._exit(77)\u2028os._exit(77)'
    case = addition(want=4)
    case = replace(case, provenance=replace(case.provenance, test=hostile, operator=hostile))
    outcome = replace(wrong("onnxruntime"), summary=hostile)
    assert execute(tmp_path, case, outcome)[0] == BUG_SHOWN


def test_what_accuses_nobody_has_no_reproducer() -> None:
    with pytest.raises(InternalError, match="pass is no bug to reproduce"):
        reproducer.render(addition(), outcome_of(Verdict.PASS), TOOLCHAIN)


def test_a_backend_without_a_template_is_told_how_to_replay() -> None:
    """Law 4: a new backend is one file; until it has templates its bugs are pages, not bugs of ours."""
    assert not reproducer.has_template("nocompiler", "onnx")
    seen = replace(wrong("nocompiler"), configuration="level=3 profile=isra")
    page = reproducer.render_replay_instructions(addition(), seen, TOOLCHAIN, "0123-case")
    assert (
        "    assay replay 0123-case --backend nocompiler --device CPU --option level=3 --profile isra\n"
        in page
    )
    assert "in\n0123-case" in page


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_the_tables_of_element_types_agree_with_onnx(backend: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(reproducer.render(addition(), wrong(backend), TOOLCHAIN))
    space = runpy.run_path(str(script))
    if backend == "onnxruntime":
        for name, number in space["ONNX_TYPES"].items():
            theirs = onnx.TensorProto.DataType.Name(number).lower().replace("_", "")
            assert name.replace("_", "").startswith(theirs)
    else:
        for bits, dtype in ((4, "int4"), (2, "uint2"), (8, "float8_e5m2")):
            data = np.arange(5, dtype=np.uint8) % (1 << min(bits, 3))
            packed = space["packed"](data, space["BITS"].get(dtype, 8))
            assert packed.size == -(-5 * bits // 8)
            if bits < 8:
                assert space["unpacked"](packed, bits, 5).tolist() == data.tolist()
        assert space["packed"](np.array([1, 2, 0xFF], np.uint8), 4).tolist() == [0x21, 0x0F]


X = Tensor.of(np.array([[1.0, -2.0], [3.0, 4.0]], np.float32))
#: Compiled or exported, this program is not what it is by itself: a planted wrong result.
PLANTED = """\
import torch


def forward(x):
    off = 0.5 if torch.compiler.is_compiling() else 0.0
    return {"a": torch.relu(x) + %s, "b": [x.sum(), None]}
"""


def of_program(program: Program, library: str = "torch") -> TestCase:
    return TestCase(program, (("x", X),), Provenance("here", "test_it", "relu", library, "1"))


KERAS = KerasLayer("keras.layers.Dense", (("units", 3),), (TensorArg("x", dtype="float32", shape=(2, 2)),))
CONVERSION_PATHS: list[tuple[str, TorchProgram | TorchCall | KerasLayer, int]] = [
    ("inductor", TorchProgram(PLANTED % "off"), BUG_SHOWN),
    ("openvino", TorchProgram(PLANTED % "off"), BUG_SHOWN),
    ("tvm", TorchCall("torch.nn.Linear", (TensorArg("x"),), init=Init((2, 3))), BUG_GONE),
    ("onnxruntime", KERAS, BUG_GONE),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "program", "ending"),
    [
        pytest.param(
            backend,
            program,
            ending,
            marks=getattr(pytest.mark, f"compiler_{backend}"),
            id=f"{backend}-{program.kind}-{ending}",
        )
        for backend, program, ending in CONVERSION_PATHS
    ],
)
def test_programs_are_compared_with_their_own_library(
    backend: str, program: TorchProgram | TorchCall | KerasLayer, ending: int, tmp_path: Path
) -> None:
    case = of_program(program, program.frontend)
    code, message = execute(tmp_path, case, wrong(backend))
    assert code == ending, message
    script = (tmp_path / "reproducer.py").read_text()
    assert program.source() in script, "the worker runs exactly this text"
    if ending == BUG_SHOWN:
        assert "output 0: 4 of 4 elements differ" in message
        assert "off by 0.5" in message


@pytest.mark.compiler_inductor
def test_gradients_are_compared_if_the_option_says_so(tmp_path: Path) -> None:
    """The program's result is right, its gradient is not."""
    text = PLANTED.split("    return")[0] + "    return x + off * (x - x.detach())\n"
    seen = replace(wrong("inductor"), configuration="torch_backend=eager backward=on")
    code, message = execute(tmp_path, of_program(TorchProgram(text)), seen)
    assert code == BUG_SHOWN, message
    assert "output 1: 4 of 4 elements differ" in message
    assert "output 0:" not in message


@pytest.mark.parametrize(
    "backend", ["iree", pytest.param("tinygrad", marks=pytest.mark.compiler_tinygrad), "tvm"]
)
def test_the_other_engines(backend: str, tmp_path: Path) -> None:
    code, message = execute(tmp_path, addition(want=3.5), wrong(backend))
    assert code == BUG_SHOWN, message


def test_outputs_that_no_source_ships_are_computed_by_onnx(tmp_path: Path) -> None:
    """The same model in the compiler and in ONNX's own evaluator."""
    code, message = execute(tmp_path, replace(addition(), expected=None), wrong("onnxruntime"))
    assert code == BUG_GONE, message
    assert "every output is right" in message


def test_options_and_profile_are_honored(tmp_path: Path) -> None:
    seen = replace(wrong("onnxruntime"), configuration="optimization=disabled profile=graph-fuzz")
    assert execute(tmp_path, addition(3.5), seen)[0] == BUG_SHOWN
    script = (tmp_path / "reproducer.py").read_text()
    assert "OPTIONS = {'optimization': 'disabled'}" in script
    assert "set to optimization=disabled profile=graph-fuzz" in script
    rough = replace(wrong("onnxruntime"), configuration="profile=isra-code")  # one decimal
    assert execute(tmp_path, addition(3.04), rough)[0] == BUG_GONE
    assert execute(tmp_path, addition(3.4), rough)[0] == BUG_SHOWN


def test_what_to_install_is_what_the_program_needs() -> None:
    tools = ToolchainView(
        "openvino 2026.4.1", {}, ("openvino==2026.4.1", "numpy==2.4.6", "torch==2.13.0", "keras==3.15.1")
    )
    assert reproducer.pip_command(tools, "openvino", "onnx") == "pip install openvino==2026.4.1 numpy==2.4.6"
    assert reproducer.pip_command(tools, "openvino", "torch").endswith("torch==2.13.0 packaging")
    assert reproducer.pip_command(tools, "openvino", "keras").endswith("keras==3.15.1 onnx")
    assert reproducer.pip_command(TOOLCHAIN, "openvino", "torch").endswith(" packaging torch")
    held = ToolchainView("openvino 2026.4.1", {}, ("openvino==2026.4.1", "onnx==1.23.2"))
    assert reproducer.pip_command(held, "openvino", "onnx", ("onnx",)).count("onnx") == 1


def test_how_to_get_the_toolchain_of_a_commit() -> None:
    sources = reproducer.checkout_commands("octo/tvm", "1" * 40, {"python/tvm": "tvm"})
    assert sources.startswith(
        f"git clone https://github.com/octo/tvm && cd tvm && git checkout {'1' * 40} && "
    )
    assert sources.endswith('"/tvm/')
    tools = ToolchainView("apache-tvm 0.26.0", {}, ("apache-tvm==0.26.0",), sources=sources)
    assert reproducer.pip_command(tools) == f"pip install apache-tvm==0.26.0 && {sources}"
    assert reproducer.checkout_commands("octo/tvm", "1" * 40, {}) == ""
    assert reproducer.checkout_commands("tvm", "2" * 40, {"a": "b"}).startswith("git checkout 2")
    torch = ToolchainView("torch 2.13.0", {}, ("torch==2.13.0", "numpy==2.4.6"))
    assert reproducer.pip_command(torch, "inductor", "torch") == "pip install torch==2.13.0 numpy==2.4.6"
