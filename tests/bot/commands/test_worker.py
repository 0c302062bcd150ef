"""From a comment to what is done and answered: once, by whoever may, politely."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.commands import worker as working
from bot.errors import RefusalError
from bot.store import audit, jobs, moving, mutes
from bot.store.models import Bug, Campaign, CommandState, Finding
from tests.bot.commands.kit import (
    BUG_ISSUE,
    FORK_PULL,
    HEAD,
    OTHER_BUG_ISSUE,
    PULL,
    START,
    TARGET,
    World,
    world,
)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[World]:
    made = world(tmp_path)
    yield made
    made.database.close()


def reason(here: World, comment: int) -> str:
    (row,) = here.commands(comment)
    return row.reason


def test_run_releases_what_the_comment_was_about(here: World) -> None:
    comment = here.say("/assay run budget=2m source=isra", FORK_PULL)
    here.worker.run_once()
    assert here.rooms.ran == [(FORK_PULL, f"{comment}:0", {"budget": 120.0, "sources": ["isra"]})]
    assert here.reaction(comment) == "eyes"
    assert here.answers() == []
    with here.database.reading() as session:
        (act,) = audit.of(session, TARGET, f"pull:{FORK_PULL}")
    assert (act.who, act.why) == ("maintainer", f"commit {HEAD[:12]} released by maintainer")


def test_a_push_between_comment_and_answer_releases_nothing(here: World) -> None:
    comment = here.say("/assay run", FORK_PULL)
    here.pushed = "3" * 40
    here.worker.run_once()
    assert here.rooms.ran == []
    assert here.answers() == [
        f"There was a push since you wrote: the head is `{'3' * 12}` now. Look at it, and say it again."
    ]
    assert here.reaction(comment) == "confused"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/assay run backend=openvinno", "did you mean 'openvino'"),
        ("/assay run budget=2h", "`budget` is 1h at most"),
        ("/assay run source=@everyone", "@\u200beveryone"),
        ("/assay rerum", "did you mean `/assay rerun`?"),
    ],
)
def test_mistakes_are_answered_and_notify_nobody(here: World, command: str, said: str) -> None:
    here.say(command)
    here.worker.run_once()
    (answer,) = here.answers()
    assert said in answer
    assert "@everyone" not in answer


def test_a_comment_delivered_twice_is_carried_out_once(here: World) -> None:
    here.say("/assay rerun\n/assay stop")
    here.comments -= 1
    here.say("/assay rerun\n/assay stop")
    assert [here.worker.run_once(), here.worker.run_once()] == [True, False]
    assert (len(here.rooms.ran), here.rooms.stopped) == (1, [PULL])


def test_a_stop_counts_from_when_it_came_and_not_from_when_it_is_carried_out(here: World) -> None:
    comment = here.say("/assay stop")
    here.advance(minutes=5)
    here.worker.run_once()
    (row,) = here.commands(comment)
    assert here.rooms.said == [row.created_at]
    assert row.done_at == here.at


@pytest.mark.parametrize("at_work", [0, 1])
def test_who_says_stop_after_run_is_not_overruled_by_it(here: World, at_work: int) -> None:
    """GitHub could not be asked who wants the test, and was there again for who wants its end."""
    here.rooms.at_work = at_work
    worker, here.down = here.worker, True
    asked = here.say("/assay run")
    worker.run_once()
    here.down = False
    stop = here.say("/assay stop")
    worker.run_once()
    assert [row.state for row in here.commands(stop)] == ["done"]
    here.advance(minutes=1)
    worker.run_once()
    assert (here.rooms.stopped, here.rooms.ran) == ([PULL], [])
    assert [(row.state, row.reason) for row in here.commands(asked)] == [
        ("refused", "`/assay stop` came after that. Say it again if you want it all the same.")
    ]
    here.say("/assay run")
    worker.run_once()
    assert len(here.rooms.ran) == 1


@pytest.mark.parametrize(
    "fields", [{"bot": True}, {"body": "/assay rerun\n\n<!-- assay:0123 -->"}, {"body": "> /assay rerun"}]
)
def test_programs_and_quotations_are_not_listened_to(here: World, fields: dict[str, object]) -> None:
    comment = here.say(**{"body": "/assay rerun", **fields})  # type: ignore[arg-type]
    assert not here.worker.run_once()
    assert here.commands(comment) == []


def test_who_is_refused_again_gets_a_reaction_and_no_second_answer(here: World) -> None:
    first = here.say("/assay run", author="stranger")
    here.worker.run_once()
    here.advance(minutes=1)
    second = here.say("/assay run\n/assay stop", author="stranger")
    here.worker.run_once()
    assert here.answers() == [
        f"`run` needs write access to {TARGET}, which you do not have; a maintainer can say it."
    ]
    assert (here.reaction(first), here.reaction(second)) == ("confused", "confused")
    assert all("write access" in row.reason for row in here.commands(second))


def test_maintainers_are_told_each_reason_once(here: World) -> None:
    for line in ("/assay hlep", "/assay undup", "/assay undup", "/assay hlep"):
        here.say(line)
        here.worker.run_once()
        here.advance(minutes=1)
    assert here.answers() == [
        "`hlep` is no command; did you mean `/assay help`?",
        "`undup` is for an issue of ours.",
    ]


def test_strangers_mistakes_are_not_answered(here: World) -> None:
    comment = here.say("/assay buy watches", author="stranger")
    here.worker.run_once()
    assert here.answers() == []
    assert here.commands(comment)[0].state == CommandState.REFUSED.value


def test_while_github_is_down_commands_wait(here: World) -> None:
    comment = here.say("/assay rerun")
    here.down = True
    worker = here.worker
    assert [worker.run_once(), worker.run_once()] == [True, False]
    here.down = False
    here.advance(seconds=working.AGAIN.total_seconds())
    assert worker.run_once()
    assert here.commands(comment)[0].state == CommandState.DONE.value


def test_but_not_for_ever(here: World) -> None:
    comment = here.say("/assay rerun")
    here.down = True
    with here.database.transaction() as session:
        for row in here.commands(comment):
            session.merge(row).created_at = here.at - working.PATIENCE - timedelta(seconds=1)
    here.worker.run_once()
    assert reason(here, comment) == "GitHub could not be asked: GitHub did not answer"


@pytest.mark.parametrize("answer", ["none", "refusal"])
def test_a_rename_while_github_is_asked_refuses_nobody(
    here: World, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """Under the old name GitHub knows nobody with access."""
    comment = here.say("/assay mute op=Resize until=30d")
    asked: list[str] = []

    def permission(self: World, target: str, login: str) -> str:
        asked.append(target)
        if target == TARGET:
            with self.database.transaction() as session:
                moving.move(session, TARGET, "octo/machine")
            if answer == "refusal":
                raise RefusalError("404")
            return "none"
        return "write"

    monkeypatch.setattr(World, "permission", permission)
    here.worker.run_once()
    here.worker.run_once()
    assert asked == [TARGET, "octo/machine"]
    assert [one.state for one in here.commands(comment)] == [CommandState.DONE.value]


def test_a_bug_of_ours_fails_its_comment_and_no_other(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, sound = here.say("/assay stop", PULL), here.say("/assay rerun", PULL)

    def stop(*_: object) -> int:
        raise KeyError("planted")

    monkeypatch.setattr(here.rooms, "stop", stop)
    here.worker.run_once()
    assert reason(here, broken).startswith("a bug of Assay: KeyError")
    assert here.commands(sound)[0].state == CommandState.DONE.value


def test_killed_before_the_commit_nothing_has_happened(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    comment = here.say("/assay mute op=Resize until=30d")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bot.commands.answers.post", killed)
        with pytest.raises(KeyboardInterrupt):
            here.worker.run_once()
    with here.database.reading() as session:
        assert mutes.in_force(session, TARGET, here.at) == []
    here.worker.run_once()
    assert here.reaction(comment) == "+1"
    with here.database.reading() as session:
        (mute,) = mutes.in_force(session, TARGET, here.at)
    assert (mute.operator, mute.until, mute.by) == ("Resize", here.at + timedelta(days=30), "maintainer")


def test_rulings_stay_and_can_be_taken_back(here: World) -> None:
    here.say("/assay invalid works as documented", BUG_ISSUE)
    here.say("/assay dup #3", OTHER_BUG_ISSUE)
    here.worker.run_once()
    assert (here.bug().ruling, here.bug().reason) == (
        "invalid",
        "ruled invalid by maintainer: works as documented",
    )
    assert here.bug(OTHER_BUG_ISSUE).duplicate_of == here.bug().id
    here.say("/assay dup #5", BUG_ISSUE)
    here.say("/assay undup", BUG_ISSUE)
    here.worker.run_once()
    assert here.answers() == [
        "#5 cannot be it: that one is a duplicate of this one already; `/assay undup` there first."
    ]
    assert (here.bug().ruling, here.bug().duplicate_of) == ("", None)


def test_long_work_is_asked_for_once_with_where_to_answer(here: World) -> None:
    comment = here.say("/assay bisect releases=2023.0..2026.4\n/assay test 2026.4.1", BUG_ISSUE)
    here.worker.run_once()
    bug = here.bug().id
    assert here.rooms.asked == [
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
    assert here.reaction(comment) == "eyes"


def test_status_and_explain_tell_what_the_rows_say(here: World) -> None:
    here.say("/assay mute op=Resize* until=2d because noisy")
    with here.database.transaction() as session:
        times = {"created_at": START, "updated_at": START}
        session.add(Campaign(target=TARGET, head=HEAD, trigger="push", state="done", **times))
        session.flush()
        why = "crash at head; not reduced: fuzzing.reduce was killed"
        case = {"case_id": "c" * 64, "standing": "regression", "verdict": "crash", "signature": "s"}
        bug = session.get_one(Bug, here.bug().id)
        bug.case_id = ""
        session.add(Finding(campaign_id=1, bug_id=bug.id, reason=why, **case))
    here.say("/assay status")
    here.say("/assay explain", BUG_ISSUE)
    here.worker.run_once()
    (status,) = [said for said in here.answers() if said.startswith("- Last event")]
    (explained,) = [said for said in here.answers() if said.startswith("**")]
    assert "- Campaigns: 0 at work, 0 waiting" in status
    assert "- Muted: `Resize*` until 2026-11-22" in status
    assert "- This pull request: not tested yet" in status
    assert explained.startswith("**Resize: wrong result**\n\n- State: reported")
    assert "found, not made small: fuzzing.reduce was killed\n" in explained


def test_a_fix_that_is_named_once_more_is_checked_once_more(here: World) -> None:
    """The bug may have come back since, or the first check have come to nothing."""
    for _ in range(2):
        here.say(f"/assay fixed-by {HEAD}", BUG_ISSUE)
        here.worker.run_once()
    assert [kind for kind, _, _ in here.rooms.asked] == ["retest", "retest"]
    keys = {key for _, key, _ in here.rooms.asked}
    assert len(keys) == 2
    assert max(map(len, keys)) <= jobs.MAX_KEY
    assert [arguments["commit"] for _, _, arguments in here.rooms.asked] == [HEAD, HEAD]
