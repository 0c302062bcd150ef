from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from onnx import numpy_helper

from fuzzing.cases import Tensor as Value
from fuzzing.cases import TestCase, TorchProgram
from fuzzing.errors import UnwritableError
from fuzzing.generate.isra.solver import Solver
from fuzzing.graph import Builder, Constant, Graph, TensorType, operators, torch_writer
from fuzzing.graph.ir import Array
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_types import constant_of
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.operator_spec import OperatorSpec
from fuzzing.graph.torch_writer import to_torch
from fuzzing.graph.transformations import prune
from fuzzing.graph.types import ABSENT
from tests.fuzzing.backends.backend_kit import NOWHERE, arrays, run_all
from tests.support.graphs import BRANCHES, feeds, model, solver
from tests.support.reference_evaluation import in_onnxruntime, where_implemented

F = TensorType("float32", (2, 3))

#: What jumps: a last bit that differs before it becomes another result.
JUMPING = frozenset(
    {"ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Hardmax"}
    | {"IsInf", "Less", "LessOrEqual", "Mod", "NonZero", "Not", "OneHot", "Round", "Shrink", "Sign", "TopK"}
    | {"ThresholdedRelu", "QuantizeLinear", "DynamicQuantizeLinear", "Unique", "GridSample", "Dropout"}
)


@cache
def translatable() -> Solver:
    """A solver of operators that torch has too and whose results are continuous."""
    known = operators.specifications(18).items()
    names = tuple(name for name, one in known if one.torch is not None and name not in JUMPING)
    return solver(18, ("float32",), names, 20)


def run_text(text: str, inputs: list[Any]) -> tuple[torch.Tensor, ...]:
    space: dict[str, Any] = {}
    exec(text, space)
    found = space["forward"](*[torch.tensor(array) for array in inputs])
    return found if isinstance(found, tuple) else (found,)


def close(mine: Any, theirs: Any) -> bool:
    one, other = np.asarray(mine), np.asarray(theirs)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.size == 0:
        return True
    absolute = 1e-3 * max(1.0, float(np.abs(other).max()))
    return bool(np.allclose(one.astype(float), other.astype(float), rtol=1e-3, atol=absolute))


def test_generated_graphs_give_in_torch_what_they_give_in_onnxruntime() -> None:
    ran, agreed = 0, 0
    used: set[str] = set()
    for seed in range(80):
        made = translatable().generate(seed)
        try:
            text = to_torch(made.graph)
        except UnwritableError:  # not every setting of an operator has a form, nor have all lengths
            continue
        graph = made.graph
        inputs = feeds(made, seed)
        wanted = where_implemented(to_onnx(graph), {f"v{edge}": array for edge, array in inputs.items()})
        if wanted is None:
            continue
        found = run_text(text, list(inputs.values()))
        ran += 1
        assert len(found) == len(wanted)
        agreed += all(close(mine, theirs) for mine, theirs in zip(found, wanted, strict=True))
        used.update(node.op for node in graph.nodes)
    assert ran > 40
    assert len(used) > 60
    # Inputs are drawn, so now and then one lies where a kernel may go either way.
    assert agreed >= ran - 1


def straight() -> Graph:
    builder = Builder(21)
    x = builder.placeholder(F)
    w = builder.constant(Constant("float32", np.array([0.1, -2.0, np.inf], np.float32)))
    unused = builder.constant(Constant("int64", np.array([1])))
    (a,) = builder.node("Relu", (x,), (F,))
    (b,) = builder.node("Mul", (a, w), (F,))
    (c,) = builder.node("ReduceSum", (b, unused), (TensorType("float32", (2, 1)),))
    return builder.finish((c, b))


def test_the_text_is_straight_and_each_edge_is_assigned_once() -> None:
    assert to_torch(straight()) == (
        "import torch\n"
        "\n"
        'DEVICE = "cpu"\n'
        "\n"
        "\n"
        "def forward(v0):\n"
        '    v1 = torch.tensor([0.1, -2.0, float("inf")], dtype=torch.float32, device=DEVICE)\n'
        "    v3 = torch.relu(v0)\n"
        "    v4 = torch.mul(v3, v1)\n"
        "    v5 = torch.sum(v4, dim=(1,), keepdim=True).to(v4.dtype)\n"
        "    return v5, v4\n"
    )


def given_by(constant: Constant) -> torch.Tensor:
    """A constant as the text of a graph makes it."""
    builder = Builder(21)
    edge = builder.constant(constant)
    (found,) = run_text(to_torch(builder.finish((edge,))), [])
    return found


DRAWN = np.random.default_rng(7)
ARRAYS: dict[str, Array] = {
    "a number": np.array(1.5, np.float32),
    "nothing": np.zeros((2, 0, 3), np.int64),
    "all the same": np.full((40, 5), -0.0, np.float64),
    "not numbers": np.array([np.nan, np.inf, -np.inf, -0.0], np.float16),
    "the smallest": np.array([1e-45, 1.1754942e-38], np.float32),
    "truths": np.array([[True, False], [False, True]]),
    "the largest": np.array([2**63 - 1, -(2**63)], np.int64),
    "complex": np.array([1 + 2j, -0.5j], np.complex64),
    "many": DRAWN.normal(size=(9, 9)).astype(np.float32),
    "many truths": DRAWN.integers(0, 2, 100).astype(bool),
    "unsigned": np.arange(70, dtype=np.uint8).reshape(7, 10),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_constants_come_out_bit_for_bit(name: str) -> None:
    array = ARRAYS[name]
    found = given_by(constant_of(numpy_helper.from_array(array))).numpy()
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize("count", [3, 100])
def test_constants_of_bfloat16_too(count: int) -> None:
    bits = np.arange(count, dtype=np.uint16) + 0x3F80
    found = given_by(Constant("bfloat16", bits))
    assert found.dtype == torch.bfloat16
    assert found.view(torch.int16).numpy().view(np.uint16).tolist() == bits.tolist()


def test_operators_without_a_form_in_torch_are_named() -> None:
    with pytest.raises(UnwritableError, match="nothing in torch is known that does what If does"):
        to_torch(from_onnx(model(BRANCHES)))


def test_texts_have_no_form_in_torch() -> None:
    builder = Builder(21)
    edge = builder.constant(Constant("string", np.array(["a"], object)))
    with pytest.raises(UnwritableError, match="no string tensors"):
        to_torch(builder.finish((edge,)))


def test_constants_too_large_for_a_program_are_refused() -> None:
    builder = Builder(21)
    array = np.arange(1 << 18, dtype=np.float32)
    edge = builder.constant(Constant("float32", array))
    with pytest.raises(UnwritableError, match="longer than 1048576 bytes"):
        to_torch(builder.finish((edge,)))


def test_lengths_that_only_the_data_tell_are_refused_where_they_must_be_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stating = OperatorSpec(
        "Relu", 14, torch=lambda context, names: f"{names[0]}.reshape({context.x.lengths})"
    )
    monkeypatch.setattr(torch_writer, "find_specification", lambda graph, node: stating)
    builder = Builder(21)
    open_ = TensorType("float32", (2, None))
    graph = builder.finish(builder.node("Relu", (builder.placeholder(open_),), (open_,)))
    with pytest.raises(UnwritableError, match=r"Relu cannot be written in torch: float32\[2,\?\]"):
        to_torch(graph)


def test_outputs_left_out_are_assigned_to_nothing() -> None:
    with_indices = Builder(21)
    x = with_indices.placeholder(TensorType("float32", (2, 4)))
    k = with_indices.constant(Constant("int64", np.array([2])))
    types = (ABSENT, TensorType("int64", (2, 2)))
    _, places = with_indices.node("TopK", (x, k), types)
    graph = with_indices.finish((places,))
    assert f"_, v{places} = " in to_torch(graph)


# As cases ---------------------------------------------------------------------------------------------------


#: What every engine has.
COMMON = ("Add", "Concat", "MatMul", "Mul", "ReduceMean", "Relu", "Reshape", "Sigmoid", "Softmax", "Sub")


def large() -> Graph:
    """An addition of a constant that is no literal in the text."""
    builder = Builder(21)
    type_ = TensorType("float32", (9, 9))
    x = builder.placeholder(type_)
    w = builder.constant(Constant("float32", ARRAYS["many"]))
    return builder.finish(builder.node("Add", (x, w), (type_,)))


@cache
def programs() -> dict[str, tuple[TestCase, list[Any]]]:
    """Programs of one output with their inputs, and what onnxruntime makes of the same graph."""
    graphs: list[tuple[Graph, dict[str, Any]]] = [(large(), {"v0": np.ones((9, 9), np.float32)})]
    for seed in range(4):
        made = solver(18, ("float32",), COMMON, 8).generate(seed)
        graph = prune(made.graph, made.graph.outputs[:1])
        graphs.append((graph, {f"v{edge}": array for edge, array in feeds(made, seed).items()}))
    found: dict[str, tuple[TestCase, list[Any]]] = {}
    for number, (graph, arrays_) in enumerate(graphs):
        inputs = {name: arrays_[name] for edge in graph.inputs if (name := graph.names.get(edge, f"v{edge}"))}
        values = tuple([(name, Value.of(array)) for name, array in inputs.items()])
        case = TestCase(TorchProgram(to_torch(graph)), values, NOWHERE)
        found[str(number)] = (case, in_onnxruntime(to_onnx(graph), inputs))
    return found


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        pytest.param("torch_eager", {}, marks=pytest.mark.compiler_torch_eager),
        pytest.param("openvino", {"capture": "traced"}, marks=pytest.mark.compiler_openvino),
    ],
)
def test_the_text_is_a_program_that_backends_take(backend: str, options: dict[str, str]) -> None:
    assert any("base64" in case.program.text for case, _ in programs().values())  # type: ignore[attr-defined]
    executions = run_all(backend, {name: case for name, (case, _) in programs().items()}, **options)
    for name, (case, wanted) in programs().items():
        assert isinstance(case.program, TorchProgram)
        found = arrays(executions[name])
        assert len(found) == len(wanted), case.program.text
        assert all(close(mine, theirs) for mine, theirs in zip(found, wanted, strict=True)), case.program.text


def test_names_make_no_difference() -> None:
    graph = straight()
    assert to_torch(replace(graph, names={0: "the input", 3: "lambda"})) == to_torch(graph)
