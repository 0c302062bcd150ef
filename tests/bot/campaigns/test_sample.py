"""A sample is fair, even, equal for equal seeds, and drawn once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.campaigns.plan.case_source import CatalogPart, SourceReport
from bot.campaigns.plan.planner import read_source_reports
from bot.campaigns.plan.sample import Sample
from bot.reports.plan_summary import describe_source_state
from bot.store import campaigns
from tests.bot.campaigns.conftest import World
from tests.bot.campaigns.fakes import IDS


@dataclass
class Listed:
    """A source of these tests; the ids count from `first`."""

    names: Sequence[str]
    first: int = 0
    ids: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = [f"{self.first + place:032x}{'0' * 32}" for place in range(len(self.names))]

    def cases(self) -> Iterator[str]:
        return iter(self.ids)

    def tests(self) -> Iterator[tuple[str, str]]:
        return zip(self.ids, self.names, strict=True)

    def operators(self, wanted: Collection[str]) -> dict[str, str]:
        return {case_id: name for case_id, name in self.tests() if case_id in wanted}

    def account(self) -> SourceReport:
        return SourceReport("listed", cases=len(self.ids))

    def parts(self) -> Sequence[CatalogPart]:
        return ()

    def arguments(self) -> list[str]:
        return ["--corpus", "all"]


def draw(size: int, seed: int, *sources: Listed) -> list[str]:
    return [case_id for one in Sample(size, seed).of(sources) for case_id in one.cases()]


@given(count=st.integers(0, 60), size=st.integers(1, 70), seed=st.integers(0, 2**32))
def test_a_sample_has_its_size_or_everything(count: int, size: int, seed: int) -> None:
    source = Listed([f"{number:02}" for number in range(count)])
    drawn = draw(size, seed, source)
    assert len(set(drawn)) == len(drawn) == min(size, count)
    assert drawn == [case_id for case_id in source.ids if case_id in drawn], "in the order of the source"
    assert drawn == draw(size, seed, source)


@pytest.mark.parametrize(("count", "size"), [(10, 7), (10, 3), (7, 6)])
def test_each_case_has_the_same_chance(count: int, size: int) -> None:
    """Also where stretches differ in length. A binomial count strays by six deviations once in 10⁹."""
    source, seeds = Listed([str(number) for number in range(count)]), 4000
    chosen = Counter(case_id for seed in range(seeds) for case_id in draw(size, seed, source))
    mean, chance = seeds * size / count, size / count
    allowed = 6 * (seeds * chance * (1 - chance)) ** 0.5
    assert all(abs(chosen[case_id] - mean) < allowed for case_id in source.ids)


def test_a_sample_stays_mostly_the_same_as_its_sources_grow() -> None:
    """Sources are collected in parts; the next campaign then knows verdicts and reductions."""
    everything = Listed([f"operator{number // 16:02}" for number in range(480)])
    begun = Listed([name for number, name in enumerate(everything.names) if number % 4])
    begun.ids = [case_id for number, case_id in enumerate(everything.ids) if number % 4]
    kept = [len({*draw(40, seed, begun)} & {*draw(40, seed, everything)}) for seed in range(20)]
    assert sum(kept) > 20 * 40 * 0.6, "three quarters of the cases were there before"


@given(st.lists(st.integers(1, 40), min_size=2, max_size=6), st.integers(1, 60), st.integers(0, 1000))
def test_names_that_begin_alike_get_their_share(lengths: list[int], size: int, seed: int) -> None:
    names = [f"rule{rule}/api{api:02}" for rule, length in enumerate(lengths) for api in range(length)]
    drawn = draw(size, seed, source := Listed(names))
    share = len(drawn) / len(names)
    found = Counter(name.split("/")[0] for name in source.operators(drawn).values())
    for rule, length in enumerate(lengths):
        assert abs(found[f"rule{rule}"] - share * length) < 2


def test_sources_share_one_sample_and_a_case_of_both_counts_once() -> None:
    one, other = Listed(["a"] * 30), Listed(["b"] * 30, first=10)
    first, second = Sample(20, 5).of([one, other])
    reports = [first.account(), second.account()]
    assert [report.cases for report in reports] == [30, 10]
    assert sum(report.drawn or 0 for report in reports) == 20
    assert abs((reports[1].drawn or 0) - 5) < 2
    assert len({*first.cases(), *second.cases()}) == 20
    drawn = reports[0].drawn or 0
    assert describe_source_state(reports[0]) == f"{drawn} of 30 cases drawn ({drawn / 30:.1%})"
    assert SourceReport.from_json(reports[0].to_json()) == reports[0]
    assert "drawn" not in one.account().to_json()


def test_what_comes_later_is_not_drawn() -> None:
    source, sample = Listed(["a"] * 8), Sample(4, 1)
    before = [list(one.cases()) for one in sample.of([source])]
    later = Listed(["a"] * 80)
    [again] = sample.of([later])
    assert [list(again.cases())] == before
    assert (again.account().cases, again.account().drawn) == (8, 4)


def test_a_campaign_plans_its_sample(world: World) -> None:
    world.use(sample=Sample(3, 7))
    campaign_id = world.push()
    world.run()
    with world.database.reading() as session:
        planned = list(campaigns.planned_cases(session, campaign_id))
    assert len(planned) == 3
    assert set(planned) < set(IDS.values())
    [account] = read_source_reports(world.campaign(campaign_id).plan)
    assert (account.cases, account.drawn) == (len(IDS), 3)


def test_the_ranking_orders_the_sample(world: World) -> None:
    world.tools.order = lambda found: found[::-1]
    world.use(sample=Sample(3, 7))
    campaign_id = world.push()
    world.run()
    with world.database.reading() as session:
        planned: list[Any] = list(campaigns.planned_cases(session, campaign_id))
    assert planned == [case_id for case_id in list(IDS.values())[::-1] if case_id in planned]
