"""What installed compilers refuse, and what they only fail at: one of each, told apart by their tables."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from fuzzing.cases import Tensor, TensorArg, TestCase, TorchCall
from fuzzing.execution import Execution
from tests.fuzzing.backends.backend_kit import floats, onnx_case, program_case, reason, run_all

X = TensorArg("x")
WHOLE = Tensor.of(np.array([1, 2], np.int64))


class Pair(NamedTuple):
    """A case that the compiler says it does not do, the reason it gives, and one that it fails at."""

    refused: TestCase
    why: str
    failed: TestCase


PAIRS = {
    # Axes that are known only when it runs leave operators of the torch dialect behind. Compress is taken,
    # and a pass then makes a cast that the verifier of its own operations refuses.
    "iree": Pair(
        onnx_case(
            "(float[3,2] x, int64[1] a) => (float[N] y)",
            "y = ReduceMin <keepdims = 0> (x, a)",
            18,
            x=floats(3, 2),
            a=Tensor.of(np.array([1], np.int64)),
        ),
        "no lowering of the torch operators, torch.constant.bool first",
        onnx_case(
            "(float[3,2] x, bool[2] c) => (float[N,2] y)",
            "y = Compress <axis = 0> (x, c)",
            x=floats(3, 2),
            c=Tensor.of(np.array([False, True])),
        ),
    ),
    "openvino": Pair(
        program_case(TorchCall("torch.std", (X,), (("correction", -5),)), x=floats(3)),
        "value of correction",
        program_case(TorchCall("torch.linalg.vector_norm", (X,), (("ord", 3),)), x=floats(3)),
    ),
    "tvm": Pair(
        onnx_case("(int64[2] x, int64[2] y) => (int64[2] z)", "z = Pow(x, y)", x=WHOLE, y=WHOLE),
        "Check failed: (IsFloatType(x.ty())) is false: power only applies to float",
        onnx_case("(float[2] x, int64[2] y) => (float[2] z)", "z = Pow(x, y)", x=floats(2), y=WHOLE),
    ),
}
COMPILERS = [pytest.param(name, marks=getattr(pytest.mark, f"compiler_{name}")) for name in PAIRS]


@cache
def ran(backend: str) -> dict[str, Execution]:
    pair = PAIRS[backend]
    return run_all(backend, {"refused": pair.refused, "failed": pair.failed})


@pytest.mark.parametrize("backend", COMPILERS)
def test_what_a_compiler_says_it_does_not_do_is_no_failure(backend: str) -> None:
    found = ran(backend)["refused"]
    assert found.ending == "raised"
    assert reason(backend, found.error, found.message) == PAIRS[backend].why


@pytest.mark.parametrize("backend", COMPILERS)
def test_what_a_compiler_takes_and_then_fails_at_is_one(backend: str) -> None:
    found = ran(backend)["failed"]
    assert found.ending == "raised"
    assert reason(backend, found.error, found.message) is None, found.message


@pytest.mark.compiler_tinygrad
def test_a_clang_that_lacks_bfloat16_is_no_failure_when_results_are_read() -> None:
    """tinygrad compiles a kernel that reads them, in the phase run."""
    one = Tensor("bfloat16", (), np.array([0x3F80], np.uint16).tobytes())
    case = onnx_case("(bfloat16 x) => (bfloat16 y)", "y = Cosh(x)", 22, x=one)
    found = run_all("tinygrad", {"cosh": case})["cosh"]
    assert found.ending == "returned" or reason("tinygrad", found.error, found.message), found.message
