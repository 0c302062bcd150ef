"""Calls of torch as programs of ATen's operators, and bugs that are named by these."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fuzzing.cases import Provenance, Tensor, TensorArg, TestCase, TorchCall, TorchProgram
from fuzzing.cases.arguments import Argument
from fuzzing.cases.torch_call import Init
from fuzzing.deduplicate.strategies.base import Failure
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Verdict
from fuzzing.reduce.decomposition import decompose
from fuzzing.reduce.reduction import Reducer
from fuzzing.triage.signature import Signature, explains

VARIANCE = str(Path(__file__).parent / "variance_backend.py")
pytestmark = pytest.mark.compiler_torch_eager


def call(api: str, *arguments: Argument, init: Init | None = None, **named: Argument) -> TestCase:
    """A call with `x` before these arguments."""
    program = TorchCall(api, (TensorArg("x"), *arguments), tuple(named.items()), init)
    x = Tensor.of(np.arange(-4, 8, dtype=np.float32).reshape(1, 2, 6))  # all sums are exact
    return TestCase(program, (("x", x),), Provenance("s", "t", api, "torch", "1"))


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(Shard("", (), "torch_eager", "d", sys.executable)) as made:
        yield made


def operators(case: TestCase | None) -> list[str]:
    """ATen's operators in the text, in order."""
    assert case is not None
    assert isinstance(case.program, TorchProgram)
    called = [node.func for node in ast.walk(ast.parse(case.program.text)) if isinstance(node, ast.Call)]
    return [
        ast.unparse(one).split(".")[3] for one in called if ast.unparse(one).startswith("torch.ops.aten.")
    ]


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
    ],
    ids=["max_pool1d", "std_mean", "div", "pad", "zeros_like"],
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


def test_a_module_with_weights_stays_whole(evaluator: Evaluator) -> None:
    assert decompose(call("torch.nn.Linear", init=Init((6, 2))), evaluator) is None


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
