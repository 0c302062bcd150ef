"""The roads of torch and Keras programs into OpenVINO, TVM and ONNX Runtime, held against their libraries."""

from __future__ import annotations

from functools import cache

import pytest

from fuzzing import backends
from fuzzing.cases import TensorArg, TorchCall, TorchProgram
from fuzzing.execute.execution import Execution
from tests.fuzzing.backends.engines_kit import arrays, floats, keras_case, program_case, run_all, torch_cases

TORCH_ROADS = [
    pytest.param("openvino", {}, marks=pytest.mark.compiler_openvino),
    pytest.param("openvino", {"capture": "traced", "shapes": "static"}, marks=pytest.mark.compiler_openvino),
    pytest.param("tvm", {}, marks=pytest.mark.compiler_tvm),
]
KERAS_ROADS = [
    pytest.param(name, marks=getattr(pytest.mark, f"compiler_{name}"))
    for name in ("onnxruntime", "openvino", "tvm")
]
REFUSED = {
    "a number": program_case(TorchProgram("def forward(x):\n    return x + 1, 3\n"), x=floats(2)),
    "complex": program_case(TorchCall("torch.complex", (TensorArg("x"), TensorArg("x"))), x=floats(2)),
    "untraceable": program_case(
        TorchProgram("def forward(x):\n    return x if x.sum().item() > 1 else open('/nowhere')\n"),
        x=floats(1),
    ),
}


@cache
def ran(backend: str, options: tuple[tuple[str, str], ...]) -> dict[str, Execution]:
    """What becomes of all programs that the backend takes on this road, in one worker."""
    kinds = backends.get(backend).kinds
    every = torch_cases() | REFUSED | {"dense": keras_case()}
    return run_all(
        backend, {name: case for name, case in every.items() if case.program.kind in kinds}, **dict(options)
    )


@pytest.mark.parametrize(("backend", "options"), TORCH_ROADS)
def test_torch_programs_give_what_torch_gives(backend: str, options: dict[str, str]) -> None:
    found, want = ran(backend, tuple(options.items())), ran("torch_eager", ())
    names = [
        name for name in torch_cases() if not (name == "two outputs" and options.get("capture") == "traced")
    ]
    assert names
    for name in names:
        given = [array.tolist() for array in arrays(found[name])]
        assert given == [array.tolist() for array in arrays(want[name])], name


@pytest.mark.parametrize(("backend", "options"), TORCH_ROADS)
def test_what_torch_cannot_capture_or_a_compiler_cannot_express_is_no_crash(
    backend: str, options: dict[str, str]
) -> None:
    found = ran(backend, tuple(options.items()))
    assert found["untraceable"].error == "Unsupported"
    assert found["a number"].error == "Unsupported"
    if backend == "openvino":
        assert (found["complex"].error, found["complex"].message) == (
            "Unsupported",
            "OpenVINO gives no complex tensors",
        )


@pytest.mark.parametrize("backend", KERAS_ROADS)
def test_keras_programs_give_what_keras_gives(backend: str) -> None:
    [want], [got] = arrays(ran("keras_eager", ())["dense"]), arrays(ran(backend, ())["dense"])
    assert got.shape == want.shape
    assert abs(got - want).max() < 1e-5
