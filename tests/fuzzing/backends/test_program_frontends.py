"""The roads of torch and Keras programs into OpenVINO, TVM and ONNX Runtime, held against their libraries."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from fuzzing import backends
from fuzzing.backends.base import Unsupported
from fuzzing.backends.shared import torch_graphs, torch_programs
from fuzzing.cases import Dtype, Tensor, TensorArg, TorchCall, TorchProgram
from fuzzing.execution import Execution
from tests.fuzzing.backends.backend_kit import arrays, floats, keras_case, program_case, run_all, torch_cases

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
    "around": program_case(
        TorchCall("torch.as_strided", (TensorArg("x", strides=(2,)), (2,), (1,))), x=floats(2)
    ),
    "resized": program_case(TorchCall("torch.Tensor.resize_", (TensorArg("x"), (2, 2))), x=floats(2, 3)),
    "written": program_case(
        TorchProgram(
            "import torch\n\n\nclass Model(torch.nn.Module):\n"
            "    def forward(self, input):\n        return input.add_(1)\n"
        ),
        input=floats(2),
    ),
    "written call": program_case(TorchCall("torch.Tensor.add_", (TensorArg("input"), 1)), input=floats(2)),
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
    assert (found["around"].error, "an input that is not dense" in found["around"].message) == (
        "Unsupported",
        True,
    )
    if backend == "openvino":
        assert (found["complex"].error, found["complex"].message) == (
            "Unsupported",
            "OpenVINO gives no complex tensors",
        )


@pytest.mark.parametrize("backend", [pytest.param("openvino", marks=pytest.mark.compiler_openvino)])
def test_what_torch_itself_cannot_decompose_is_not_laid_at_the_compilers_door(backend: str) -> None:
    found = ran(backend, ())["resized"]  # torch 2.13 exports it, and fails to lower it
    assert found.error == "Unsupported"
    assert found.message.startswith("torch cannot decompose what it has exported: ")


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's own, of its own code
@pytest.mark.parametrize("backend", [pytest.param("openvino", marks=pytest.mark.compiler_openvino)])
def test_a_stage_that_fails_without_the_compiler_is_the_librarys(backend: str) -> None:
    found, case = ran(backend, ())["written"], REFUSED["written"]
    assert found.error == "Unsupported"
    assert found.message.startswith("torch cannot make a module of what it has exported: RuntimeError: ")
    graph = torch_graphs.capture(torch_programs.build(case.program), list(case.values()), "exported")
    with pytest.raises(Unsupported, match="Could not find input"):
        graph.run_decompositions({}).module()
    assert ran(backend, ())["written call"].ending == "returned"


@pytest.mark.parametrize("backend", [pytest.param("openvino", marks=pytest.mark.compiler_openvino)])
def test_no_case_follows_one_that_leaves_torch_unusable(backend: str) -> None:
    arguments = TensorArg("crow"), TensorArg("columns"), TensorArg("values")
    breaks = program_case(
        TorchCall("torch.sparse_bsc_tensor", arguments, (("dtype", Dtype("float64")),)),
        crow=Tensor.of(np.array([0, 1, 2])),
        columns=Tensor.of(np.array([0, 1])),
        values=Tensor.of(np.ones((2, 2, 2), np.int64)),
    )
    found = run_all(
        backend, {"before": torch_cases()["call"], "breaks": breaks, "after": torch_cases()["call"]}
    )
    assert "RecursionError" in found["breaks"].message  # in torch 2.13
    assert found["after"].ending == found["before"].ending == "returned"


@pytest.mark.parametrize("how", ["exported", "traced"])
def test_the_memory_of_a_dense_input_is_its_elements(how: str) -> None:
    call = TorchCall("torch.as_strided", (TensorArg("x"), (2,), (1,), 1))
    graph = torch_graphs.capture(torch_programs.build(call), [("x", floats(3))], how)
    assert "as_strided" in "".join(torch_graphs.operators(graph))


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's own, of its own code
def test_a_decomposition_that_the_importer_brings_along_is_its_own() -> None:
    import torch

    case = torch_cases()["call"]
    graph = torch_graphs.capture(torch_programs.build(case.program), list(case.values()), "exported")
    with pytest.raises(ZeroDivisionError):
        graph.run_decompositions({torch.ops.aten.add.Tensor: lambda x, y: 1 // 0})
    assert [node.op for node in graph.run_decompositions().graph.nodes].count("call_function") == 1


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's own, of its own code
@pytest.mark.parametrize(("module", "want"), [("compiler.tables", [1.0]), ("torch._decomp", [3.0])])
def test_the_library_alone_runs_its_own_decompositions_only(module: str, want: list[float]) -> None:
    import torch

    def wrong(x: Any) -> Any:
        return x * 3

    wrong.__module__ = module
    table = torch.export.default_decompositions()
    table[torch.ops.aten.trunc.default] = wrong
    call = TorchCall("torch.trunc", (TensorArg("x"),))
    [(_, found)] = torch_graphs.run_capture(
        call, [("x", floats(2))], "exported", lambda graph: graph.run_decompositions(table)
    )
    assert isinstance(found, Tensor)
    assert found.array().tolist() == [0.0, *want]


@pytest.mark.parametrize("backend", KERAS_ROADS)
def test_keras_programs_give_what_keras_gives(backend: str) -> None:
    [want], [got] = arrays(ran("keras_eager", ())["dense"]), arrays(ran(backend, ())["dense"])
    assert got.shape == want.shape
    assert abs(got - want).max() < 1e-5
