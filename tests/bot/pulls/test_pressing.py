"""The buttons of check runs: who may press them, and what they do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bot.pulls import pressing
from bot.reports.buttons import MUTE, MUTE_FOR, REDUCE, RERUN
from bot.store import audit, findings, mutes
from bot.store.models import Bug, CampaignState, Effect, Finding, Job, Standing
from bot.webhooks.intents import CheckIntent, Ignored
from fuzzing.cases import Corpus
from tests.bot.pulls.pulls_kit import START, TARGET, Room, head, told
from tests.bot.reports.sample import case_named

WRITER = "maintainer"


@pytest.fixture
def checked(room: Room) -> Room:
    """A pull request whose campaign is over; two of its findings are new, of two bugs."""
    room.forge.roles = {WRITER: "write", "stranger": "read"}
    room.hear(told())
    room.work()
    cases = [case_named(f"test_{name}", name) for name in ("Add", "Mod", "Sin")]
    with room.database.transaction() as session:
        for number, case in enumerate(cases, 1):
            Corpus(room.corpus).add(case)
            session.add(Bug(id=number, target=TARGET, signature=str(number), title="t", state="new",
                            reason="", first_seen=room.clock.now(), last_seen=room.clock.now()))  # fmt: skip
        session.flush()
        standings = (Standing.REGRESSION, Standing.REGRESSION, Standing.ALREADY_BROKEN)
        rows = [
            Finding(campaign_id=1, case_id=case.id, standing=standing.value, verdict="crash",
                    signature=str(number), bug_id=number)
            for number, (case, standing) in enumerate(zip(cases, standings, strict=True), 1)
        ]  # fmt: skip
        findings.replace(session, 1, rows)
    room.change(lambda row: setattr(row, "state", CampaignState.DONE.value), 1)
    return room


def press(room: Room, action: str, sender: str = WRITER, **changes: Any) -> object:
    """Presses a button of the only check run, and does what follows."""
    answer = hear(room, action, sender, **changes)
    room.work()
    return answer


def hear(room: Room, action: str, sender: str = WRITER, **changes: Any) -> object:
    """Has the delivery of a press read; what follows waits."""
    fields: dict[str, Any] = {
        "target": TARGET,
        "delivery": f"d-{action}-{sender}",
        "action": action,
        "head": head(1),
        "external_id": room.effects()[0].key,
        "sender": sender,
    }
    with room.database.transaction() as session:
        return pressing.handle(session, CheckIntent(**(fields | changes)), clock=room.clock.now)


def rows(room: Room, kind: str) -> list[Job]:
    with room.database.reading() as session:
        return session.query(Job).where(Job.kind == kind).order_by(Job.id).all()


def top(room: Room) -> str:
    """The first line of the check run, as people read it."""
    summary: str = room.effects()[0].payload["output"]["summary"]
    return summary.split("\n")[0].replace("\\", "").replace("\u200b", "")


@pytest.mark.parametrize("action", [RERUN.identifier, "rerequested"])
def test_a_rerun_is_a_campaign_of_the_same_commit(checked: Room, action: str) -> None:
    press(checked, action)
    first, second = checked.campaigns()
    assert (second.head, second.trigger, second.asked_by) == (first.head, "pull_request:7:2", WRITER)
    assert top(checked) == f"> {WRITER}: asked for another test; it has a check run of its own"
    assert len(checked.effects()) == 2, "the check run that was pressed stays, the new campaign has its own"


def test_all_checks_of_a_commit_again_is_the_latest_again(checked: Room) -> None:
    press(checked, "rerequested", external_id="")
    assert len(checked.campaigns()) == 2


def test_a_press_that_is_delivered_twice_counts_once(checked: Room) -> None:
    for _ in range(2):
        press(checked, RERUN.identifier)
    assert len(checked.campaigns()) == 2


def test_who_may_not_write_changes_nothing(checked: Room) -> None:
    before = checked.effects()[0].payload
    for action in (RERUN.identifier, REDUCE.identifier, MUTE.identifier):
        press(checked, action, "stranger")
    assert len(checked.campaigns()) == 1
    assert (rows(checked, "reduce"), checked.effects()[0].payload) == ([], before)
    with checked.database.reading() as session:
        assert mutes.in_force(session, TARGET, checked.clock.now()) == []
        acts = [act for act in audit.of(session, TARGET, "pull:7") if act.what == "refused"]
    assert [act.who for act in acts] == ["stranger"] * 3


def test_pressing_releases_nothing_of_a_fork(room: Room) -> None:
    room.forge.roles = {WRITER: "admin"}
    room.hear(told(head_repository="stranger/compiler", association="NONE"))
    room.work()
    press(room, "rerequested")
    assert room.campaigns() == []


def test_a_head_that_was_pushed_over_is_not_tested_again(checked: Room) -> None:
    check = checked.effects()[0].key
    checked.hear(told(head=head(2), updated_at=checked.clock.now() + timedelta(seconds=9)))
    checked.work()
    press(checked, RERUN.identifier, external_id=check)
    assert [one.head for one in checked.campaigns()] == [head(1), head(2)]


@pytest.mark.parametrize("action", [RERUN.identifier, "rerequested"])
def test_who_says_stop_after_a_press_is_not_overruled_by_it(checked: Room, action: str) -> None:
    """The press came first, and waits for GitHub's word on who may; what is done last was not said last."""
    hear(checked, action)
    checked.clock.advance(1)
    assert checked.stop() == 1
    checked.work()
    assert [one.state for one in checked.campaigns()] == ["done"]
    assert top(checked) == f"> {WRITER}: stopped by maintainer after this: it is not tested again"
    checked.hear(told(action="edited", updated_at=START + timedelta(minutes=1)))
    checked.work()
    assert len(checked.campaigns()) == 1, "no event that comes later brings it back"
    press(checked, action, delivery="another")
    assert len(checked.campaigns()) == 2, "who presses once more wants it after all"


def test_a_stop_in_the_middle_of_a_press_that_came_first_is_heeded(
    checked: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, stopped = checked.forge.permission, []

    def permission(target: str, login: str) -> str:
        stopped.append(checked.stop())
        return ask(target, login)

    monkeypatch.setattr(checked.forge, "permission", permission)
    press(checked, RERUN.identifier)
    assert (stopped, len(checked.campaigns())) == ([1], 1)


def test_who_presses_after_a_stop_that_is_carried_out_late_is_heard(checked: Room) -> None:
    said = checked.clock.now()
    checked.clock.advance(1)
    hear(checked, RERUN.identifier)
    assert checked.stop(said=said) == 0
    checked.work()
    assert len(checked.campaigns()) == 2


def test_a_stop_leaves_the_presses_of_other_buttons_and_pull_requests(checked: Room) -> None:
    checked.hear(told(8))
    checked.work()
    checked.change(lambda row: setattr(row, "state", CampaignState.DONE.value), 2)
    hear(checked, MUTE.identifier)
    hear(checked, RERUN.identifier, external_id=checked.effects()[-1].key)
    assert checked.stop() == 0
    checked.work()
    assert [one.pull for one in checked.campaigns()] == [7, 8, 8]
    assert "muted Add, Mod" in top(checked)


def test_reducing_asks_for_a_job_for_each_new_bug(checked: Room) -> None:
    press(checked, REDUCE.identifier)
    assert [(job.bug_id, job.campaign_id, job.asked_by) for job in rows(checked, "reduce")] == [
        (1, 1, WRITER),
        (2, 1, WRITER),
    ]
    assert top(checked) == f"> {WRITER}: asked for smaller programs of 2 bugs"


def test_muting_silences_the_operators_of_what_is_new(checked: Room) -> None:
    press(checked, MUTE.identifier)
    at = checked.clock.now()
    with checked.database.reading() as session:
        muted = mutes.in_force(session, TARGET, at)
    assert [(one.operator, one.by, one.until - at) for one in muted] == [
        ("Add", WRITER, MUTE_FOR),
        ("Mod", WRITER, MUTE_FOR),
    ]
    assert "muted Add, Mod until 2026-03-31" in top(checked)


def test_only_the_last_notes_are_kept(checked: Room) -> None:
    before = checked.effects()[0].payload["output"]["summary"]
    for number in range(pressing.KEPT + 3):
        press(checked, MUTE.identifier, delivery=f"d-{number}")
    summary = checked.effects()[0].payload["output"]["summary"]
    assert summary.count("> maintainer: muted") == pressing.KEPT
    assert summary.endswith(before)


def test_what_is_not_ours_is_ignored(checked: Room) -> None:
    assert isinstance(press(checked, "format-disk"), Ignored)
    assert isinstance(press(checked, RERUN.identifier, external_id="f" * 32), Ignored)
    with checked.database.transaction() as session:
        session.query(Effect).update({Effect.target: "other/place"})
    assert isinstance(press(checked, RERUN.identifier), Ignored)


def test_a_branch_is_tested_again_too(checked: Room) -> None:
    checked.change(lambda row: setattr(row, "pull", None), 1)
    press(checked, "rerequested")
    first, second = checked.campaigns()
    assert (second.head, second.base, second.ref) == (first.head, first.base, first.ref)
    assert second.trigger.startswith("rerun:")
