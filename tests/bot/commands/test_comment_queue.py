"""From a comment to what is done and answered: once, by whoever may, politely."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.commands.command_execution import MAX_AUTHOR_REPLIES
from bot.commands.comment_queue import RETRY_INTERVAL, RETRY_LIMIT
from bot.errors import RefusalError
from bot.store import audit, jobs, mutes, pulls, target_rename
from bot.store.models import Bug, Campaign, CommandState, Finding, Pull
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

NEW_HEAD = "3" * 40


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
        f"The head is newer than your comment. To test it after a review: `/assay run {'3' * 40}`."
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
        ("refused", "A later `/assay stop` cancels this. Repeat the command to test the commit anyway.")
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


def test_strangers_get_one_reaction_an_hour_in_a_thread_and_no_reply(harness: CommandHarness) -> None:
    worker, comments = harness.worker, []
    for number in range(13):  # in an hour, by several people
        body = "/assay run\n/assay help" if number % 2 else "/assay status"
        comments.append(harness.say(body, author=f"stranger-{number % 4}"))
        worker.run_once()
        harness.advance(minutes=5)
    elsewhere = harness.say("/assay run", FORK_PULL, author="stranger-0")
    worker.run_once()
    harness.advance(minutes=61)
    later = harness.say("/assay run", author="stranger-0")
    worker.run_once()
    assert harness.answers() == []
    assert harness.reactions() == [comments[0], elsewhere, later]
    assert {row.state for one in comments for row in harness.commands(one)} == {"refused"}


def test_strangers_cost_no_requests(harness: CommandHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def permission(_: CommandHarness, target: str, login: str) -> str:
        asked.append(login)
        return "read"

    monkeypatch.setattr(CommandHarness, "permission", permission)
    monkeypatch.setattr(
        CommandHarness, "refresh", lambda *_: pytest.fail("a stranger's comment reads nothing")
    )
    worker = harness.worker
    for _ in range(20):
        harness.say("/assay run", author="stranger")
        worker.run_once()
    assert asked == ["stranger"]


def test_the_author_of_a_pull_request_gets_a_few_replies_an_hour(harness: CommandHarness) -> None:
    worker = harness.worker
    for _ in range(20):
        harness.say("/assay help", author="contributor")
        worker.run_once()
        harness.advance(seconds=10)
    assert len(harness.answers()) == MAX_AUTHOR_REPLIES


@pytest.mark.parametrize(
    ("commit", "said"),
    [
        (NEW_HEAD, ""),
        (NEW_HEAD[:12], "The head is newer than your comment. To test it after a review: "),
        (HEAD, f"`{HEAD[:12]}` is not the head. To test the head after a review: "),
    ],
)
def test_run_pins_the_commit_that_it_names(harness: CommandHarness, commit: str, said: str) -> None:
    """A full id holds whatever the order of events, a short one only for a head known before the comment."""
    harness.say(f"/assay run {commit}", FORK_PULL)
    harness.pushed = NEW_HEAD
    harness.worker.run_once()
    assert [overrides for _, _, overrides in harness.services.ran] == ([] if said else [{}])
    assert harness.answers() == ([f"{said}`/assay run {NEW_HEAD}`."] if said else [])


def test_a_head_that_is_older_than_other_changes_is_approved(harness: CommandHarness) -> None:
    """Every comment counts as a change of the pull request, so that its time alone does not date the head."""
    with harness.database.transaction() as session:
        known = session.get_one(Pull, (TARGET, FORK_PULL))
        data = pulls.row(TARGET, known)
        data.updated_at = START + timedelta(seconds=5)
        pulls.update_if_newer(session, data)
    harness.say("/assay run", FORK_PULL, written_at=START + timedelta(seconds=5))
    harness.worker.run_once()
    assert len(harness.services.ran) == 1


@pytest.mark.parametrize("seconds", [-1, 0, 1])
def test_a_head_as_new_as_the_comment_is_not_approved(harness: CommandHarness, seconds: int) -> None:
    """The push was delivered before the comment, and made after its author last saw the page."""
    harness.say("/assay run", FORK_PULL, written_at=START + timedelta(seconds=seconds))
    harness.worker.run_once()
    assert bool(harness.services.ran) == (seconds > 0)
    assert (f"`/assay run {HEAD}`" in "".join(harness.answers())) == (seconds <= 0)


def test_an_edit_that_makes_a_comment_a_command_is_answered_once(harness: CommandHarness) -> None:
    comment = harness.say("/asay stop")
    assert not harness.worker.run_once()
    for _ in range(2):
        harness.edit(comment, "/assay stop")
        harness.worker.run_once()
    harness.edit(comment, "an explanation\n/assay stop\n/assay rerun")
    harness.worker.run_once()
    assert (harness.services.stopped, harness.services.ran) == ([PULL], [])
    assert harness.reaction(comment) == "+1"


def test_maintainers_are_told_each_reason_once(harness: CommandHarness) -> None:
    for line in ("/assay hlep", "/assay undup", "/assay undup", "/assay hlep"):
        harness.say(line)
        harness.worker.run_once()
        harness.advance(minutes=1)
    assert harness.answers() == [
        "`hlep` is not a command; did you mean `/assay help`?",
        "`undup` is for an issue of Assay.",
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
    harness.advance(seconds=RETRY_INTERVAL.total_seconds())
    assert worker.run_once()
    assert harness.commands(comment)[0].state == CommandState.DONE.value


def test_but_not_for_ever(harness: CommandHarness) -> None:
    comment = harness.say("/assay rerun")
    harness.down = True
    with harness.database.transaction() as session:
        for row in harness.commands(comment):
            session.merge(row).created_at = harness.at - RETRY_LIMIT - timedelta(seconds=1)
    harness.worker.run_once()
    assert reason(harness, comment) == "GitHub did not answer: GitHub did not answer"


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
        "marked invalid by maintainer: works as documented",
    )
    assert harness.bug(OTHER_BUG_ISSUE).duplicate_of == harness.bug().id
    harness.say("/assay dup #5", BUG_ISSUE)
    harness.say("/assay undup", BUG_ISSUE)
    harness.worker.run_once()
    assert harness.answers() == [
        "This cannot be a duplicate of #5: that one is a duplicate of this one already; "
        "`/assay undup` there first."
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
    assert "- Campaigns: 0 running, 0 queued" in status
    assert "- Muted: `Resize*` until 2026-11-22" in status
    assert "- This pull request: not tested yet" in status
    assert explained.startswith("**Resize: wrong result**\n\n- State: reported")
    assert "Its case is not reduced: fuzzing.reduce was killed\n" in explained


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
