"""DeepREL on a few recorded calls of the real torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzing.cases import Init, TestCase, TorchCall
from fuzzing.generate.deeprel.api_pairs import LibraryBug
from fuzzing.generate.deeprel.search import Item, Relation, Search, SearchSettings
from fuzzing.torch_api import samples
from tests.fuzzing.generate.deeprel.deeprel_helpers import X, recorded

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
        self.bugs = [item for item in self.items if isinstance(item, LibraryBug)]


@pytest.fixture(scope="module")
def found() -> Found:
    return Found(Search(seeds(), SearchSettings(rounds=2)))


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
        assert samples.observe_case(case).outputs  # which lets torch warn
        assert case.comparison == "values" or "rrelu" in case.program.api or "dropout" in case.program.api


def test_mutants_become_cases_too_and_two_searches_tell_the_same_in_the_same_order() -> None:
    settings = SearchSettings(rounds=1, candidates=3, mutants=8)
    one, other = (Found(Search(seeds()[4:7], settings)) for _ in range(2))
    assert {case.provenance.seed for case in one.cases} == {None, 0}
    assert [_told(item) for item in one.items] == [_told(item) for item in other.items]


def _told(item: Item) -> object:
    return (item.id, item.provenance) if isinstance(item, TestCase) else item


def test_only_chosen_sources_are_tried_and_limits_on_new_cases_are_kept() -> None:
    settings = SearchSettings(rounds=1, candidates=4, pair_cases=2, target_cases=3)
    search = Search(seeds(), settings, source_filter=lambda name: name == "torch.amax")
    few = Found(search)
    assert {source for source, _ in few.relations} == {"torch.amax"}
    apis = [case.program.api for case in few.cases if isinstance(case.program, TorchCall)]
    assert {apis.count(api) for api in apis} == {2}
    assert search.totals.covered > {"torch.amax", "torch.nn.ReLU6"}


def test_a_call_that_kills_the_library_is_told_and_ends_nothing() -> None:
    backend = str(Path(__file__).with_name("crashing_eager.py"))
    settings = SearchSettings(rounds=1, candidates=4)
    found = Found(Search([recorded("torch.positive", X)], settings, backend=backend))
    assert [(bug.api, bug.reason) for bug in found.bugs] == [("torch.Tensor.negative", "SIGSEGV")]
    assert found.relations["torch.positive", "torch.Tensor.negative"].equivalence is None
    assert found.relations["torch.positive", "torch.negative"].equivalence == "status"  # tried after it
