"""From a comment to what is done and answered: once, by whoever may, politely."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.commands import worker as working
from bot.errors import RefusalError
from bot.store import audit, jobs, mutes, target_rename
from bot.store.models import Bug, Campaign, CommandState, Finding
from tests.bot.commands.kit import (
    BUG_ISSUE,
    FORK_PULL,
    HEAD,
    OTHER_BUG_ISSUE,
    PULL,
    START,
    TARGET,
    CommandHarness,
    make_harness,
)


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[CommandHarness]:
    made = make_harness(tmp_path)
    yield made
    made.database.close()


def reason(harness: CommandHarness, comment: int) -> str:
    (row,) = harness.commands(comment)
    return row.reason


def test_run_releases_what_the_comment_was_about(harness: CommandHarness) -> None:
    comment = harness.say("/assay run budget=2m source=isra", FORK_PULL)
    harness.worker.run_once()
    assert harness.services.ran == [(FORK_PULL, f"{comment}:0", {"budget": 120.0, "sources": ["isra"]})]
    assert harness.reaction(comment) == "eyes"
    assert harness.answers() == []
    with harness.database.reading() as session:
        (act,) = audit.of(session, TARGET, f"pull:{FORK_PULL}")
    assert (act.actor, act.reason) == ("maintainer", f"commit {HEAD[:12]} released by maintainer")


def test_a_push_between_comment_and_answer_releases_nothing(harness: CommandHarness) -> None:
    comment = harness.say("/assay run", FORK_PULL)
    harness.pushed = "3" * 40
    harness.worker.run_once()
    assert harness.services.ran == []
    assert harness.answers() == [
        f"There was a push since you wrote: the head is `{'3' * 12}` now. Look at it, and say it again."
    ]
    assert harness.reaction(comment) == "confused"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/assay run backend=openvinno", "did you mean 'openvino'"),
        ("/assay run budget=2h", "`budget` is 1h at most"),
        ("/assay run source=@everyone", "@\u200beveryone"),
        ("/assay rerum", "did you mean `/assay rerun`?"),
    ],
)
def test_mistakes_are_answered_and_notify_nobody(harness: CommandHarness, command: str, said: str) -> None:
    harness.say(command)
    harness.worker.run_once()
    (answer,) = harness.answers()
    assert said in answer
    assert "@everyone" not in answer


def test_a_comment_delivered_twice_is_carried_out_once(harness: CommandHarness) -> None:
    harness.say("/assay rerun\n/assay stop")
    harness.comments -= 1
    harness.say("/assay rerun\n/assay stop")
    assert [harness.worker.run_once(), harness.worker.run_once()] == [True, False]
    assert (len(harness.services.ran), harness.services.stopped) == (1, [PULL])


def test_a_stop_counts_from_when_it_came_and_not_from_when_it_is_carried_out(harness: CommandHarness) -> None:
    comment = harness.say("/assay stop")
    harness.advance(minutes=5)
    harness.worker.run_once()
    (row,) = harness.commands(comment)
    assert harness.services.said == [row.created_at]
    assert row.done_at == harness.at


@pytest.mark.parametrize("at_work", [0, 1])
def test_who_says_stop_after_run_is_not_overruled_by_it(harness: CommandHarness, at_work: int) -> None:
    """GitHub could not be asked who wants the test, and was there again for who wants its end."""
    harness.services.at_work = at_work
    worker, harness.down = harness.worker, True
    asked = harness.say("/assay run")
    worker.run_once()
    harness.down = False
    stop = harness.say("/assay stop")
    worker.run_once()
    assert [row.state for row in harness.commands(stop)] == ["done"]
    harness.advance(minutes=1)
    worker.run_once()
    assert (harness.services.stopped, harness.services.ran) == ([PULL], [])
    assert [(row.state, row.reason) for row in harness.commands(asked)] == [
        ("refused", "`/assay stop` came after that. Say it again if you want it all the same.")
    ]
    harness.say("/assay run")
    worker.run_once()
    assert len(harness.services.ran) == 1


@pytest.mark.parametrize(
    "fields", [{"bot": True}, {"body": "/assay rerun\n\n<!-- assay:0123 -->"}, {"body": "> /assay rerun"}]
)
def test_programs_and_quotations_are_not_listened_to(
    harness: CommandHarness, fields: dict[str, object]
) -> None:
    comment = harness.say(**{"body": "/assay rerun", **fields})  # type: ignore[arg-type]
    assert not harness.worker.run_once()
    assert harness.commands(comment) == []


def test_who_is_refused_again_gets_a_reaction_and_no_second_answer(harness: CommandHarness) -> None:
    first = harness.say("/assay run", author="stranger")
    harness.worker.run_once()
    harness.advance(minutes=1)
    second = harness.say("/assay run\n/assay stop", author="stranger")
    harness.worker.run_once()
    assert harness.answers() == [
        f"`run` needs write access to {TARGET}, which you do not have; a maintainer can say it."
    ]
    assert (harness.reaction(first), harness.reaction(second)) == ("confused", "confused")
    assert all("write access" in row.reason for row in harness.commands(second))


def test_maintainers_are_told_each_reason_once(harness: CommandHarness) -> None:
    for line in ("/assay hlep", "/assay undup", "/assay undup", "/assay hlep"):
        harness.say(line)
        harness.worker.run_once()
        harness.advance(minutes=1)
    assert harness.answers() == [
        "`hlep` is no command; did you mean `/assay help`?",
        "`undup` is for an issue of ours.",
    ]


def test_strangers_mistakes_are_not_answered(harness: CommandHarness) -> None:
    comment = harness.say("/assay buy watches", author="stranger")
    harness.worker.run_once()
    assert harness.answers() == []
    assert harness.commands(comment)[0].state == CommandState.REFUSED.value


def test_while_github_is_down_commands_wait(harness: CommandHarness) -> None:
    comment = harness.say("/assay rerun")
    harness.down = True
    worker = harness.worker
    assert [worker.run_once(), worker.run_once()] == [True, False]
    harness.down = False
    harness.advance(seconds=working.RETRY_INTERVAL.total_seconds())
    assert worker.run_once()
    assert harness.commands(comment)[0].state == CommandState.DONE.value


def test_but_not_for_ever(harness: CommandHarness) -> None:
    comment = harness.say("/assay rerun")
    harness.down = True
    with harness.database.transaction() as session:
        for row in harness.commands(comment):
            session.merge(row).created_at = harness.at - working.RETRY_LIMIT - timedelta(seconds=1)
    harness.worker.run_once()
    assert reason(harness, comment) == "GitHub could not be asked: GitHub did not answer"


@pytest.mark.parametrize("answer", ["none", "refusal"])
def test_a_rename_while_github_is_asked_refuses_nobody(
    harness: CommandHarness, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """Under the old name GitHub knows nobody with access."""
    comment = harness.say("/assay mute op=Resize until=30d")
    asked: list[str] = []

    def permission(self: CommandHarness, target: str, login: str) -> str:
        asked.append(target)
        if target == TARGET:
            with self.database.transaction() as session:
                target_rename.rename_target(session, TARGET, "octo/machine")
            if answer == "refusal":
                raise RefusalError("404")
            return "none"
        return "write"

    monkeypatch.setattr(CommandHarness, "permission", permission)
    harness.worker.run_once()
    harness.worker.run_once()
    assert asked == [TARGET, "octo/machine"]
    assert [one.state for one in harness.commands(comment)] == [CommandState.DONE.value]


def test_a_bug_of_ours_fails_its_comment_and_no_other(
    harness: CommandHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, sound = harness.say("/assay stop", PULL), harness.say("/assay rerun", PULL)

    def stop(*_: object) -> int:
        raise KeyError("planted")

    monkeypatch.setattr(harness.services, "stop", stop)
    harness.worker.run_once()
    assert reason(harness, broken).startswith("a bug of Assay: KeyError")
    assert harness.commands(sound)[0].state == CommandState.DONE.value


def test_killed_before_the_commit_nothing_has_happened(
    harness: CommandHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    comment = harness.say("/assay mute op=Resize until=30d")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bot.commands.replies.post", killed)
        with pytest.raises(KeyboardInterrupt):
            harness.worker.run_once()
    with harness.database.reading() as session:
        assert mutes.in_force(session, TARGET, harness.at) == []
    harness.worker.run_once()
    assert harness.reaction(comment) == "+1"
    with harness.database.reading() as session:
        (mute,) = mutes.in_force(session, TARGET, harness.at)
    assert (mute.operator, mute.until, mute.by) == ("Resize", harness.at + timedelta(days=30), "maintainer")


def test_rulings_stay_and_can_be_taken_back(harness: CommandHarness) -> None:
    harness.say("/assay invalid works as documented", BUG_ISSUE)
    harness.say("/assay dup #3", OTHER_BUG_ISSUE)
    harness.worker.run_once()
    assert (harness.bug().resolution, harness.bug().reason) == (
        "invalid",
        "ruled invalid by maintainer: works as documented",
    )
    assert harness.bug(OTHER_BUG_ISSUE).duplicate_of == harness.bug().id
    harness.say("/assay dup #5", BUG_ISSUE)
    harness.say("/assay undup", BUG_ISSUE)
    harness.worker.run_once()
    assert harness.answers() == [
        "#5 cannot be it: that one is a duplicate of this one already; `/assay undup` there first."
    ]
    assert (harness.bug().resolution, harness.bug().duplicate_of) == ("", None)


def test_long_work_is_asked_for_once_with_where_to_answer(harness: CommandHarness) -> None:
    comment = harness.say("/assay bisect releases=2023.0..2026.4\n/assay test 2026.4.1", BUG_ISSUE)
    harness.worker.run_once()
    bug = harness.bug().id
    assert harness.services.asked == [
        (
            "bisect",
            f"bisect:{bug}:{comment}:0",
            {"releases": "2023.0..2026.4", "number": BUG_ISSUE, "bug": bug},
        ),
        (
            "retest",
            f"retest:{bug}:{comment}:1",
            {"purpose": "asked", "on": "2026.4.1", "number": BUG_ISSUE, "bug": bug},
        ),
    ]
    assert harness.reaction(comment) == "eyes"


def test_status_and_explain_tell_what_the_rows_say(harness: CommandHarness) -> None:
    harness.say("/assay mute op=Resize* until=2d because noisy")
    with harness.database.transaction() as session:
        times = {"created_at": START, "updated_at": START}
        session.add(Campaign(target=TARGET, head=HEAD, trigger="push", state="done", **times))
        session.flush()
        reason = "crash at head; not reduced: fuzzing.reduce was killed"
        case = {"case_id": "c" * 64, "classification": "regression", "verdict": "crash", "signature": "s"}
        bug = session.get_one(Bug, harness.bug().id)
        bug.case_id = ""
        session.add(Finding(campaign_id=1, bug_id=bug.id, reason=reason, **case))
    harness.say("/assay status")
    harness.say("/assay explain", BUG_ISSUE)
    harness.worker.run_once()
    (status,) = [said for said in harness.answers() if said.startswith("- Last event")]
    (explained,) = [said for said in harness.answers() if said.startswith("**")]
    assert "- Campaigns: 0 at work, 0 waiting" in status
    assert "- Muted: `Resize*` until 2026-11-22" in status
    assert "- This pull request: not tested yet" in status
    assert explained.startswith("**Resize: wrong result**\n\n- State: reported")
    assert "found, not made small: fuzzing.reduce was killed\n" in explained


def test_a_fix_that_is_named_once_more_is_checked_once_more(harness: CommandHarness) -> None:
    """The bug may have come back since, or the first check have come to nothing."""
    for _ in range(2):
        harness.say(f"/assay fixed-by {HEAD}", BUG_ISSUE)
        harness.worker.run_once()
    assert [kind for kind, _, _ in harness.services.asked] == ["retest", "retest"]
    keys = {key for _, key, _ in harness.services.asked}
    assert len(keys) == 2
    assert max(map(len, keys)) <= jobs.MAX_KEY
    assert [arguments["commit"] for _, _, arguments in harness.services.asked] == [HEAD, HEAD]
