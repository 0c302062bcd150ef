"""What every backend must do with ONNX models, on the real compilers, all cases of one in one worker."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fuzzing import backends
from fuzzing.cases import Sequence, Tensor, TestCase, Value
from fuzzing.errors import UnknownNameError
from fuzzing.execution import Execution
from fuzzing.outcomes import Phase
from tests.fuzzing.backends.backend_kit import TRAINING, arrays, floats, onnx_case, reason, run_all

NAMES = ("iree", "onnx_reference", "onnxruntime", "openvino", "tinygrad", "tvm")
ALL = [pytest.param(name, marks=getattr(pytest.mark, f"compiler_{name}")) for name in NAMES]
COMPILERS = [one for name, one in zip(NAMES, ALL, strict=True) if name != "onnx_reference"]
SEQUENTIAL = [one for name, one in zip(NAMES, ALL, strict=True) if name in ("onnx_reference", "onnxruntime")]
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float64")
BF16 = np.array([0x3F80, 0x4000, 0xC0A0], np.uint16)  # 1, 2, -5: the upper halves of their float32
ITEMS = Sequence((Tensor.of(np.zeros(2, np.float32)), Tensor.of(np.ones(2, np.float32))))


def _reshaping(dtype: str, count: int, body: str) -> TestCase:
    array = np.array([0, 1, 1, 0]).astype(dtype)
    name = {"float64": "double"}.get(dtype, dtype)
    return onnx_case(f"({name}[{count}] x) => ({name}[2,2] y)", body, x=Tensor.of(array))


@cache
def cases() -> dict[str, TestCase]:
    """Each law's case by name."""
    reshape = "s = Constant <value = int64[2] {2, 2}> () y = Reshape(x, s)"
    bf16 = Tensor.of(BF16, "bfloat16")
    found = {f"reshape {dtype}": _reshaping(dtype, 4, reshape) for dtype in DTYPES}
    row, column = Tensor.of(np.array([[1, 2, 3]], np.float32)), Tensor.of(np.array([[10], [20]], np.float32))
    square = {name: Tensor.of(np.ones((2, 3), np.float32)) for name in "xy"}
    return found | {
        "add": onnx_case("(float[1,3] x, float[2,1] y) => (float[2,3] z)", "z = Add(x, y)", x=row, y=column),
        "reshape bfloat16": onnx_case(
            "(bfloat16[3] x) => (bfloat16[3,1] y)",
            "s = Constant <value = int64[2] {3, 1}> () y = Reshape(x, s)",
            x=bf16,
        ),
        "bfloat16 to float32": onnx_case("(bfloat16[3] x) => (float[3] y)", "y = Cast <to = 1> (x)", x=bf16),
        "scalar": onnx_case("(float x) => (float y)", "y = Neg(x)", x=Tensor.of(np.float32(2))),
        "empty": onnx_case("(float[N,3] x) => (float[N,3] y)", "y = Neg(x)", x=floats(0, 3)),
        "unused input": onnx_case(
            "(float[5] unused, float[1] x) => (float[1] y)",
            "y = Identity(x)",
            unused=floats(5),
            x=Tensor.of(np.array([7], np.float32)),
        ),
        "two outputs": onnx_case(
            "(float[2] x) => (float[2] b, float[2] a)", "a = Neg(x) b = Abs(x)", x=floats(2)
        ),
        "computed twice": onnx_case("(float[2] x) => (float[2] y)", "a = Neg(x) y = Neg(a)", x=floats(2)),
        "float32 pool": onnx_case(
            "(float[1,1,3] x) => (float[1,1,2] y)", "y = MaxPool <kernel_shape = [2]> (x)", x=floats(1, 1, 3)
        ),
        "float64 sum": onnx_case(
            "(double[2] x) => (double[2] y)",
            "y = Add(x, x)",
            x=Tensor.of(np.array([1 + 2.0**-40, -3.0])),
        ),
        "missing": onnx_case(
            "(float r, int64 t, float[2] x, float[2] g, float[2] v) => (float[2] y, float[2] w)",
            f"y, w = {TRAINING}.Momentum <alpha = 0.9, beta = 1.0, "
            'mode = "standard", norm_coefficient = 0.0> (r, t, x, g, v)',
            r=floats(),
            t=Tensor.of(np.int64(1)),
            **dict.fromkeys("xgv", floats(2)),
        ),
        "wrong shapes": onnx_case(
            "(float[2,3] x, float[2,3] y) => (float[2,2] z)", "z = MatMul(x, y)", **square
        ),
    }


EXPECTED: dict[str, Tensor] = {
    "add": Tensor.of(np.array([[11, 12, 13], [21, 22, 23]], np.float32)),
    "reshape bfloat16": Tensor("bfloat16", (3, 1), BF16.tobytes()),
    "bfloat16 to float32": Tensor.of(np.array([1, 2, -5], np.float32)),
    "scalar": Tensor.of(np.float32(-2)),
    "empty": floats(0, 3),
    "unused input": Tensor.of(np.array([7], np.float32)),
    "computed twice": floats(2),
    "float32 pool": Tensor.of(np.array([[[1, 2]]], np.float32)),
} | {f"reshape {dtype}": Tensor.of(np.array([0, 1, 1, 0]).astype(dtype).reshape(2, 2)) for dtype in DTYPES}


@cache
def ran(backend: str) -> dict[str, Execution]:
    """What `backend` makes of all cases, in one worker."""
    return run_all(backend, cases())


def only(execution: Execution) -> Value:
    assert execution.ending == "returned", f"{execution.error}: {execution.message}"
    [(_, value)] = execution.outputs
    return value


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_outputs_have_the_right_type_shape_and_elements(backend: str, name: str) -> None:
    execution = ran(backend)[name]
    if "this machine's clang" in (reason(backend, execution.error, execution.message) or ""):
        pytest.skip("this machine's clang does not compute with bfloat16")
    assert only(ran(backend)[name]) == EXPECTED[name]


@pytest.mark.parametrize("backend", ALL)
def test_float64_is_computed_in_float64_but_by_openvino(backend: str) -> None:
    """OpenVINO's CPU plugin computes it in float32, whatever it is told, and rounds 2**-39 away."""
    [array] = arrays(ran(backend)["float64 sum"])
    assert array.dtype == np.float64
    assert array.tolist() == [2.0 if backend == "openvino" else 2 + 2.0**-39, -6.0]


@pytest.mark.parametrize("backend", ALL)
def test_every_phase_is_timed(backend: str) -> None:
    durations = ran(backend)["add"].durations
    assert list(durations) == ["convert", "compile", "run"]
    assert all(seconds >= 0 for seconds in durations.values())


@pytest.mark.parametrize("backend", ALL)
def test_outputs_keep_the_names_and_the_order_of_the_model(backend: str) -> None:
    execution = ran(backend)["two outputs"]
    assert [name for name, _ in execution.outputs] == ["b", "a"]
    assert [array.tolist() for array in arrays(execution)] == [[0, 1], [0, -1]]


@pytest.mark.parametrize("backend", COMPILERS)
def test_a_real_complaint_is_not_taken_for_a_missing_feature(backend: str) -> None:
    execution = ran(backend)["wrong shapes"]
    assert execution.ending == "raised"
    assert execution.phase in (Phase.CONVERT, Phase.COMPILE)
    assert reason(backend, execution.error, execution.message) is None


@pytest.mark.parametrize("backend", [one for one in COMPILERS if one.values[0] != "tinygrad"])
def test_a_missing_operator_is_said_to_be_missing_today(backend: str) -> None:
    """The words of the installed release, so that a change of them is noticed."""
    execution = ran(backend)["missing"]
    assert execution.ending == "raised"
    output = reason(backend, execution.error, execution.message)
    assert re.search("Momentum|no such operator", output or "not recognized"), execution.message


@pytest.mark.parametrize("backend", SEQUENTIAL)
def test_sequences_go_in_and_come_out(backend: str) -> None:
    erase = onnx_case(
        "(seq(float[2]) s) => (seq(float[2]) t)",
        "i = Constant <value = int64 {0}> () t = SequenceErase(s, i)",
        s=ITEMS,
    )
    assert run_all(backend, {"erase": erase})["erase"].outputs == (("t", Sequence(ITEMS.items[1:])),)


@pytest.mark.parametrize("backend", ALL)
def test_every_option_has_a_default_and_every_rung_is_allowed(backend: str) -> None:
    cls = backends.get(backend)
    usual = cls.resolve_options({})
    for level in cls.ablation:
        assert cls.resolve_options(level.options) == usual | level.options
    if cls.ablation:  # the last rung is at least what a plain run uses
        assert {**usual, **cls.ablation[-1].options}.keys() == usual.keys()
        assert len({level.component for level in cls.ablation}) == len(cls.ablation)


_LEVELS = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from fuzzing import backends
from fuzzing.cases import OnnxModel, Tensor
name, model, rungs = sys.argv[2], bytes.fromhex(sys.argv[3]), json.loads(sys.argv[4])
x = [("x", Tensor.of(np.arange(2, dtype=np.float32)))]
backend = backends.get(name)()
for options in [*rungs, *rungs[::-1]]:
    backend.load("CPU", options)
    outputs = backend.run(backend.compile(backend.convert(OnnxModel(model), x)), x)
    state = {"environment": str(os.environ)}
    for name_, value in vars(backend).items():
        plain = type(value) in (int, str, list, dict) or "Level" in str(value)
        state[name_] = str(value if plain else type(value))
    if "_target" in state:
        state["_target"] = str(backend._target)
    if "_options" in state:
        state["_options"] = str(backend._options.graph_optimization_level)
    if name == "tinygrad":
        state["_options"] = backend._tinygrad.helpers.NOOPT.value
    print(json.dumps([state, [value.array().tolist() for _, value in outputs]]))
"""


@pytest.mark.parametrize("backend", [one for one in COMPILERS if one.values[0] != "openvino"])
def test_each_rung_of_a_ladder_compiles_agrees_and_replaces_the_last(backend: str, tmp_path: Path) -> None:
    """All in one process, since importing a compiler takes longer than all of its rungs.

    What a backend holds depends on the options that it was loaded with last, and on none before: it says so
    by `reloadable`.
    """
    assert backends.get(backend).reloadable
    ablation_runs = [level.options for level in backends.get(backend).ablation]
    model = cases()["computed twice"].program.to_bytes().hex()
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-I", "-c", _LEVELS, root, backend, model, json.dumps(ablation_runs)],
        check=True,
        capture_output=True,
        text=True,
        env={"TVM_NUM_THREADS": "1", "PATH": os.environ["PATH"], "CACHEDB": str(tmp_path / "kernels.db")},
    )
    states, outputs = zip(*[json.loads(line) for line in done.stdout.splitlines()], strict=True)
    assert list(outputs) == [[[0.0, 1.0]]] * 2 * len(ablation_runs)
    assert states == states[::-1]
    assert len(set(map(str, states))) == len(ablation_runs)


def test_a_file_of_ones_own_is_a_backend_too(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from fuzzing.backends.base import Backend, register\n"
        "@register\nclass Mine(Backend):\n    name = 'mine'\n    package = import_name = 'numpy'\n"
    )
    assert backends.get(str(mine)).name == "mine"
    assert "mine" not in backends.names()
    with pytest.raises(UnknownNameError, match="no backend file"):
        backends.get(str(tmp_path / "other.py"))


def test_an_unknown_backend_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"there are: .*onnxruntime, openvino"):
        backends.get("glow")


def test_what_backends_share_is_no_backend() -> None:
    shared = importlib.util.find_spec("fuzzing.backends.shared.onnx_models")
    assert shared is not None
    assert not [name for name in backends.names() if name.startswith("_")]
