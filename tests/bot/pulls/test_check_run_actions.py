"""The buttons of check runs: who may press them, and what they do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bot.pulls import check_run_actions
from bot.reports.buttons import MUTE, MUTE_FOR, REDUCE, RERUN
from bot.store import audit, findings, mutes
from bot.store.models import Bug, CampaignState, Classification, Effect, Finding, Job, TargetName
from bot.webhooks.intents import CheckIntent, Ignored
from fuzzing.cases import Corpus
from tests.bot.pulls.pulls_kit import START, TARGET, PullHarness, head, pull_intent
from tests.bot.reports.sample_campaign import case_named

WRITER = "maintainer"


@pytest.fixture
def checked(harness: PullHarness) -> PullHarness:
    """A pull request whose campaign is over; two of its findings are new, of two bugs."""
    harness.github_reader.roles = {WRITER: "write", "stranger": "read"}
    harness.receive(pull_intent())
    harness.work()
    cases = [case_named(f"test_{name}", name) for name in ("Add", "Mod", "Sin")]
    with harness.database.transaction() as session:
        for number, case in enumerate(cases, 1):
            Corpus(harness.corpus).add(case)
            session.add(Bug(id=number, target=TARGET, signature=str(number), title="t", state="new",
                            reason="", first_seen=harness.clock.now(),
                            last_seen=harness.clock.now()))  # fmt: skip
        session.flush()
        standings = (Classification.REGRESSION, Classification.REGRESSION, Classification.ALREADY_BROKEN)
        rows = [
            Finding(campaign_id=1, case_id=case.id, classification=classification.value, verdict="crash",
                    signature=str(number), bug_id=number)
            for number, (case, classification) in enumerate(zip(cases, standings, strict=True), 1)
        ]  # fmt: skip
        findings.replace(session, 1, rows)
    harness.change(lambda row: setattr(row, "state", CampaignState.DONE.value), 1)
    return harness


def press(harness: PullHarness, action: str, sender: str = WRITER, **changes: Any) -> object:
    """Presses a button of the only check run, and does what follows."""
    answer = receive(harness, action, sender, **changes)
    harness.work()
    return answer


def receive(harness: PullHarness, action: str, sender: str = WRITER, **changes: Any) -> object:
    """Has the delivery of a press read; what follows waits."""
    fields: dict[str, Any] = {
        "target": TARGET,
        "delivery": f"d-{action}-{sender}",
        "action": action,
        "head": head(1),
        "external_id": harness.effects()[0].key,
        "sender": sender,
    }
    with harness.database.transaction() as session:
        return check_run_actions.handle(session, CheckIntent(**(fields | changes)), clock=harness.clock.now)


def rows(harness: PullHarness, kind: str) -> list[Job]:
    with harness.database.reading() as session:
        return session.query(Job).where(Job.kind == kind).order_by(Job.id).all()


def top(harness: PullHarness) -> str:
    """The first line of the check run, as people read it."""
    summary: str = harness.effects()[0].payload["output"]["summary"]
    return summary.split("\n")[0].replace("\\", "").replace("\u200b", "")


@pytest.mark.parametrize("action", [RERUN.identifier, "rerequested"])
def test_a_rerun_is_a_campaign_of_the_same_commit(checked: PullHarness, action: str) -> None:
    press(checked, action)
    first, second = checked.campaigns()
    assert (second.head, second.trigger, second.requested_by) == (first.head, "pull_request:7:2", WRITER)
    assert top(checked) == f"> {WRITER}: another test is queued, with a check run of its own"
    assert len(checked.effects()) == 2, "the check run that was pressed stays, the new campaign has its own"


def test_all_checks_of_a_commit_again_is_the_latest_again(checked: PullHarness) -> None:
    press(checked, "rerequested", external_id="")
    assert len(checked.campaigns()) == 2


def test_a_press_that_is_delivered_twice_counts_once(checked: PullHarness) -> None:
    for _ in range(2):
        press(checked, RERUN.identifier)
    assert len(checked.campaigns()) == 2


def test_who_may_not_write_changes_nothing(checked: PullHarness) -> None:
    before = checked.effects()[0].payload
    for action in (RERUN.identifier, REDUCE.identifier, MUTE.identifier):
        press(checked, action, "stranger")
    assert len(checked.campaigns()) == 1
    assert (rows(checked, "reduce"), checked.effects()[0].payload) == ([], before)
    with checked.database.reading() as session:
        assert mutes.in_force(session, TARGET, checked.clock.now()) == []
        audit_events = [act for act in audit.of(session, TARGET, "pull:7") if act.action == "refused"]
    assert [act.actor for act in audit_events] == ["stranger"] * 3


def test_pressing_releases_nothing_of_a_fork(harness: PullHarness) -> None:
    harness.github_reader.roles = {WRITER: "admin"}
    harness.receive(pull_intent(head_repository="stranger/compiler", association="NONE"))
    harness.work()
    press(harness, "rerequested")
    assert harness.campaigns() == []


def test_a_head_that_was_pushed_over_is_not_tested_again(checked: PullHarness) -> None:
    check = checked.effects()[0].key
    checked.receive(pull_intent(head=head(2), updated_at=checked.clock.now() + timedelta(seconds=9)))
    checked.work()
    press(checked, RERUN.identifier, external_id=check)
    assert [one.head for one in checked.campaigns()] == [head(1), head(2)]


@pytest.mark.parametrize("action", [RERUN.identifier, "rerequested"])
def test_who_says_stop_after_a_press_is_not_overruled_by_it(checked: PullHarness, action: str) -> None:
    """The press came first, and waits for GitHub's word on who may; what is done last was not said last."""
    receive(checked, action)
    checked.clock.advance(1)
    assert checked.stop() == 1
    checked.work()
    assert [one.state for one in checked.campaigns()] == ["done"]
    assert (
        top(checked) == f"> {WRITER}: stopped by maintainer after the press: the commit is not tested again"
    )
    checked.receive(pull_intent(action="edited", updated_at=START + timedelta(minutes=1)))
    checked.work()
    assert len(checked.campaigns()) == 1, "no event that comes later brings it back"
    press(checked, action, delivery="another")
    assert len(checked.campaigns()) == 2, "who presses once more wants it after all"


def test_a_stop_in_the_middle_of_a_press_that_came_first_is_heeded(
    checked: PullHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, stopped = checked.github_reader.permission, []

    def permission(target: str, login: str) -> str:
        stopped.append(checked.stop())
        return ask(target, login)

    monkeypatch.setattr(checked.github_reader, "permission", permission)
    press(checked, RERUN.identifier)
    assert (stopped, len(checked.campaigns())) == ([1], 1)


def test_who_presses_after_a_stop_that_is_carried_out_late_is_heard(checked: PullHarness) -> None:
    commented_at = checked.clock.now()
    checked.clock.advance(1)
    receive(checked, RERUN.identifier)
    assert checked.stop(commented_at=commented_at) == 0
    checked.work()
    assert len(checked.campaigns()) == 2


def test_a_stop_leaves_the_presses_of_other_buttons_and_pull_requests(checked: PullHarness) -> None:
    checked.receive(pull_intent(8))
    checked.work()
    checked.change(lambda row: setattr(row, "state", CampaignState.DONE.value), 2)
    receive(checked, MUTE.identifier)
    receive(checked, RERUN.identifier, external_id=checked.effects()[-1].key)
    assert checked.stop() == 0
    checked.work()
    assert [one.pull for one in checked.campaigns()] == [7, 8, 8]
    assert "muted Add, Mod" in top(checked)


def test_reducing_asks_for_a_job_for_each_new_bug(checked: PullHarness) -> None:
    press(checked, REDUCE.identifier)
    assert [(job.bug_id, job.campaign_id, job.requested_by) for job in rows(checked, "reduce")] == [
        (1, 1, WRITER),
        (2, 1, WRITER),
    ]
    assert top(checked) == f"> {WRITER}: reductions of 2 bugs are queued"


def test_muting_silences_the_operators_of_what_is_new(checked: PullHarness) -> None:
    press(checked, MUTE.identifier)
    at = checked.clock.now()
    with checked.database.reading() as session:
        muted = mutes.in_force(session, TARGET, at)
    assert [(one.operator, one.by, one.until - at) for one in muted] == [
        ("Add", WRITER, MUTE_FOR),
        ("Mod", WRITER, MUTE_FOR),
    ]
    assert "muted Add, Mod until 2026-03-31" in top(checked)


def test_only_the_last_notes_are_kept(checked: PullHarness) -> None:
    before = checked.effects()[0].payload["output"]["summary"]
    for number in range(check_run_actions.MAX_NOTES + 3):
        press(checked, MUTE.identifier, delivery=f"d-{number}")
    summary = checked.effects()[0].payload["output"]["summary"]
    assert summary.count("> maintainer: muted") == check_run_actions.MAX_NOTES
    assert summary.endswith(before)


def test_what_is_not_ours_is_ignored(checked: PullHarness) -> None:
    assert isinstance(press(checked, "format-disk"), Ignored)
    assert isinstance(press(checked, RERUN.identifier, external_id="f" * 32), Ignored)
    with checked.database.transaction() as session:
        session.add(TargetName(name="other/place"))
        session.flush()
        session.query(Effect).update({Effect.target: "other/place"})
    assert isinstance(press(checked, RERUN.identifier), Ignored)


def test_a_branch_is_tested_again_too(checked: PullHarness) -> None:
    checked.change(lambda row: setattr(row, "pull", None), 1)
    press(checked, "rerequested")
    first, second = checked.campaigns()
    assert (second.head, second.base, second.ref) == (first.head, first.base, first.ref)
    assert second.trigger.startswith("rerun:")
