"""Laws of the outbox and of bugs: once, within the quota, never past a brake, every silence with a reason."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bot.errors import InternalError, UsageError
from bot.store import bugs, outbox, suppression, targets
from bot.store.database import Database
from bot.store.models import BugState, EffectState, SuppressionCause
from tests.bot.github.outbox_kit import START, campaign, check_run, database, issue, post, row
from tests.bot.reports import sample_campaign

LEASE = timedelta(minutes=1)
DAY = timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Database:
    made = database(tmp_path)
    campaign(made)
    return made


def bug_reason(store: Database, signature: str) -> tuple[str, str]:
    with store.reading() as session:
        bug = bugs.find(session, sample_campaign.TARGET, signature)
        assert bug is not None
        return bug.state, bug.reason


def test_posting_twice_is_posting_once(store: Database) -> None:
    first = post(store, check_run(), issue("a"))
    assert [posted.state for posted in first] == [EffectState.PENDING] * 2
    again = post(store, check_run(), issue("a"))
    assert again[1].reason == "known: its issue is in the outbox"
    with store.reading() as session:
        assert len(outbox.of_campaign(session, 1)) == 2


def test_a_bug_is_one_row_for_each_signature_and_target(store: Database) -> None:
    with store.transaction() as session:
        one = bugs.record_sighting(session, "o/n", "s", "title", START, "base is unknown")
        same = bugs.record_sighting(session, "o/n", "s", "other title", START + DAY)
        other = bugs.record_sighting(session, "o/m", "s", "title", START)
        assert one.id == same.id != other.id
        assert (one.title, one.first_seen, one.last_seen) == ("title", START, START + DAY)
        assert one.reason == "base is unknown"
        assert [bug.id for bug in bugs.of_target(session, "o/n")] == [one.id]


def test_a_bug_that_comes_back_begins_again(store: Database) -> None:
    with store.transaction() as session:
        bug = bugs.record_sighting(session, "o/n", "s", "title", START)
        bug.state = BugState.VERIFIED.value
        bugs.record_sighting(session, "o/n", "s", "title", START + DAY)
        assert (bug.state, bug.reason) == ("new", "seen again after it was verified")


def test_the_quota_holds_back_and_lets_go_the_next_day(store: Database) -> None:
    posted = post(store, issue("a"), issue("b"), issue("c"), check_run(), per_day=2)
    assert [p.state for p in posted] == [*[EffectState.PENDING] * 2, EffectState.HELD, EffectState.PENDING]
    assert posted[2].reason.startswith("over quota: 2 issues in 24 hours, reports.issues_per_day is 2")
    assert bug_reason(store, "c") == ("held", posted[2].reason)
    soon = post(store, issue("c"), per_day=2, at=START + DAY / 2)
    assert soon[0].state is EffectState.HELD
    later = post(store, issue("c"), issue("d"), issue("e"), per_day=2, at=START + DAY)
    assert [p.state for p in later] == [EffectState.PENDING, EffectState.PENDING, EffectState.HELD]
    assert post(store, issue("z", "other/target"), per_day=1, at=START + DAY)[0].state is EffectState.PENDING


def test_quotas_count_what_failed_as_nothing(store: Database) -> None:
    post(store, issue("a"), per_day=1)
    with store.transaction() as session:
        outbox.give_up(session, issue("a").key, "gone", START)
    assert post(store, issue("b"), per_day=1)[0].state is EffectState.PENDING
    assert bug_reason(store, "a") == ("new", "its issue could not be sent: gone")


def test_held_mode_waits_for_a_person(store: Database) -> None:
    draft = issue("a", hold="reports.mode is held")
    assert post(store, draft)[0].state is EffectState.HELD
    assert post(store, draft)[0].reason == "known: its issue is held: reports.mode is held"
    with store.transaction() as session:
        assert outbox.claim(session, START, LEASE, live=True) is None
        outbox.approve(session, draft.key)
        claimed = outbox.claim(session, START, LEASE, live=True)
        assert claimed is not None
        assert not claimed.resumed
        with pytest.raises(UsageError, match="is sending"):
            outbox.approve(session, draft.key)
        with pytest.raises(UsageError, match="there is no effect"):
            outbox.approve(session, "nothing")


def test_a_reported_bug_gets_no_second_issue(store: Database) -> None:
    post(store, issue("a"))
    with store.transaction() as session:
        outbox.mark_sent(session, issue("a").key, "https://github.com/acme/graphs/issues/5", 5, START)
    assert post(store, issue("a"))[0].reason == "known: reported as #5"
    with store.transaction() as session:
        session.delete(session.merge(row(store, issue("a").key)))
    posted = post(store, issue("a"))[0]
    assert (posted.state, posted.reason) == (None, "known: reported as #5")
    assert bug_reason(store, "a")[0] == "reported"


def test_an_issue_needs_a_bug(store: Database) -> None:
    with store.transaction() as session, pytest.raises(InternalError, match="unknown bug"):
        outbox.post(session, [issue("never seen")], campaign_id=1, issues_per_day=1, at=START)


def test_brakes_stop_one_target_or_all(store: Database) -> None:
    post(store, check_run("1"), check_run("2", "other/target"))
    with store.transaction() as session:
        outbox.enable_kill_switch(session, sample_campaign.TARGET, "too loud", START)
        outbox.enable_kill_switch(session, sample_campaign.TARGET, "still too loud", START)
        claimed = outbox.claim(session, START, LEASE, live=True)
        assert claimed is not None
        assert claimed.target == "other/target"
        assert [kill_switch.reason for kill_switch in outbox.kill_switches(session)] == ["still too loud"]
        outbox.enable_kill_switch(session, outbox.ALL_TARGETS, "stop", START)
        assert outbox.disable_kill_switch(session, sample_campaign.TARGET)
        assert outbox.claim(session, START, LEASE, live=True) is None
        assert outbox.disable_kill_switch(session, outbox.ALL_TARGETS)
        assert not outbox.disable_kill_switch(session, outbox.ALL_TARGETS)
        claimed = outbox.claim(session, START, LEASE, live=True)
        assert claimed is not None
        assert claimed.target == sample_campaign.TARGET


def test_effects_leave_in_order_and_one_sender_has_each(store: Database) -> None:
    post(store, check_run("b"))
    post(store, check_run("a"), at=START + timedelta(seconds=1))
    with store.transaction() as session:
        keys = [outbox.claim(session, START, LEASE, live=True) for _ in range(3)]
    assert [claimed and claimed.key for claimed in keys] == ["b", "a", None]


def test_an_abandoned_effect_is_resumed_when_its_lease_ends(store: Database) -> None:
    post(store, check_run())
    with store.transaction() as session:
        outbox.claim(session, START, LEASE, live=True)
        assert outbox.claim(session, START + LEASE / 2, LEASE, live=True) is None
        claimed = outbox.claim(session, START + LEASE, LEASE, live=True)
        assert claimed is not None
        assert (claimed.resumed, claimed.attempts) == (True, 2)


@pytest.mark.parametrize(("mode", "dry_run"), [("dry-run", True), ("held", False), ("auto", False)])
def test_the_mode_of_a_campaign_decides_who_sees_its_effects(
    mode: str, dry_run: bool, tmp_path: Path
) -> None:
    store = database(tmp_path)
    campaign(store, mode)
    post(store, check_run())
    with store.transaction() as session:
        claimed = outbox.claim(session, START, LEASE, live=True)
        assert claimed is not None
        assert claimed.dry_run is dry_run


def test_without_a_campaign_nothing_goes_live(store: Database) -> None:
    post(store, check_run(), campaign_id=None)
    with store.transaction() as session:
        claimed = outbox.claim(session, START, LEASE, live=True)
        assert claimed is not None
        assert claimed.dry_run


def test_a_failed_effect_that_is_released_is_looked_up_first(store: Database) -> None:
    post(store, check_run())
    with store.transaction() as session:
        outbox.give_up(session, "c0ffee", "no", START)
        outbox.approve(session, "c0ffee")
        claimed = outbox.claim(session, START, LEASE, live=True)
        assert claimed is not None
        assert (claimed.resumed, claimed.attempts) == (True, 1)
        assert [effect.key for effect in outbox.in_state(session, EffectState.SENDING)] == ["c0ffee"]


def test_what_was_only_written_down_is_sent_when_its_target_leaves_dry_run(tmp_path: Path) -> None:
    store = database(tmp_path)
    campaign(store, "dry-run", number=1)
    campaign(store, "dry-run", number=2)
    campaign(store, "auto", number=3)
    post(store, issue("a"), campaign_id=1)
    with store.transaction() as session:
        outbox.mark_sent(session, issue("a").key, "file:///outbox/a.json", None, START)
    assert bug_reason(store, "a") == ("reported", "written down, not sent: file:///outbox/a.json")
    assert post(store, issue("a"), campaign_id=2)[0].state is EffectState.SENT
    assert post(store, issue("a"), campaign_id=3)[0].state is EffectState.PENDING
    with store.transaction() as session:
        claimed = outbox.claim(session, START, LEASE, live=True)
        assert claimed is not None
        assert not claimed.dry_run
        outbox.mark_sent(session, claimed.key, "https://github.com/o/n/issues/1", 1, START)
    assert post(store, issue("a"), campaign_id=3)[0].reason == "known: reported as #1"


def test_a_person_may_release_what_was_only_written_down(store: Database) -> None:
    post(store, issue("a"))
    with store.transaction() as session:
        outbox.mark_sent(session, issue("a").key, "file:///outbox/a.json", None, START)
        outbox.approve(session, issue("a").key)
        assert outbox.claim(session, START, LEASE, live=True) is not None
        outbox.mark_sent(session, issue("a").key, "https://github.com/o/n/issues/1", 1, START)
        with pytest.raises(UsageError, match="is sent"):
            outbox.approve(session, issue("a").key)


def test_the_last_word_is_said_where_its_target_is_watched_again(store: Database) -> None:
    """A check run was at work when its repository was archived; its end was never sent."""
    draft = replace(check_run(), editable=True)
    post(store, draft)
    with store.transaction() as session:
        outbox.claim(session, START, timedelta(minutes=5), live=True)
    ended = replace(draft, payload={**draft.payload, "conclusion": "cancelled"})
    post(store, ended)
    with store.transaction() as session:
        targets.stop_work(session, sample_campaign.TARGET, "it was archived", START)
        outbox.mark_sent(session, draft.key, "url", None, START, remote_id="1")
    assert row(store, draft.key).state == "failed", "nothing more is sent there"
    with store.transaction() as session:
        suppression.reactivate(session, sample_campaign.TARGET, SuppressionCause.UNWATCHED, drop_unsent=True)
        claimed = outbox.claim(session, START, timedelta(minutes=5), live=True)
    assert claimed is not None
    assert (claimed.payload, claimed.remote_id) == (ended.payload, "1")


def refused(store: Database, cause: SuppressionCause, *, resumed: bool = False) -> None:
    """GitHub refuses the only effect, at its first try or after one that nobody knows the end of."""
    for _ in range(1 + resumed):
        with store.transaction() as session:
            claimed = outbox.claim(session, START, timedelta(0), live=True)
    assert claimed is not None
    with store.transaction() as session:
        assert outbox.refuse(session, claimed, "no", cause, START)


@pytest.mark.parametrize("drop_unsent", [True, False])
@pytest.mark.parametrize("cause", [SuppressionCause.UNWATCHED, SuppressionCause.NO_ISSUES])
def test_what_was_refused_for_a_cause_goes_on_when_that_ends(
    store: Database, cause: SuppressionCause, drop_unsent: bool
) -> None:
    post(store, issue("a"))
    refused(store, cause)
    assert row(store, issue("a").key).reason == "not sent: no"
    assert post(store, issue("a"))[0].state is EffectState.FAILED
    with store.transaction() as session:
        other = (
            SuppressionCause.NO_ISSUES if cause is SuppressionCause.UNWATCHED else SuppressionCause.UNWATCHED
        )
        assert suppression.reactivate(session, sample_campaign.TARGET, other, drop_unsent=drop_unsent) == 0
        assert suppression.reactivate(session, "other/target", cause, drop_unsent=drop_unsent) == 0
        assert suppression.reactivate(session, sample_campaign.TARGET, cause, drop_unsent=drop_unsent) == 1
    if not drop_unsent:
        there = row(store, issue("a").key)
        assert (there.state, there.reason, there.cause) == ("pending", "", "")
    assert post(store, issue("a"))[0].state is EffectState.PENDING


@pytest.mark.parametrize(
    ("cause", "resumed"), [(SuppressionCause.NONE, False), (SuppressionCause.UNWATCHED, True)]
)
def test_what_a_person_must_see_or_may_have_arrived_stays_refused(
    store: Database, cause: SuppressionCause, resumed: bool
) -> None:
    post(store, check_run())
    refused(store, cause, resumed=resumed)
    with store.transaction() as session:
        assert (
            suppression.reactivate(
                session, sample_campaign.TARGET, SuppressionCause.UNWATCHED, drop_unsent=True
            )
            == 0
        )
    assert row(store, "c0ffee").state == EffectState.FAILED.value
