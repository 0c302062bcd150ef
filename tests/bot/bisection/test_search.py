"""The search alone: which revision it names, what that costs, and that it claims no more than it saw."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from bot.bisection.decision_rule import Counts, DecisionRule, RevisionStatus
from bot.bisection.releases import Range
from bot.bisection.search import BisectionResult, ResultKind, bisect, max_probed

GOOD, BAD, OTHER, GONE = "good", "bad", "other", "gone"


class History:
    """Revisions that each do the same in every run, or show the bug at a rate; counts what is asked."""

    def __init__(self, fates: Sequence[str | float], seed: int = 0) -> None:
        self._fates, self._random = fates, random.Random(seed)
        self.runs: dict[int, Counts] = {}

    def __call__(self, revision: int, runs: int) -> Counts:
        seen = [self._once(self._fates[revision]) for _ in range(runs)]
        counts = Counts(seen.count(BAD), seen.count(GOOD), seen.count(OTHER))
        self.runs[revision] = self.runs.get(revision, Counts()) + counts
        return counts

    def _once(self, fate: str | float) -> str:
        if isinstance(fate, str):
            return fate
        return BAD if self._random.random() < fate else GOOD

    def bisected(self, rule: DecisionRule | None = None) -> BisectionResult:
        return bisect(len(self._fates), self, rule)

    @property
    def spent(self) -> int:
        return sum(counts.runs for counts in self.runs.values())


@pytest.mark.parametrize(("revisions", "times"), [(1, 1), (2, 2), (4, 4), (15, 6), (16, 6), (17, 7), (27, 7)])
def test_the_bound_is_the_logarithm_and_two(revisions: int, times: int) -> None:
    assert max_probed(revisions) == times == min(revisions, math.ceil(math.log2(revisions)) + 2)


@given(st.integers(2, 300), st.data())
def test_a_change_that_always_shows_is_found_within_the_bound(size: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, size - 1))
    history = History([GOOD] * first + [BAD] * (size - first))
    answer = history.bisected()
    assert (answer.kind, answer.clean, answer.failing, answer.between) == (
        ResultKind.FOUND,
        first - 1,
        first,
        (),
    )
    assert answer.confidence > 0.999
    assert len(history.runs) == len(answer.classified) <= max_probed(size)
    assert history.spent == 2 * len(history.runs) + 8, "two runs each, and ten of the one that is named"


@given(st.integers(1, 300))
def test_what_never_fails_is_told_after_one_end(size: int) -> None:
    history = History([GOOD] * size)
    answer = history.bisected()
    assert (answer.kind, answer.clean, answer.failing) == (ResultKind.NEVER, size - 1, None)
    assert history.spent == 20, "a failure that somebody reported is not denied after two runs"
    assert set(history.runs) == {size - 1}


@given(st.integers(1, 300))
def test_what_fails_everywhere_is_told_after_both_ends(size: int) -> None:
    history = History([BAD] * size)
    answer = history.bisected()
    assert (answer.kind, answer.clean, answer.failing) == (ResultKind.HORIZON, None, 0)
    assert set(history.runs) == {0, size - 1}
    assert history.spent == 2 * len(history.runs)


@given(st.lists(st.sampled_from([GOOD, BAD, OTHER, GONE]), min_size=1, max_size=60))
def test_whatever_happened_only_what_was_seen_is_claimed(fates: list[str]) -> None:
    history = History(fates)
    answer = history.bisected()
    for revision, found in answer.classified.items():
        wanted = {GOOD: RevisionStatus.CLEAN, BAD: RevisionStatus.FAILING}
        assert found.status is wanted.get(fates[revision], RevisionStatus.SKIPPED)
    if answer.kind in (ResultKind.FOUND, ResultKind.RANGE):
        assert answer.clean is not None
        assert answer.failing is not None
        assert (fates[answer.clean], fates[answer.failing]) == (GOOD, BAD)
        assert list(answer.between) == list(range(answer.clean + 1, answer.failing))
        assert all(fates[between] in (OTHER, GONE) for between in answer.between)
        assert (answer.kind is ResultKind.FOUND) == (answer.between == ())
        assert history.runs[answer.clean].runs >= 10
    elif answer.kind is ResultKind.HORIZON:
        assert answer.failing is not None
        assert fates[answer.failing] == BAD
        assert all(fate in (OTHER, GONE) for fate in fates[: answer.failing])
    elif answer.kind is ResultKind.NEVER:
        assert answer.clean is not None
        assert fates[answer.clean] == GOOD
        assert all(fate in (OTHER, GONE) for fate in fates[answer.clean + 1 :])
    else:
        assert answer.kind is ResultKind.ERROR
        assert set(fates) <= {OTHER, GONE}


@given(st.integers(2, 100), st.data())
def test_with_skips_the_change_lies_in_the_range(size: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, size - 1))
    skipped = data.draw(st.sets(st.integers(0, size - 1)))
    fates = [OTHER if at in skipped else GOOD if at < first else BAD for at in range(size)]
    answer = History(fates).bisected()
    clean = max((at for at in range(first) if at not in skipped), default=None)
    failing = min((at for at in range(first, size) if at not in skipped), default=None)
    if clean is not None and failing is not None:
        assert (answer.clean, answer.failing) == (clean, failing)
        assert answer.kind is (ResultKind.FOUND if failing == clean + 1 else ResultKind.RANGE)
    elif failing is not None:
        assert (answer.kind, answer.failing) == (ResultKind.HORIZON, failing)
    else:
        assert answer.kind is (ResultKind.ERROR if clean is None else ResultKind.NEVER)


def test_skipped_revisions_that_lie_together_are_soon_left() -> None:
    history = History([GOOD] * 20 + [OTHER] * 30 + [GOOD] * 6 + [BAD] * 8)
    assert history.bisected().failing == 56
    assert len(history.runs) <= 10


@pytest.mark.parametrize("rate", [0.9, 0.5, 0.3])
def test_a_flaky_change_is_named_wrongly_at_most_as_often_as_told(rate: float) -> None:
    wrong, expected = 0, 0.0
    for seed in range(400):
        answer = History([GOOD] * 11 + [rate] * 9, seed).bisected()
        if answer.kind is ResultKind.FOUND:
            wrong += answer.failing != 11
            expected += 1 - answer.confidence
    assert wrong <= max(4, 3 * expected), (wrong, expected)


def test_runs_that_disagree_make_all_revisions_cost_more() -> None:
    history = History([GOOD] * 8 + [0.5] * 8, seed=3)
    answer = history.bisected()
    assert (answer.kind, answer.failing) == (ResultKind.FOUND, 8)
    assert all(counts.runs >= 10 for counts in history.runs.values() if counts.good)


def test_a_revision_that_was_overlooked_is_found_by_the_runs_before_it_is_named() -> None:
    def probe(revision: int, runs: int) -> Counts:
        seen[revision] = seen.get(revision, 0) + runs
        if revision >= 6:
            return Counts(bad=runs)
        if revision < 4:
            return Counts(good=runs)
        return Counts(good=2) if seen[revision] == 2 else Counts(bad=5, good=runs - 5)

    seen: dict[int, int] = {}
    answer = bisect(8, probe)
    assert (answer.kind, answer.clean, answer.failing) == (ResultKind.FOUND, 3, 4)


def test_a_failure_too_rare_to_follow_is_called_unreliable() -> None:
    assert bisect(8, _once_bad()).kind is ResultKind.UNRELIABLE


def _once_bad() -> Callable[[int, int], Counts]:
    left = [1]

    def probe(_revision: int, runs: int) -> Counts:
        bad = left[0]
        left[0] = 0
        return Counts(bad=bad, good=runs - bad)

    return probe


def test_trouble_is_tried_again_and_never_taken_for_clean() -> None:
    requested: list[int] = []

    def probe(revision: int, runs: int) -> Counts:
        requested.append(revision)
        if revision == 0 and requested.count(0) < 3:
            return Counts(infrastructure=runs)
        return Counts(bad=runs) if revision >= 5 else Counts(good=runs)

    assert bisect(9, probe).failing == 5
    assert requested.count(0) == 3
    broken = bisect(9, lambda _revision, runs: Counts(infrastructure=runs))
    assert broken.kind is ResultKind.ERROR


#: What ONNX's node tests did on 27 releases of OpenVINO, each of them run: verdict and symptom.
REAL = json.loads(
    (Path(__file__).parents[2] / "benchmarks" / "bisection_data" / "openvino.json").read_bytes()
)
DID = {name: [label for label, times in row for _ in range(times)] for name, row in REAL["did"].items()}


def fates_of(did: list[str], *, fixed_by: bool) -> list[str]:
    """What the runs of some releases mean to a search, in its order."""
    ordered = did[::-1] if fixed_by else did
    clean = ("pass",) if fixed_by else ("pass", "unsupported")
    wanted = None if ordered[-1] in clean else ordered[-1]
    return [BAD if one == wanted else GOOD if one in clean else OTHER for one in ordered]


@pytest.mark.parametrize("name", DID)
@pytest.mark.parametrize("fixed_by", [False, True])
def test_real_histories_are_never_said_to_be_other_than_they_were(name: str, fixed_by: bool) -> None:
    fates = fates_of(DID[name], fixed_by=fixed_by)
    assert len(fates) == 27
    answer = History(fates).bisected()
    changes = sum(before != after for before, after in pairwise(fates))
    if set(fates) == {GOOD, BAD} and changes == 1:
        assert (answer.kind, answer.failing) == (ResultKind.FOUND, fates.index(BAD))
        assert len(answer.classified) <= max_probed(27)
    elif answer.clean is not None and answer.failing is not None:
        assert (fates[answer.clean], fates[answer.failing]) == (GOOD, BAD)
        assert {fates[one] for one in answer.between} <= {OTHER}


@pytest.mark.parametrize("case", REAL["cases"], ids=lambda case: f"{case['test']}-{case['asked']}")
def test_what_the_benchmark_expects_is_the_one_change_that_was_seen(case: dict[str, str]) -> None:
    wanted = Range.parse(case["range"])
    inside = [
        at
        for at, release in enumerate(REAL["releases"])
        if SpecifierSet(f">={wanted.oldest},{wanted.end}").contains(release)
    ]
    fixed_by = case["asked"] == "fixed by"
    fates = fates_of([DID[case["test"]][at] for at in inside], fixed_by=fixed_by)
    named = [REAL["releases"][at] for at in (inside[::-1] if fixed_by else inside)]
    changes = [at for at, pair in enumerate(pairwise(fates)) if pair == (GOOD, BAD)]
    clean, failing = case["release"], case["before"]
    if not fixed_by:
        clean, failing = failing, clean
    assert [(named[at], named[at + 1]) for at in changes] == [(clean, failing)]


def test_nothing_cannot_be_bisected() -> None:
    with pytest.raises(ValueError, match="no revisions to bisect"):
        bisect(0, History([]))


@pytest.mark.parametrize(
    ("counts", "flaky", "status"),
    [
        (Counts(bad=2, good=8), False, RevisionStatus.FAILING),
        (Counts(bad=1, good=9), False, RevisionStatus.SKIPPED),
        (Counts(bad=2, good=18), False, RevisionStatus.SKIPPED),
        (Counts(bad=3, good=17), False, RevisionStatus.FAILING),
        (Counts(good=5, other=5), False, RevisionStatus.CLEAN),
        (Counts(good=14, other=6), True, RevisionStatus.SKIPPED),
        (Counts(good=15, other=5), True, RevisionStatus.CLEAN),
        (Counts(good=3, other=3, infrastructure=4), False, RevisionStatus.INFRASTRUCTURE),
        (Counts(bad=2, other=8), False, RevisionStatus.SKIPPED),
        (Counts(good=1, bad=1), False, None),
    ],
)
def test_the_rule_for_one_revision(counts: Counts, flaky: bool, status: RevisionStatus | None) -> None:
    assert DecisionRule().classify(counts, 10, flaky=flaky) is status
