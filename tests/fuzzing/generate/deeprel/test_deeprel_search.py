"""DeepREL on a few recorded calls of the real torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzing.backends import _torch
from fuzzing.cases import Init, TestCase, TorchCall
from fuzzing.generate.deeprel.pairs import Bug
from fuzzing.generate.deeprel.search import Item, Relation, Search, Settings
from tests.fuzzing.generate.deeprel.deeprel_kit import X, recorded

pytestmark = pytest.mark.compiler_torch_eager


def seeds() -> list[TestCase]:
    cases = [recorded("torch.amax", X, place, keepdim) for place in (0, 1) for keepdim in (False, True)]
    cases += [recorded("torch.amax", X), recorded("torch.nn.functional.relu", X, inplace=True)]
    cases += [recorded("torch.nn.ReLU6", X, init=Init(), shape=(3, 4))]
    sizes: tuple[object, ...] = (2, (2, None), (3, 1))
    return cases + [
        recorded("torch.nn.AdaptiveAvgPool2d", X, init=Init((size,)), shape=(1, 2, 4, 4)) for size in sizes
    ]


class Found:
    """What a search told, sorted out."""

    def __init__(self, search: Search) -> None:
        self.items: list[Item] = list(search.run())
        self.totals = search.totals
        self.relations = {(r.source, r.target): r for r in self.items if isinstance(r, Relation)}
        self.cases = [item for item in self.items if isinstance(item, TestCase)]
        self.bugs = [item for item in self.items if isinstance(item, Bug)]


@pytest.fixture(scope="module")
def found() -> Found:
    return Found(Search(seeds(), Settings(rounds=2, candidates=10)))


@pytest.mark.parametrize(
    ("source", "target", "equivalence"),
    [
        ("torch.amax", "torch.Tensor.amax", "value"),
        ("torch.amax", "torch.max", "value"),  # whose values are the first of its two outputs
        ("torch.amax", "torch.amin", "status"),
        ("torch.nn.functional.relu", "torch.relu", "value"),  # inplace is left out on both sides
        ("torch.nn.functional.relu", "torch.nn.functional.relu6", "value"),  # no element is above 6 here
        ("torch.nn.ReLU6", "torch.nn.Hardtanh", "status"),  # which stops at 1
        ("torch.nn.AdaptiveAvgPool2d", "torch.nn.AdaptiveMaxPool2d", "status"),
        ("torch.nn.AdaptiveAvgPool2d", "torch.nn.AvgPool2d", None),
    ],
)
def test_pairs_known_by_hand(source: str, target: str, equivalence: str | None, found: Found) -> None:
    assert found.relations[source, target].equivalence == equivalence


def test_a_relation_says_on_how_many_calls_it_rests(found: Found) -> None:
    relation = found.relations["torch.amax", "torch.max"]
    assert (relation.held, relation.tried, relation.round) == (5, 5, 0)


def test_targets_of_pairs_that_hold_are_the_sources_of_the_next_round(found: Found) -> None:
    second = {relation.source for relation in found.relations.values() if relation.round == 1}
    assert {"torch.max", "torch.relu", "torch.nn.Hardtanh"} <= second
    assert "torch.nn.AvgPool2d" not in second
    assert second <= found.totals.newly_covered
    assert found.totals.rounds == 2


def test_cases_are_new_and_run_and_are_compared_by_their_values(found: Found) -> None:
    own = {case.id for case in seeds()}
    ids = [case.id for case in found.cases]
    assert len(ids) == len(set(ids)) == found.totals.cases > 100
    assert not own & set(ids)
    for case in found.cases[::7]:
        assert isinstance(case.program, TorchCall)
        assert _torch.build(case.program).run(list(case.values()))
        assert case.comparison == "values" or "rrelu" in case.program.api or "dropout" in case.program.api


def test_two_searches_tell_the_same_in_the_same_order(found: Found) -> None:
    again = Found(Search(seeds(), Settings(rounds=2)))
    assert [_told(item) for item in again.items] == [_told(item) for item in found.items]


def _told(item: Item) -> object:
    return (item.id, item.provenance) if isinstance(item, TestCase) else item


def test_limits_on_new_cases_are_kept() -> None:
    few = Found(Search(seeds(), Settings(rounds=1, pair_cases=2, target_cases=3)))
    apis = [case.program.api for case in few.cases if isinstance(case.program, TorchCall)]
    assert max(apis.count(api) for api in apis) <= 3


def test_only_chosen_sources_are_tried() -> None:
    search = Search(seeds(), Settings(rounds=1), chosen=lambda name: name == "torch.nn.ReLU6")
    assert {source for source, _ in Found(search).relations} == {"torch.nn.ReLU6"}


def test_a_call_that_kills_the_library_is_told_and_ends_nothing() -> None:
    backend = str(Path(__file__).with_name("dying_eager.py"))
    some = Found(Search([recorded("torch.positive", X), recorded("torch.sign", X)], Settings(rounds=1), backend=backend))
    assert {(bug.api, bug.how) for bug in some.bugs} == {("torch.neg", "SIGSEGV")}
    assert some.relations["torch.positive", "torch.neg"].equivalence is None
    assert any(relation.equivalence for relation in some.relations.values())


def test_mutants_of_pairs_that_hold_become_cases_too() -> None:
    one = [recorded("torch.amax", X, 1)]
    plain, mutated = (Found(Search(one, Settings(rounds=1, mutants=count))) for count in (0, 8))
    assert len(mutated.cases) > len(plain.cases)
    drawn = [case for case in mutated.cases if case.provenance.seed == 0]
    assert drawn
    assert mutated.relations.keys() == plain.relations.keys()
