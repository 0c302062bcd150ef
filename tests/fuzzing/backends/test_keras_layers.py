"""Keras layers on eager Keras: one worker for all cases, natively and in double precision; and as ONNX."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from fuzzing.backends import reference_backend
from fuzzing.cases import Corpus, KerasLayer, NewObject, Provenance, Tensor, TensorArg, TestCase
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution

pytestmark = pytest.mark.compiler_keras_eager


def given(name: str, *shape: int, dtype: str = "float32") -> TensorArg:
    return TensorArg(name, dtype=dtype, shape=shape)


def case(layer: KerasLayer) -> TestCase:
    """With inputs that are small, signed and not round."""
    inputs = []
    for tensor in layer.tensors:
        assert tensor.shape is not None
        size = int(np.prod(tensor.shape, dtype=int))
        array = np.linspace(-1, 1.5, size).reshape(tensor.shape)
        array = array * 3 if tensor.dtype == "int32" else array
        inputs.append((tensor.name, Tensor.of(array.astype(tensor.dtype), tensor.dtype)))
    return TestCase(layer, tuple(inputs), Provenance("tests", "", "", "", ""))


def layer(name: str, *inputs: Any, call: tuple[tuple[str, Any], ...] = (), **kwargs: Any) -> TestCase:
    return case(KerasLayer(name, tuple(kwargs.items()), inputs, call))


CASES = {
    "dense": layer("keras.layers.Dense", given("x", 2, 3), units=4, activation="tanh"),
    "conv": layer("keras.layers.Conv2D", given("x", 2, 5, 5, 3), filters=2, kernel_size=(3, 3)),
    "norm": layer("keras.layers.BatchNormalization", given("x", 2, 4)),
    "merge": layer("keras.layers.Concatenate", [given("x", 2, 3), given("y", 2, 3)], axis=0),
    "wrapped": layer(
        "keras.layers.Bidirectional", given("x", 2, 3, 4), layer=NewObject("keras.layers.GRU", (3,))
    ),
    "attention": layer(
        "keras.layers.MultiHeadAttention",
        given("q", 2, 3, 4),
        given("v", 2, 5, 4),
        call=(("use_causal_mask", True),),
        num_heads=2,
        key_dim=3,
    ),
    "activation": layer("keras.activations.relu", given("x", 2, 3), max_value=0.5),
    "operation": layer("keras.ops.add", given("x", 2, 3), 1 / 3),
    "two outputs": layer("keras.ops.split", given("x", 4, 3), 2),
    "cast": layer("keras.ops.cast", given("x", 2, 3), "float16"),
    "integers": layer("keras.ops.floor_divide", given("x", 2, 3, dtype="int32"), 2),
    "dropout": layer("keras.layers.Dropout", given("x", 2, 3), rate=0.5),
    "half": layer("keras.layers.Dense", given("x", 2, 3, dtype="float16"), units=2, dtype="float16"),
    "wrong": layer("keras.layers.Dense", given("x", 2, 3), units=-1),
}
WORKING = [name for name in CASES if name != "wrong"]


def run(options: dict[str, Any]) -> dict[str, Execution]:
    supervisor: Supervisor[str] = Supervisor(WorkerCommand(sys.executable, "keras_eager", options=options))
    return dict(supervisor.run(iter(CASES.items())))


@pytest.fixture(scope="module")
def native() -> dict[str, Execution]:
    return run({})


@pytest.fixture(scope="module")
def wide() -> dict[str, Execution]:
    return run({"precision": "float64"})


def arrays(execution: Execution) -> list[np.ndarray[Any, Any]]:
    assert execution.ending == "returned", f"{execution.error}: {execution.message}"
    return [value.array() for _, value in execution.outputs if isinstance(value, Tensor)]


def array(name: str) -> np.ndarray[Any, Any]:
    value = CASES[name].values()[0][1]
    assert isinstance(value, Tensor)
    return value.array()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("merge", np.concatenate([array("merge")] * 2)),
        ("activation", np.clip(array("activation"), 0, np.float32(0.5))),
        ("operation", array("operation") + np.float32(1 / 3)),
        ("cast", array("cast").astype(np.float16)),
        ("integers", array("integers") // 2),
        ("dropout", array("dropout")),  # a model is called for inference
    ],
)
def test_a_layer_gives_what_numpy_gives(name: str, wanted: Any, native: dict[str, Execution]) -> None:
    np.testing.assert_array_equal(arrays(native[name])[0], wanted, strict=True)


def test_a_layer_with_several_outputs_gives_them_in_order(native: dict[str, Execution]) -> None:
    x = array("two outputs")
    assert [found.tolist() for found in arrays(native["two outputs"])] == [x[:2].tolist(), x[2:].tolist()]
    assert [name for name, _ in native["two outputs"].outputs] == ["0", "1"]


def test_weights_are_drawn_from_the_seed(native: dict[str, Execution]) -> None:
    """Dense by hand: its kernel, of shape (3, 4), and its bias are weights 0 and 1."""
    source = CASES["dense"].program.source()  # type: ignore[attr-defined]
    space: dict[str, Any] = {}
    exec(source[source.index("def draw") : source.index("def fill")], {"np": np} | _hashing(), space)
    kernel = (space["draw"]("0:kernel", (3, 4), 0) - 0.5).astype(np.float32)
    bias = (space["draw"]("1:bias", (4,), 0) - 0.5).astype(np.float32)
    wanted = np.tanh(array("dense") @ kernel + bias)
    np.testing.assert_allclose(arrays(native["dense"])[0], wanted, rtol=1e-5)


def _hashing() -> dict[str, Any]:
    import hashlib

    return {"hashlib": hashlib}


@pytest.mark.parametrize("name", WORKING)
def test_double_precision_computes_the_same_more_exactly(
    name: str, native: dict[str, Execution], wide: dict[str, Execution]
) -> None:
    tolerance = 2e-3 if name in ("half", "cast") else 1e-5
    for narrow, exact in zip(arrays(native[name]), arrays(wide[name]), strict=True):
        assert exact.dtype == (np.float64 if narrow.dtype.kind == "f" else narrow.dtype)
        np.testing.assert_allclose(exact, narrow, rtol=tolerance, atol=tolerance)


def test_double_precision_is_not_rounded_on_the_way(wide: dict[str, Execution]) -> None:
    [found] = arrays(wide["operation"])
    np.testing.assert_allclose(found, array("operation").astype(np.float64) + 1 / 3, rtol=1e-15)


def test_an_error_of_the_library_is_its_own(native: dict[str, Execution]) -> None:
    assert (native["wrong"].ending, native["wrong"].error) == ("raised", "ValueError")
    assert "units" in native["wrong"].message


def test_keras_judges_its_own_layers() -> None:
    assert reference_backend("KerasLayer").name == "keras_eager"


_EXPORT = """
import base64, json, sys
from pathlib import Path
from fuzzing.backends.base import Unsupported
from fuzzing.backends.shared import keras_models
from fuzzing.cases import Corpus
said = {}
for case in Corpus(sys.argv[1]):
    try:
        model = keras_models.to_onnx(keras_models.build(case.program), list(case.values()))
        said[case.id] = base64.b64encode(model).decode()
    except Unsupported as error:
        said[case.id] = f"!{error}"
Path(sys.argv[2]).write_text(json.dumps(said))
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each case's ONNX model in base64, or "!" and why there is none; Keras needs a process of its own."""
    corpus, answer = Corpus(tmp_path_factory.mktemp("corpus")), tmp_path_factory.mktemp("said") / "said.json"
    for one in EXPORTED.values():
        corpus.add(one)
    subprocess.run(
        [sys.executable, "-c", _EXPORT, str(corpus.root), str(answer)],
        env={"KERAS_BACKEND": "torch", "PATH": "/usr/bin:/bin", "HOME": str(corpus.root)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    output = json.loads(answer.read_text())
    return {name: output[one.id] for name, one in EXPORTED.items()}


ONNX = ["dense", "conv", "merge", "wrapped", "two outputs"]
EXPORTED = {name: CASES[name] for name in ONNX} | {"unexportable": layer("keras.ops.svd", given("x", 3, 3))}


@pytest.mark.parametrize("name", ONNX)
def test_a_layer_becomes_onnx(name: str, exported: dict[str, str], native: dict[str, Execution]) -> None:
    model = onnx.load_from_string(base64.b64decode(exported[name]))
    onnx.checker.check_model(model)
    assert [item.name for item in model.graph.input] == [tensor for tensor, _ in CASES[name].inputs]
    feeds = {key: value.array() for key, value in CASES[name].values() if isinstance(value, Tensor)}
    found = ReferenceEvaluator(model).run(None, feeds)
    for got, want in zip(found, arrays(native[name]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_what_keras_cannot_export_is_unsupported(exported: dict[str, str]) -> None:
    assert exported["unexportable"].startswith("!Keras cannot export it: ")
