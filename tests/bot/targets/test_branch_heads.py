"""Which commit a branch is at, whatever the order in which its pushes arrive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.store.models import Target
from bot.targets import branch_heads
from bot.targets.branch_heads import PushOrder
from bot.webhooks.intents import CampaignIntent

START = datetime(2026, 1, 1, tzinfo=UTC)


def target(**fields: object) -> Target:
    row = Target(name="octo/compiler", default_branch="main", heads={}, policy={})
    for name, value in fields.items():
        setattr(row, name, value)
    return row


def push(number: int, second: int, branch: str = "main") -> CampaignIntent:
    """The push that takes a branch from commit `number - 1` to commit `number`."""
    return CampaignIntent(
        target="octo/compiler",
        head=f"{number:040x}",
        base=f"{number - 1:040x}",
        ref=f"refs/heads/{branch}",
        trigger="push",
        at=START + timedelta(seconds=second),
    )


def take(row: Target, intent: CampaignIntent) -> PushOrder:
    place = branch_heads.classify_push(row, intent)
    if place is PushOrder.NEXT:
        assert intent.at is not None
        branch_heads.record_head(row, "main", intent.head, intent.at)
    return place


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int]]:
    """(number, second) of pushes in the order they were made, some in the same second, each at least once."""
    seconds = sorted(draw(st.lists(st.integers(0, 5), min_size=1, max_size=8)))
    return list(enumerate(seconds, start=1))


@given(history=histories(), data=st.data())
def test_the_last_push_wins_in_any_order_or_github_is_asked(
    history: list[tuple[int, int]], data: st.DataObject
) -> None:
    doubled = history + data.draw(st.lists(st.sampled_from(history), max_size=4))
    row = target()
    places = [take(row, push(*one)) for one in data.draw(st.permutations(doubled))]
    last = f"{history[-1][0]:040x}"
    if PushOrder.AMBIGUOUS not in places:
        assert row.heads["main"]["commit"] == last
    else:  # only what happened in one second cannot be told apart
        seconds = [second for _, second in history]
        assert len(set(seconds)) < len(seconds)


@given(order=st.permutations(range(1, 7)))
def test_pushes_of_different_seconds_are_never_unclear(order: list[int]) -> None:
    row = target()
    places = [take(row, push(number, number)) for number in order]
    assert PushOrder.AMBIGUOUS not in places
    assert row.heads["main"]["commit"] == f"{6:040x}"


def test_in_order_every_push_is_the_next_even_within_one_second() -> None:
    row = target()
    assert [take(row, push(number, 0)) for number in range(1, 6)] == [PushOrder.NEXT] * 5
    assert take(row, push(5, 0)) is PushOrder.CURRENT


def test_a_forced_push_back_is_a_push() -> None:
    row = target()
    take(row, push(1, 0))
    take(row, push(2, 1))
    back = branch_heads.classify(row.heads["main"], f"{1:040x}", f"{2:040x}", START + timedelta(seconds=2))
    assert back is PushOrder.NEXT


def test_a_push_without_a_time_is_believed() -> None:
    row = target(heads={"main": {"commit": "a" * 40, "at": START.isoformat()}})
    assert branch_heads.classify(row.heads["main"], "c" * 40, "b" * 40, None) is PushOrder.NEXT


def test_only_the_last_branches_are_remembered_and_watched_ones_always() -> None:
    row = target(policy={"branches": ["main", "release/*"]})
    branch_heads.record_head(row, "main", "a" * 40, START)
    branch_heads.record_head(row, "release/1", "b" * 40, START)
    for number in range(branch_heads.MAX_UNWATCHED + 30):
        branch_heads.record_head(row, f"topic-{number}", "c" * 40, START + timedelta(seconds=number))
    assert len(row.heads) == branch_heads.MAX_UNWATCHED + 2
    assert "topic-29" not in row.heads
    assert branch_heads.list_watched(row) == ["main", "release/1"]


def test_without_patterns_the_default_branch_is_watched() -> None:
    assert branch_heads.list_watched(target()) == ["main"]
    assert branch_heads.list_watched(target(default_branch="")) == []
    assert branch_heads.list_watched(target(policy={"branches": ["dev", "v?"]})) == ["dev"]
