"""Torch programs on eager torch: one worker for all cases, natively and in double precision."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import numpy as np
import pytest

from fuzzing.backends import Unsupported, reference_backend
from fuzzing.backends.inductor import header_cache
from fuzzing.backends.inductor.header_cache import HeaderCache
from fuzzing.backends.shared import torch_programs
from fuzzing.cases import (
    Absent,
    Device,
    Dtype,
    Init,
    MemoryFormat,
    Name,
    NewObject,
    Program,
    Provenance,
    Sequence,
    Tensor,
    TensorArg,
    TestCase,
    TorchCall,
    TorchProgram,
    Value,
)
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution

pytestmark = pytest.mark.compiler_torch_eager

X = TensorArg("x")
F32 = np.float32
ROWS = Tensor.of(np.arange(6, dtype=F32).reshape(2, 3))
IMAGE = Tensor.of(np.linspace(-1, 1, 2 * 3 * 5 * 5, dtype=F32).reshape(2, 3, 5, 5))
THIRD = Tensor.of(np.array([1 / 3, 2 / 3], F32))
MIXED = """
import torch

def forward(x, y):
    empty, truth = torch.tensor([]), bool(x.sum() > 0)
    return {"a": x + 1, "b": (None, y, 7), "c": [truth, 1.5, 2 + 1j, "text", x.shape], "d": empty}
"""
WRITES = """
import torch

def forward(x):
    x.add_(1)
    return x, x.t(), x[0]
"""
MODEL = """
import torch

SEED = 3

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout())
        self.scale = 1 / 3

    def forward(self, x):
        return self.inner(x) * torch.tensor(self.scale)
"""
STRIDES = """
def forward(x):
    return x + 0, x.stride(), x.storage_offset()

def arrange(inputs):
    return [inputs["x"].t().contiguous().t()]
"""


def case(program: Program, **inputs: Value) -> TestCase:
    return TestCase(program, tuple(inputs.items()), Provenance("tests", "", "", "", ""))


def call(api: str, *args: Any, init: Init | None = None, **kwargs: Any) -> TorchCall:
    return TorchCall(api, args, tuple(kwargs.items()), init)


def laid(*strides: int, offset: int = 0) -> TensorArg:
    return TensorArg("x", strides, offset)


BF16 = Tensor.of(np.array([[0x3F80, 0x4000]], np.uint16), "bfloat16")
FP8 = Tensor.of(np.array([0x38, 0x40, 0xB8], np.uint8), "float8_e4m3fn")  # 1, 2, -1
CASES = {
    "literals": case(call("torch.add", X, 2, alpha=0.5), x=ROWS),
    "a list of tensors": case(call("torch.cat", [X, TensorArg("y"), X], dim=1), x=ROWS, y=ROWS),
    "text": case(call("torch.einsum", "ij,kj->ik", X, X), x=ROWS),
    "a method": case(call("torch.Tensor.view", X, 3, 2), x=ROWS),
    "a property": case(call("torch.Tensor.mT", X), x=ROWS),
    "a subscript": case(call("torch.Tensor.__getitem__", X, (..., slice(None, 2))), x=ROWS),
    "dtype and device": case(call("torch.full", (2,), 3, dtype=Dtype("int16"), device=Device("cpu"))),
    "memory format": case(call("torch.clone", X, memory_format=MemoryFormat("channels_last")), x=IMAGE),
    "in place": case(call("torch.Tensor.mul_", X, X), x=ROWS),
    "a convolution": case(call("torch.nn.Conv2d", X, init=Init((3, 2, 3))), x=IMAGE),
    "a norm with buffers": case(call("torch.nn.BatchNorm2d", X, init=Init((3,))), x=IMAGE),
    "a recurrence": case(call("torch.nn.LSTM", X, init=Init((3, 4), (("num_layers", 2),))), x=ROWS),
    "a layer in a layer": case(
        call(
            "torch.nn.TransformerEncoder",
            X,
            init=Init(
                (
                    NewObject(
                        "torch.nn.TransformerEncoderLayer",
                        (3, 1, 4),
                        (("activation", Name("torch.nn.functional.gelu")),),
                    ),
                    1,
                ),
                (("enable_nested_tensor", False),),
            ),
        ),
        x=ROWS,
    ),
    "transposed": case(call("torch.Tensor.stride", laid(1, 2)), x=ROWS),
    "with an offset": case(call("torch.Tensor.storage_offset", laid(3, 1, offset=4)), x=ROWS),
    "expanded": case(
        call("torch.Tensor.sum", laid(0, 1), 0), x=Tensor.of(np.array([[1, 2], [1, 2], [1, 2]], F32))
    ),
    "overlapping windows": case(
        call("torch.mul", laid(1, 1), 2), x=Tensor.of(np.array([[0, 1, 2], [1, 2, 3]], F32))
    ),
    "sparse": case(call("torch.sparse.sum", TensorArg("x", layout="sparse_coo"), 0), x=ROWS),
    "sparse rows": case(
        call("torch.mv", TensorArg("x", layout="sparse_csr"), TensorArg("y")),
        x=ROWS,
        y=Tensor.of(np.array([1, 2, 3], F32)),
    ),
    "bfloat16": case(call("torch.add", laid(1, 1), 1), x=BF16),
    "float8": case(call("torch.Tensor.float", laid(2, offset=1)), x=FP8),
    "bools": case(call("torch.logical_not", X), x=Tensor.of(np.array([True, False]))),
    "unsigned": case(
        call("torch.Tensor.view", laid(2), Dtype("int16")), x=Tensor.of(np.array([65535], "<u2"))
    ),
    "complex": case(call("torch.conj", X), x=Tensor.of(np.array([1 + 2j], np.complex64))),
    "rank 0": case(call("torch.neg", X), x=Tensor.of(np.asarray(2, F32))),
    "nothing": case(call("torch.sum", laid(1, 1), 0), x=Tensor.of(np.empty((0, 3), F32))),
    "random": case(call("torch.nn.functional.dropout", X, 0.5), x=IMAGE),
    "drawn from nothing": case(call("torch.randn", (4,))),
    "a third": case(call("torch.mul", X, 1 / 3), x=THIRD),
    "narrowed": case(call("torch.Tensor.half", X), x=THIRD),
    "softmax in a type": case(call("torch.softmax", X, 0, dtype=Dtype("float32")), x=THIRD),
    "mixed": case(TorchProgram(MIXED), x=ROWS, y=BF16),
    "writes": case(TorchProgram(WRITES), x=ROWS),
    "model": case(TorchProgram(MODEL), x=ROWS),
    "strides": case(TorchProgram(STRIDES), x=ROWS),
    "strings": case(call("torch.neg", X), x=Tensor.of(np.array(["a"]))),
    "optional": case(call("torch.neg", X), x=Absent()),
    "a sequence": case(call("torch.neg", X), x=Sequence((ROWS,))),
    "wrong": case(call("torch.view_as_real", X), x=ROWS),
}


def run(options: dict[str, Any]) -> dict[str, Execution]:
    supervisor: Supervisor[str] = Supervisor(WorkerCommand(sys.executable, "torch_eager", options=options))
    return dict(supervisor.run(iter(CASES.items())))


@pytest.fixture(scope="module")
def native() -> dict[str, Execution]:
    return run({})


@pytest.fixture(scope="module")
def wide() -> dict[str, Execution]:
    return run({"precision": "float64"})


def outputs(execution: Execution) -> dict[str, Any]:
    assert execution.ending == "returned", f"{execution.error}: {execution.message}"
    return {name: value.array() for name, value in execution.outputs if isinstance(value, Tensor)}


IMAGE_ARRAY = IMAGE.array()
GIVEN = ROWS.array()
WANTED: dict[str, Any] = {
    "literals": GIVEN + 1,
    "a list of tensors": np.concatenate([GIVEN] * 3, axis=1),
    "text": GIVEN @ GIVEN.T,
    "a method": GIVEN.reshape(3, 2),
    "a property": GIVEN.T,
    "a subscript": GIVEN[..., :2],
    "dtype and device": np.array([3, 3], np.int16),
    "memory format": IMAGE_ARRAY,
    "in place": GIVEN * GIVEN,
    "expanded": np.array([3, 6], F32),
    "overlapping windows": np.array([[0, 2, 4], [2, 4, 6]], F32),
    "sparse": GIVEN.sum(0),
    "sparse rows": GIVEN @ np.array([1, 2, 3], F32),
    "bfloat16": np.array([[0x4000, 0x4040]], np.uint16),  # 2, 3
    "float8": np.array([1, 2, -1], F32),
    "bools": np.array([False, True]),
    "unsigned": np.array([-1], np.int16),
    "complex": np.array([1 - 2j], np.complex64),
    "rank 0": np.asarray(-2, F32),
    "nothing": np.zeros(3, F32),
}


@pytest.mark.parametrize("name", WANTED)
def test_a_program_gives_what_numpy_gives(name: str, native: dict[str, Execution]) -> None:
    [found] = outputs(native[name]).values()
    np.testing.assert_array_equal(found, WANTED[name], strict=True)


@pytest.mark.parametrize("name", ["transposed", "with an offset", "strides"])
def test_inputs_lie_in_memory_as_the_program_asks(name: str, native: dict[str, Execution]) -> None:
    wanted = {"transposed": [1, 2], "with an offset": [4], "strides": [1, 2, 0]}[name]
    found = [int(value) for value in outputs(native[name]).values() if not value.ndim]
    assert found == wanted


def test_results_are_flattened_and_numbers_have_types(native: dict[str, Execution]) -> None:
    found = native["mixed"]
    described = [
        (name, value.dtype, value.shape) for name, value in found.outputs if isinstance(value, Tensor)
    ]
    assert described == [
        ("a", "float32", (2, 3)),
        ("b.1", "bfloat16", (1, 2)),
        ("b.2", "int64", ()),
        ("c.0", "bool", ()),
        ("c.1", "float64", ()),
        ("c.2", "complex128", ()),
        ("c.3", "string", ()),
        ("c.4.0", "int64", ()),
        ("c.4.1", "int64", ()),
        ("d", "float32", (0,)),
    ]


def test_a_program_writes_to_copies(native: dict[str, Execution]) -> None:
    found = outputs(native["writes"])
    np.testing.assert_array_equal(found["0"], GIVEN + 1)
    np.testing.assert_array_equal(found["1"], (GIVEN + 1).T)
    np.testing.assert_array_equal(found["2"], GIVEN[0] + 1)


MODULES = ("a convolution", "a norm with buffers", "a recurrence", "a layer in a layer", "model")


@pytest.mark.parametrize("name", MODULES)
def test_parameters_do_not_come_from_torchs_generator(name: str, native: dict[str, Execution]) -> None:
    """The worker drew in another order than this process does; the parameters agree all the same."""
    import torch

    torch.manual_seed(12345)
    one = CASES[name]
    again = torch_programs.build(one.program).run(list(one.values()))
    assert tuple(again) == native[name].outputs


def test_parameters_are_frozen_by_their_names() -> None:
    """A change here changes what every stored module computes."""
    built = torch_programs.build(call("torch.nn.BatchNorm1d", X, init=Init((2,))))
    found = {name: tensor.tolist() for name, tensor in built.module.state_dict().items()}
    assert found == {
        "layer.weight": [0.1538551151752472, -0.48041221499443054],
        "layer.bias": [0.37403273582458496, -0.2266084849834442],
        "layer.running_mean": [-0.4889576733112335, 0.4553559422492981],
        "layer.running_var": [1.366621732711792, 1.2771131992340088],
        "layer.num_batches_tracked": 0,
    }
    assert not built.module.training
    assert not any(parameter.requires_grad for parameter in built.module.parameters())


@pytest.mark.parametrize("name", ["random", "drawn from nothing"])
def test_every_run_draws_the_same_numbers(name: str, native: dict[str, Execution]) -> None:
    one = CASES[name]
    built = torch_programs.build(one.program)
    first, second = built.run(list(one.values())), built.run(list(one.values()))
    assert tuple(first) == tuple(second) == native[name].outputs


FAILING = ("strings", "optional", "a sequence", "wrong")
FLOATS = {"float16", "float32", "bfloat16", "float8_e4m3fn", "complex64"}


@pytest.mark.parametrize("name", [name for name in CASES if name not in FAILING])
def test_double_precision_computes_the_same_more_exactly(
    name: str, native: dict[str, Execution], wide: dict[str, Execution]
) -> None:
    narrow, exact = native[name], wide[name]
    assert exact.ending == "returned", f"{exact.error}: {exact.message}"
    assert [label for label, _ in exact.outputs] == [label for label, _ in narrow.outputs]
    for (_, one), (_, other) in zip(narrow.outputs, exact.outputs, strict=True):
        assert isinstance(one, Tensor)
        assert isinstance(other, Tensor)
        assert other.dtype not in FLOATS
        assert one.shape == other.shape
        if one.dtype in ("float32", "complex64"):
            np.testing.assert_allclose(other.array(), one.array(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["a third", "softmax in a type", "narrowed"])
def test_double_precision_is_not_rounded_on_the_way(name: str, wide: dict[str, Execution]) -> None:
    [found] = outputs(wide[name]).values()
    given = THIRD.array().astype(np.float64)
    wanted = {
        "a third": given * (1 / 3),
        "softmax in a type": np.exp(given) / np.exp(given).sum(),
        "narrowed": given,
    }[name]
    np.testing.assert_allclose(found, wanted, rtol=1e-15, strict=True)


def test_double_precision_leaves_no_trace() -> None:
    import torch

    torch_programs.build(CASES["a third"].program, precision="float64").run(list(CASES["a third"].values()))
    assert torch.get_default_dtype() is torch.float32
    assert torch.zeros(1).dtype is torch.float32


@pytest.mark.parametrize(
    ("name", "why"),
    [("strings", "has no string tensors"), ("optional", "tensors only"), ("a sequence", "tensors only")],
)
def test_what_torch_cannot_take_is_unsupported(name: str, why: str, native: dict[str, Execution]) -> None:
    assert (native[name].ending, native[name].error) == ("raised", "Unsupported")
    assert why in native[name].message


def test_an_error_of_the_library_is_its_own(native: dict[str, Execution]) -> None:
    execution = native["wrong"]
    assert (execution.ending, execution.error) == ("raised", "RuntimeError")
    assert "view_as_real" in execution.message


@pytest.mark.parametrize("how", ["traced", "exported"])
@pytest.mark.parametrize("name", ["a list of tensors", "a convolution", "expanded", "writes", "model"])
def test_what_is_captured_computes_the_same(name: str, how: str, native: dict[str, Execution]) -> None:
    import torch

    one = CASES[name]
    built = torch_programs.build(one.program)
    captured = torch_programs.capture(built, list(one.values()), how)
    module = captured if how == "traced" else captured.module()
    arguments = built.arrange(list(one.values()))
    with torch.no_grad():
        found = torch_programs.named_outputs(module(*arguments))
    assert [value.array().tolist() for _, value in found if isinstance(value, Tensor)] == [
        value.array().tolist() for _, value in native[name].outputs if isinstance(value, Tensor)
    ]


@pytest.mark.parametrize("how", ["traced", "exported"])
def test_what_torch_cannot_capture_is_unsupported(how: str) -> None:
    result = "set()" if how == "traced" else "[int(n) for n in x.tolist() if n > 1]"
    text = f"def forward(x):\n    return {result}\n"
    built = torch_programs.build(TorchProgram(text))
    with pytest.raises(Unsupported, match=r"torch\.(jit\.trace|export) cannot capture it: \w+"):
        torch_programs.capture(built, [("x", Tensor.of(np.arange(3)))], how)


def test_a_result_that_is_none_of_ours_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="type set"):
        torch_programs.named_outputs(({1},))
    with pytest.raises(Unsupported, match="beyond 64 bits"):
        torch_programs.named_outputs(1 << 80)


def test_a_sequence_is_a_list_of_tensors() -> None:
    items = torch_programs.to_torch(Sequence((ROWS, THIRD)))
    assert [item.tolist() for item in items] == [GIVEN.tolist(), THIRD.array().tolist()]


def test_torch_judges_its_own_programs() -> None:
    assert reference_backend("TorchCall").name == reference_backend("TorchProgram").name == "torch_eager"


def test_a_traceback_shows_the_programs_own_lines() -> None:
    built = torch_programs.build(TorchProgram("def forward(x):\n    return x.no_such_thing\n"))
    with pytest.raises(AttributeError) as caught:
        built.run([("x", ROWS)])
    assert "return x.no_such_thing" in "".join(traceback.format_exception(caught.value))


def test_inductor_is_set_up_before_a_program_that_compiles_and_for_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared: list[HeaderCache] = []
    monkeypatch.setattr(header_cache, "prepare", prepared.append)
    monkeypatch.delenv("ASSAY_CACHE", raising=False)
    backend = reference_backend(TorchProgram.kind)()
    backend.load("CPU", {})
    head = "import torch\n\n\ndef forward(x):\n    return "
    backend.convert(TorchProgram(f"{head}x + 1\n"), [])
    assert prepared == []
    for _ in range(2):
        backend.convert(TorchProgram(f"{head}torch.compile(torch.neg)(x)\n"), [])
    assert len(prepared) == 1
