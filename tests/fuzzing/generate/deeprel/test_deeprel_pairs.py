"""A pair put to the test, by executions that nobody ran."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from fuzzing.cases import TestCase, TorchCall
from fuzzing.errors import InternalError
from fuzzing.execution import Execution
from fuzzing.generate.deeprel.api_inventory import list_apis
from fuzzing.generate.deeprel.api_pairs import ApiPair, CaseRequest, SourceRuns
from fuzzing.generate.deeprel.verification import Outcome
from tests.fuzzing.generate.deeprel.deeprel_helpers import X, call, killed, raised, returned

pytestmark = pytest.mark.compiler_torch_eager

Answer = Callable[[str, int], Execution]  # of an API's name and how many calls came before


def play(pair: ApiPair, answer: Answer) -> list[TestCase]:
    """Runs a pair to its end; the cases in the order in which they came."""
    jobs: deque[CaseRequest] = deque(pair.begin())
    seen: list[TestCase] = []
    while jobs:
        (taker, place), case = jobs.popleft()
        assert isinstance(case.program, TorchCall)
        before = sum(
            other.program.api == case.program.api for other in seen if isinstance(other.program, TorchCall)
        )
        seen.append(case)
        jobs.extend(taker.handle(place, answer(case.program.api, before)))
    assert pair.ended
    return seen


def a_pair(mutants: int = 0, calls: int = 30) -> ApiPair:
    dims = [call("torch.amax", X, place) for place in range(calls)]
    return ApiPair(SourceRuns(list_apis()["torch.amax"], dims), list_apis()["torch.max"], 0.9, mutants)


def test_a_pair_that_gives_the_same_is_equivalent_by_value_on_all_its_calls() -> None:
    pair = a_pair()
    assert len(play(pair, lambda _api, _before: returned([1.0]))) == 60
    assert (pair.equivalence, pair.tried) == ("value", 30)
    assert pair.outcomes["value"] == {Outcome.SUCCESS: 30}
    assert len(pair.accepted) == 30


def test_one_other_value_leaves_it_equivalent_by_status() -> None:
    pair = a_pair()
    play(pair, lambda api, before: returned([2.0 if api == "torch.max" and before == 7 else 1.0]))
    assert (pair.equivalence, pair.tried) == ("status", 30)


def test_one_refusal_ends_it_and_spares_the_rest() -> None:
    pair = a_pair()
    play(pair, lambda api, _before: raised("no") if api == "torch.max" else returned([1.0]))
    assert (pair.equivalence, pair.tried) == (None, 1)
    assert pair.accepted == []


def test_a_pair_that_only_fails_is_not_equivalent() -> None:
    pair = a_pair(calls=3)
    play(pair, lambda _api, _before: raised("no"))
    assert pair.equivalence is None
    assert pair.outcomes["status"] == {Outcome.FAIL: 3}


def test_what_the_library_dies_of_is_kept_and_ends_nothing() -> None:
    pair = a_pair()
    play(pair, lambda api, before: killed() if (api, before) == ("torch.max", 2) else returned([1.0]))
    assert pair.equivalence == "value"
    assert [(bug.api, bug.reason) for bug in pair.bugs] == [("torch.max", "SIGSEGV")]
    assert pair.outcomes["value"][Outcome.BUG] == 1


def test_what_the_source_dies_of_is_told_once() -> None:
    """Of a call with an argument less than was recorded, say."""
    runs = SourceRuns(list_apis()["torch.amax"], [call("torch.amax", X, 0)])
    pairs = [ApiPair(runs, list_apis()[name], 0.9) for name in ("torch.max", "torch.amin")]
    for pair in pairs:
        play(pair, lambda api, _before: killed() if api == "torch.amax" else returned([1.0]))
    assert [[(bug.api, bug.reason) for bug in pair.bugs] for pair in pairs] == [
        [("torch.amax", "SIGSEGV")],
        [],
    ]
    assert [pair.outcomes["value"] for pair in pairs] == [{Outcome.BUG: 1}] * 2


def test_a_pair_that_kills_again_and_again_is_left_alone() -> None:
    pair = a_pair()
    play(pair, lambda api, _before: killed() if api == "torch.max" else returned([1.0]))
    assert (pair.equivalence, pair.tried) == (None, 5)  # of 30
    assert len(pair.bugs) == 5


def test_a_source_call_is_run_once_for_all_targets() -> None:
    runs = SourceRuns(list_apis()["torch.amax"], [call("torch.amax", X, 0)])
    first, second = (ApiPair(runs, list_apis()[name], 0.9) for name in ("torch.max", "torch.amin"))
    apis = [
        [
            case.program.api
            for case in play(pair, lambda _api, _before: returned([1.0]))
            if isinstance(case.program, TorchCall)
        ]
        for pair in (first, second)
    ]
    assert apis == [["torch.amax", "torch.max"], ["torch.amin"]]


def test_mutants_come_after_the_pair_holds_and_do_not_unmake_it() -> None:
    pair = a_pair(mutants=20, calls=3)
    play(pair, lambda api, before: returned([2.0 if api == "torch.max" and before > 2 else 1.0]))
    assert (pair.equivalence, pair.tried) == ("value", 3)
    assert pair.mutated[Outcome.NOT_EQUIVALENT] == len(pair.inconsistencies) > 0
    assert {found.reason for found in pair.inconsistencies} == {"the values differ"}
    assert {found.case.provenance.seed for found in pair.inconsistencies} == {0}


def test_a_pair_that_does_not_hold_is_not_mutated() -> None:
    pair = a_pair(mutants=20, calls=3)
    play(pair, lambda api, _before: raised("no") if api == "torch.max" else returned([1.0]))
    assert not pair.mutated


def test_an_answer_out_of_order_is_our_own_mistake() -> None:
    pair = a_pair(calls=1)
    (_, _), ((taker, place), _) = pair.begin()
    with pytest.raises(InternalError, match="before the source's"):
        taker.handle(place, returned([1.0]))
