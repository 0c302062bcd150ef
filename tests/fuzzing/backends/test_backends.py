"""What every backend must do, on the real compilers, through the real worker."""

import importlib.util
import re
import sys
from typing import Any

import numpy as np
import onnx.parser
import pytest

from fuzzing import backends
from fuzzing.cases import OnnxModel, Provenance, Sequence, Tensor, TestCase
from fuzzing.cases.values import Value
from fuzzing.errors import UnknownNameError
from fuzzing.execute.execution import Execution
from fuzzing.execute.process import Command
from fuzzing.execute.supervisor import Supervisor
from fuzzing.outcomes import Phase

COMPILERS = [
    pytest.param(name, marks=getattr(pytest.mark, f"compiler_{name}")) for name in ("onnxruntime", "openvino")
]
ALL = [*COMPILERS, "onnx_reference"]
TF_IDF = (
    "max_gram_length = 1, max_skip_count = 0, min_gram_length = 1, "
    'mode = "TF", ngram_counts = [0], ngram_indexes = [0], pool_int64s = [1]'
)
BF16 = np.array([0x3F80, 0x4000, 0xC0A0], np.uint16)  # 1, 2, -5: the upper halves of their float32


def run(backend: str, text: str, inputs: dict[str, Value], **options: Any) -> Execution:
    if importlib.util.find_spec(backends.get(backend).import_name) is None:
        pytest.skip(f"{backend} is not installed here")
    program = OnnxModel(onnx.parser.parse_model(text).SerializeToString())
    case = TestCase(program, tuple(inputs.items()), Provenance("tests", "", "", "", ""))
    supervisor: Supervisor[None] = Supervisor(Command(sys.executable, backend, options=options))
    [(_, execution)] = supervisor.run([(None, case)])
    return execution


def model(signature: str, body: str, opset: int = 17) -> str:
    return f'<ir_version: 8, opset_import: ["" : {opset}]> agraph {signature} {{ {body} }}'


def output(execution: Execution) -> Tensor:
    assert execution.ending == "returned", f"{execution.error}: {execution.message}"
    [(_, value)] = execution.outputs
    assert isinstance(value, Tensor)
    return value


def reason(backend: str, execution: Execution) -> str | None:
    """Why the backend's own table calls this exception unsupported, None if it does not."""
    for pattern in backends.get(backend).unsupported:
        found = re.search(pattern.message, execution.message)
        if found and re.search(pattern.error, execution.error):
            return found.expand(pattern.why)
    return None


@pytest.mark.parametrize("backend", ALL)
def test_outputs_are_right_and_every_phase_is_timed(backend: str) -> None:
    given: dict[str, Value] = {
        "x": Tensor.of(np.array([[1, 2, 3]], np.float32)),
        "y": Tensor.of(np.array([[10], [20]], np.float32)),
    }
    execution = run(backend, model("(float[1,3] x, float[2,1] y) => (float[2,3] z)", "z = Add(x, y)"), given)
    assert output(execution) == Tensor.of(np.array([[11, 12, 13], [21, 22, 23]], np.float32))
    assert execution.outputs[0][0] == "z"
    assert list(execution.durations) == ["convert", "compile", "run"]
    assert all(seconds >= 0 for seconds in execution.durations.values())


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float64"])
def test_element_types_survive(backend: str, dtype: str) -> None:
    name = {"float64": "double"}.get(dtype, dtype)
    array = np.array([0, 1, 1, 0]).astype(dtype)
    text = model(
        f"({name}[4] x) => ({name}[2,2] y)", "s = Constant <value = int64[2] {2, 2}> () y = Reshape(x, s)"
    )
    assert output(run(backend, text, {"x": Tensor.of(array)})) == Tensor.of(array.reshape(2, 2))


@pytest.mark.parametrize("backend", ALL)
def test_bfloat16_travels_as_raw_bits(backend: str) -> None:
    text = model(
        "(bfloat16[3] x) => (bfloat16[3,1] y)", "s = Constant <value = int64[2] {3, 1}> () y = Reshape(x, s)"
    )
    found = output(run(backend, text, {"x": Tensor.of(BF16, "bfloat16")}))
    assert (found.dtype, found.shape, found.data) == ("bfloat16", (3, 1), BF16.tobytes())


@pytest.mark.parametrize("backend", ALL)
def test_bfloat16_becomes_float32(backend: str) -> None:
    text = model("(bfloat16[3] x) => (float[3] y)", "y = Cast <to = 1> (x)")
    found = output(run(backend, text, {"x": Tensor.of(BF16, "bfloat16")}))
    assert found == Tensor.of(np.array([1, 2, -5], np.float32))


@pytest.mark.parametrize("backend", ALL)
def test_scalars_and_empty_tensors_keep_their_shape(backend: str) -> None:
    scalar = run(backend, model("(float x) => (float y)", "y = Neg(x)"), {"x": Tensor.of(np.float32(2))})
    assert output(scalar) == Tensor.of(np.float32(-2))
    empty = Tensor.of(np.empty((0, 3), np.float32))
    found = run(backend, model("(float[N,3] x) => (float[N,3] y)", "y = Neg(x)"), {"x": empty})
    assert output(found) == empty


@pytest.mark.parametrize("backend", ALL)
def test_inputs_are_matched_by_name_and_an_unused_one_does_no_harm(backend: str) -> None:
    given: dict[str, Value] = {
        "unused": Tensor.of(np.zeros(5, np.float32)),
        "x": Tensor.of(np.array([7], np.float32)),
    }
    text = model("(float[5] unused, float[1] x) => (float[1] y)", "y = Identity(x)")
    assert output(run(backend, text, given)) == given["x"]


@pytest.mark.parametrize("backend", ["onnx_reference", COMPILERS[0]])
def test_sequences_go_in_and_come_out(backend: str) -> None:
    items = Sequence((Tensor.of(np.zeros(2, np.float32)), Tensor.of(np.ones(2, np.float32))))
    text = model(
        "(seq(float[2]) s) => (seq(float[2]) t)",
        "i = Constant <value = int64 {0}> () t = SequenceErase(s, i)",
    )
    execution = run(backend, text, {"s": items})
    assert execution.outputs == (("t", Sequence(items.items[1:])),)


@pytest.mark.compiler_openvino
def test_openvino_says_that_it_takes_no_sequences() -> None:
    items = Sequence((Tensor.of(np.zeros(2, np.float32)),))
    text = model("(seq(float[2]) s) => (int64 n)", "n = SequenceLength(s)")
    execution = run("openvino", text, {"s": items})
    assert execution.ending == "raised"


@pytest.mark.parametrize(
    ("backend", "text", "why"),
    [
        pytest.param(
            "openvino",
            model("(float[3] x) => (float[3] y)", f"y = TfIdfVectorizer <{TF_IDF}> (x)"),
            "no TfIdfVectorizer",
            marks=pytest.mark.compiler_openvino,
        ),
        pytest.param(
            "onnxruntime",
            model("(bfloat16[3] x) => (bfloat16[3] y)", "y = Acosh(x)", opset=22),
            "no kernel for Acosh|Acosh does not take",
            marks=pytest.mark.compiler_onnxruntime,
        ),
    ],
)
def test_what_a_compiler_lacks_is_recognised(backend: str, text: str, why: str) -> None:
    x = Tensor.of(BF16, "bfloat16") if "bfloat16" in text else Tensor.of(np.ones(3, np.float32))
    execution = run(backend, text, {"x": x})
    assert execution.ending == "raised"
    assert re.match(why, reason(backend, execution) or "not recognised")


@pytest.mark.parametrize("backend", COMPILERS)
def test_a_real_complaint_is_not_taken_for_a_missing_feature(backend: str) -> None:
    text = model("(float[2,3] x, float[2,3] y) => (float[2,2] z)", "z = MatMul(x, y)")
    execution = run(backend, text, {name: Tensor.of(np.ones((2, 3), np.float32)) for name in "xy"})
    assert execution.ending == "raised"
    assert execution.phase in (Phase.CONVERT, Phase.COMPILE)
    assert reason(backend, execution) is None


@pytest.mark.compiler_onnxruntime
@pytest.mark.parametrize("level", ["disabled", "basic", "all"])
def test_onnxruntime_takes_an_optimisation_level(level: str) -> None:
    text = model("(float[1] x) => (float[1] y)", "a = Identity(x) y = Neg(a)")
    found = output(run("onnxruntime", text, {"x": Tensor.of(np.ones(1, np.float32))}, optimization=level))
    assert found == Tensor.of(-np.ones(1, np.float32))


def test_a_file_of_ones_own_is_a_backend_too(tmp_path: Any) -> None:
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
    with pytest.raises(UnknownNameError, match=r"there are .*onnx_reference, onnxruntime, openvino"):
        backends.get("glow")


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ("2023.3.0", ["openvino==2023.3.0", "numpy<2"]),
        ("2024.0.0", ["openvino==2024.0.0", "numpy<2"]),
        ("2024.1.0", ["openvino==2024.1.0"]),
    ],
)
def test_old_openvino_asks_for_old_numpy(version: str, wanted: list[str]) -> None:
    assert backends.get("openvino").requirements(version) == wanted


@pytest.mark.compiler_openvino
def test_openvino_feeds_an_input_whose_tensor_took_the_name_of_an_output() -> None:
    x = Tensor.of(np.arange(3, dtype=np.float32))
    found = run("openvino", model("(float[3] x) => (float[3] y)", "y = Dropout(x)"), {"x": x})
    assert output(found) == x
