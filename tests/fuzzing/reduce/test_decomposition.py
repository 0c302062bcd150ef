"""Calls of torch as programs of ATen's operators, and bugs that are named by these."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fuzzing.cases import Provenance, Tensor, TensorArg, TestCase, TorchCall, TorchProgram
from fuzzing.cases.arguments import Argument
from fuzzing.cases.torch_call import Init
from fuzzing.cases.torch_program import MAX_BYTES
from fuzzing.deduplicate.strategies.base import Failure
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Verdict
from fuzzing.reduce.decomposition import decompose
from fuzzing.reduce.engine import Budget
from fuzzing.reduce.reduction import Reducer, Reduction
from fuzzing.triage.signature import Signature, explains

VARIANCE = str(Path(__file__).parent / "variance_backend.py")
DYING = str(Path(__file__).parent / "dying_backend.py")
MASK = Tensor.of(np.zeros((1, 2, 6), np.bool_))  # of what is masked as a whole, `amax` is -inf
pytestmark = pytest.mark.compiler_torch_eager


def call(api: str, *arguments: Argument, init: Init | None = None, **named: Argument) -> TestCase:
    """A call with `x` before these arguments."""
    program = TorchCall(api, (TensorArg("x"), *arguments), tuple(named.items()), init)
    x = Tensor.of(np.arange(-4, 8, dtype=np.float32).reshape(1, 2, 6))  # all sums are exact
    return TestCase(program, (("x", x),), Provenance("s", "t", api, "torch", "1"))


def with_input(case: TestCase, name: str, value: Tensor) -> TestCase:
    """The case with another input, before those that it has, or with another value of one of them."""
    return replace(case, inputs=tuple(({name: value} | dict(case.inputs) | {name: value}).items()))


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(Shard("", (), "torch_eager", "d", sys.executable)) as made:
        yield made


def operators(case: TestCase | None) -> list[str]:
    """ATen's operators in the text, in order."""
    assert case is not None
    assert isinstance(case.program, TorchProgram)
    called = [node.func for node in ast.walk(ast.parse(case.program.text)) if isinstance(node, ast.Call)]
    names = [
        ast.unparse(one).split(".")[3] for one in called if ast.unparse(one).startswith("torch.ops.aten.")
    ]
    return [name for name in names if name != "_assert_tensor_metadata"]  # computes nothing


@pytest.mark.parametrize(
    ("case", "made_of"),
    [
        (
            call("torch.nn.functional.max_pool1d", 2, return_indices=True),
            ["unsqueeze", "max_pool2d_with_indices", "squeeze", "squeeze"],
        ),
        (call("torch.std_mean"), ["var", "mean", "sqrt"]),
        (call("torch.div", 2.0, rounding_mode="trunc"), ["div", "trunc"]),
        (call("torch.nn.functional.pad", (1, 1), value=float("inf")), ["constant_pad_nd"]),
        (call("torch.zeros_like"), ["full_like"]),
        (call("torch.nn.Linear", init=Init((6, 2))), ["view", "permute", "addmm", "view"]),
        (
            call("torch.nn.BatchNorm1d", init=Init((2,))),
            ["_native_batch_norm_legit_no_training"],
        ),
        (
            with_input(call("torch.masked.amax", mask=TensorArg("mask")), "mask", MASK),
            ["clone", "where", "amax"],
        ),
    ],
    ids=["max_pool1d", "std_mean", "div", "pad", "zeros_like", "weights", "buffers", "constant"],
)
def test_a_call_is_a_program_with_the_same_results(
    case: TestCase, made_of: list[str], evaluator: Evaluator
) -> None:
    inner = decompose(case, evaluator)
    assert operators(inner) == made_of
    assert inner is not None
    same, given = evaluator.reference(inner), evaluator.reference(case)
    assert same is not None
    assert given is not None
    assert [value for _, value in same] == [value for _, value in given]


def test_what_a_module_holds_are_further_inputs(evaluator: Evaluator) -> None:
    inner = decompose(call("torch.nn.Linear", init=Init((6, 2))), evaluator)
    assert inner is not None
    shapes = {name: value.shape for name, value in inner.inputs if isinstance(value, Tensor)}
    assert shapes == {"p_layer_weight": (2, 6), "p_layer_bias": (2,), "x": (1, 2, 6)}


def test_inputs_are_in_the_order_of_the_calls_arguments(evaluator: Evaluator) -> None:
    case = with_input(call("torch.sub", TensorArg("y")), "y", Tensor.of(np.ones((1, 2, 6), np.float32)))
    inner = decompose(case, evaluator)
    assert inner is not None
    assert [name for name, _ in case.inputs] == ["y", "x"]
    assert [name for name, _ in inner.inputs] == ["x", "y"]
    assert evaluator.reference(inner) == evaluator.reference(case)


def test_a_module_with_more_weights_than_a_program_has_text_stays_whole(evaluator: Evaluator) -> None:
    case = call("torch.nn.Linear", init=Init((6, MAX_BYTES // 24)))
    assert decompose(case, evaluator) is None


def test_what_torch_does_not_export_stays_whole(evaluator: Evaluator) -> None:
    assert decompose(call("torch.Tensor.numpy"), evaluator) is None


def signature(reducer: Reducer, case: TestCase) -> tuple[Signature, str]:
    """Of the reduced case, and the text of its root."""
    found = reducer.reduce(case)
    assert (found.confirmed, found.outcome.verdict) == (True, Verdict.WRONG_RESULT)
    text = ""
    if found.root is not None:
        assert isinstance(found.root[0].program, TorchProgram)
        text = found.root[0].program.text
    return Failure(found.case, found.outcome, True, found.traits).signature(), text


@pytest.mark.slow
def test_what_computes_one_wrong_variance_is_one_bug() -> None:
    shard = Shard("", (), VARIANCE, "d", sys.executable, profile="without-float64")
    with Reducer(shard) as reducer:
        std, text = signature(reducer, call("torch.std"))
        var_mean, _ = signature(reducer, call("torch.var_mean"))
    assert "torch.ops.aten.var.correction(x" in text
    assert "sqrt" not in text
    assert explains(std, var_mean)
    assert explains(var_mean, std)
    assert std.title.startswith("[PyTorch] torch.std (var): ")
    assert std.fields["operator"] == "torch.std"  # as other calls of it are known by, which are not reduced


@pytest.mark.slow
def test_what_is_wrong_only_as_it_is_called_keeps_its_name() -> None:
    shard = Shard("", (), VARIANCE, "d", sys.executable, profile="without-float64", options={"fault": "std"})
    with Reducer(shard) as reducer:
        found, text = signature(reducer, call("torch.std"))
    assert (text, found.fields["operator"]) == ("", "torch.std")
    assert "root" not in found.fields


def dying(cases: list[TestCase], budget: Budget | None = None) -> list[Reduction]:
    """Their reductions on a compiler that dies without a trace."""
    with Reducer(Shard("", (), DYING, "d", sys.executable), budget) as reducer:
        found = [reducer.reduce(case) for case in cases]
    assert {(each.confirmed, each.outcome.evidence.signal) for each in found} == {(True, "SIGSEGV")}
    return found


@pytest.mark.slow
def test_what_dies_without_a_trace_is_known_by_the_operator_that_does() -> None:
    cell = call("torch.nn.RNNCell", init=Init((6, 2)))
    cell = with_input(cell, "x", Tensor.of(np.ones((2, 6), np.float32)))
    found = dying([call("torch.nn.functional.tanhshrink"), cell])
    roots = [each.traits.root for each in found]
    assert [root and root["operator"] for root in roots] == ["tanh", "tanh"]
    shrink, rnn = (Failure(each.case, each.outcome, True, each.traits).signature() for each in found)
    assert explains(shrink, rnn)
    assert shrink.title.startswith("[PyTorch] torch.nn.functional.tanhshrink (tanh): ")


@pytest.mark.slow
def test_what_is_left_of_a_search_that_did_not_end_names_no_bug() -> None:
    case = call("torch.nn.functional.tanhshrink")
    [ended] = dying([case])
    runs = ended.reduced.runs
    assert ended.root is not None
    [again] = dying([case], Budget(runs))
    assert again.root is not None
    [unfinished] = dying([case], Budget(runs - 1))
    assert (unfinished.case, unfinished.root) == (ended.case, None)
    assert unfinished.reduced.minimal  # the search for the case itself
