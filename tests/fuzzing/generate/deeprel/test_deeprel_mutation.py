"""Calls beside the recorded ones."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.cases import Init, Recipe, Tensor, TorchCall
from fuzzing.errors import CaseFormatError
from fuzzing.generate.deeprel.call_mutation import DTYPES, Mutator
from fuzzing.generate.deeprel.call_transfer import Invocation
from tests.fuzzing.generate.deeprel.deeprel_helpers import X, call

pytestmark = pytest.mark.compiler_torch_eager


def calls() -> list[Invocation]:
    """Of several sorts: numbers, lists, texts, a tensor met twice, a module."""
    return [
        call("torch.amax", X, (0, 1), True),
        call("torch.nn.functional.mse_loss", X, X, reduction="sum"),
        call("torch.nn.AvgPool1d", X, init=Init((2,), (("count_include_pad", False),))),
        call("torch.clamp", X, -0.5, 2.5),
        call("torch.cat", [X, X], 1),
    ]


@given(st.integers(0, 1 << 32), st.integers(0, 4))
@settings(max_examples=150)
def test_a_mutant_is_a_case_or_cannot_be_told_and_the_same_seed_gives_the_same(seed: int, which: int) -> None:
    recorded = calls()[which]
    texts = []
    for _ in range(2):
        mutator = Mutator([recorded], random.Random(seed))
        found = [mutator.mutate() for _ in range(3)]
        reported = []
        for mutate in found:
            try:
                case = mutate.case("t", seed=1)
            except CaseFormatError as error:
                reported.append(str(error))
                continue
            assert isinstance(case.program, TorchCall)
            assert TorchCall.from_bytes(case.program.to_bytes()) == case.program
            assert {tensor.name for tensor in case.program.tensors} == dict(case.inputs).keys()
            reported.append(case.id)
        texts.append(reported)
    assert texts[0] == texts[1]
    assert recorded.case("t").id == calls()[which].case("t").id  # nothing was written to the recorded call


def test_mutants_reach_what_the_recorded_call_does_not() -> None:
    """Each sort of mutation is seen among a few hundred, and most mutants differ from the recorded call."""
    mutator = Mutator(calls()[:1], random.Random(0))
    seen: Counter[str] = Counter()
    own = calls()[0].case("").id
    for _ in range(400):
        mutate = mutator.mutate()
        seen["changed"] += mutate.case("").id != own
        seen[f"keepdim {type(mutate.bound['keepdim']).__name__}"] += 1
        for _, tensor in mutate.case("").values():
            assert isinstance(tensor, Tensor)
            seen.update((tensor.dtype, f"rank {len(tensor.shape)}"))
    assert {f"keepdim {kind}" for kind in ("bool", "int", "float", "str")} <= seen.keys()
    assert {"rank 1", "rank 2", "rank 3"} <= seen.keys()
    assert set(DTYPES) <= seen.keys()
    assert 200 < seen["changed"] < 400


def test_whole_numbers_stay_between_those_of_the_recorded_tensor() -> None:
    """So that what was an index stays one."""
    mutator = Mutator([call("torch.Tensor.abs", X)], random.Random(1))
    bounds = {
        (given.low, given.high)
        for _ in range(300)
        for _, given in mutator.mutate().case("").inputs
        if isinstance(given, Recipe) and given.dtype == "int64"
    }
    assert bounds == {(-1.0, 4.0)}
