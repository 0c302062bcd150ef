"""From what GitHub tells of a pull request to a campaign, or to a word why there is none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.errors import InfrastructureError
from bot.pulls.forge import Forge as Asked
from bot.pulls.looking import refresh
from bot.store import audit, jobs
from bot.store.models import CampaignState, Job, Pull
from bot.webhooks.intents import PullIntent
from tests.bot.pulls import pulls_kit
from tests.bot.pulls.pulls_kit import BASE, FORK, ROOT, START, TARGET, Room, head, told

FROM_FORK: dict[str, Any] = {
    "head_repository": FORK,
    "author": "stranger",
    "association": "FIRST_TIME_CONTRIBUTOR",
}


def test_a_branch_of_the_repository_is_tested_against_the_merge_base(room: Room) -> None:
    room.hear(told())
    assert room.campaigns() == [], "nothing is asked of git inside the delivery"
    room.work()
    (campaign,) = room.campaigns()
    assert (campaign.head, campaign.base, campaign.pull) == (head(1), ROOT, 7)
    assert (campaign.trigger, campaign.ref) == ("pull_request:7", "refs/pull/7/head")
    assert campaign.config["budget"] == 120.0, "pull_requests.budget is its budget"
    assert room.woken == 1
    assert room.acts() == ["tested"]
    (check,) = room.effects()
    assert (check.payload["status"], check.payload["output"]["title"]) == ("queued", "Queued: next to begin")


def test_an_event_that_comes_twice_or_late_changes_nothing(room: Room) -> None:
    room.hear(told())
    room.work()
    room.hear(told())
    room.hear(told(head=head(0), updated_at=START - timedelta(seconds=1)), known=False)
    room.work()
    assert [one.head for one in room.campaigns()] == [head(1)]
    assert room.acts() == ["tested"]


def test_a_storm_of_pushes_costs_one_campaign(room: Room) -> None:
    for number in range(1, 51):
        room.hear(told(head=head(number), updated_at=START + timedelta(seconds=number)))
        room.work(0.5)
    room.work()
    assert [one.head for one in room.campaigns()] == [head(50)]


def test_a_push_ends_the_campaign_before_it_and_its_check(room: Room) -> None:
    room.hear(told())
    room.work()
    room.hear(told(head=head(2), updated_at=START + timedelta(minutes=1)))
    room.work()
    old, new = room.campaigns()
    assert (old.state, new.state) == (CampaignState.SUPERSEDED.value, CampaignState.PLANNING.value)
    assert old.reason == f"superseded: {head(2)[:12]} is the head of #7 now"
    room.checks.look()
    said = {one.payload["head_sha"]: one.payload for one in room.effects()}
    assert said[head(1)]["conclusion"] == "cancelled"
    assert said[head(2)]["status"] == "queued"


def test_what_was_pushed_before_is_tested_again_when_it_comes_back(room: Room) -> None:
    for number, commit in enumerate((1, 2, 1)):
        room.hear(told(head=head(commit), updated_at=START + timedelta(minutes=number)))
        room.work()
    assert [(one.head, one.trigger) for one in room.campaigns()] == [
        (head(1), "pull_request:7"),
        (head(2), "pull_request:7"),
        (head(1), "pull_request:7:2"),
    ]
    assert [one.state for one in room.campaigns()][:2] == [CampaignState.SUPERSEDED.value] * 2


@pytest.mark.parametrize("state", ["closed", "merged"])
def test_closing_ends_the_campaign_and_finishes_its_check(room: Room, state: str) -> None:
    room.hear(told())
    room.work()
    room.hear(told(state=state, updated_at=START + timedelta(minutes=1)))
    (campaign,) = room.campaigns()
    assert (campaign.state, campaign.reason) == ("superseded", f"pull request #7 was {state}")
    assert room.checks.look() == 1
    assert room.checks.look() == 0
    (check,) = room.effects()
    assert (check.payload["status"], check.payload["conclusion"]) == ("completed", "cancelled")
    assert f"pull request \\#7 was {state}" in check.payload["output"]["summary"].replace("\u200b", "")


def test_what_is_opened_again_is_tested_again(room: Room) -> None:
    for number, state in enumerate(("open", "closed", "open")):
        room.hear(told(state=state, updated_at=START + timedelta(minutes=number)))
        room.work()
    assert [(one.state, one.trigger) for one in room.campaigns()] == [
        ("superseded", "pull_request:7"),
        ("planning", "pull_request:7:2"),
    ]


def test_another_base_is_another_comparison(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.hear(told())
    room.work()
    monkeypatch.setattr(room.mirrors, "merge_base", lambda *_: "c" * 40)
    room.hear(told(base="d" * 40, base_ref="release", updated_at=START + timedelta(minutes=1)))
    room.work()
    assert [(one.base, one.state) for one in room.campaigns()] == [
        (ROOT, "superseded"),
        ("c" * 40, "planning"),
    ]


def test_a_push_that_is_not_tested_ends_the_campaign_before_it_all_the_same(room: Room) -> None:
    room.hear(told())
    room.work()
    off = "version: 1\nbackend: openvino\npull_requests: {test: false}\n"
    room.mirrors.files[head(2)] = {".github/assay.yml": off}
    room.hear(told(head=head(2), updated_at=START + timedelta(minutes=1)))
    room.work()
    assert [one.state for one in room.campaigns()] == ["superseded"]
    with room.database.reading() as session:
        assert [act.what for act in audit.of(session, TARGET, "campaign:1")] == ["ended"]


def test_code_of_a_fork_waits_and_nothing_of_it_is_read(room: Room) -> None:
    room.mirrors.files[head(1)] = {".github/assay.yml": "version: 1\nbackend: openvino\nbudget: 12h\n"}
    room.hear(told(**FROM_FORK))
    room.work()
    assert room.campaigns() == []
    assert room.mirrors.read_at == {BASE}
    (check,) = room.effects()
    assert (check.payload["head_sha"], check.payload["conclusion"]) == (head(1), "neutral")
    assert "/assay run" in check.payload["output"]["summary"]
    assert (check.mode, check.number) == ("live", 7)
    assert room.acts() == ["held"]


def test_a_release_holds_for_one_commit_and_under_the_configuration_of_base(room: Room) -> None:
    room.mirrors.files[head(1)] = {".github/assay.yml": "version: 1\nbackend: openvino\nbudget: 12h\n"}
    room.hear(told(**FROM_FORK))
    room.work()
    assert not room.approve(7, head(9)), "another commit than the head cannot be released"
    assert room.approve(7, head(1))
    room.work()
    (campaign,) = room.campaigns()
    assert (campaign.head, campaign.config["budget"]) == (head(1), 120.0)
    assert (head(1), ".github/assay.yml") not in room.mirrors.reads

    room.hear(told(**FROM_FORK, head=head(2), updated_at=START + timedelta(minutes=1)))
    room.work()
    assert [(one.head, one.state) for one in room.campaigns()] == [(head(1), "superseded")]
    assert room.acts() == ["held", "approved", "tested", "voided", "held"]


@pytest.mark.parametrize(
    ("association", "role", "runs", "asked"),
    [
        ("MEMBER", "write", True, True),
        ("COLLABORATOR", "maintain", True, True),
        ("OWNER", "admin", True, True),
        ("MEMBER", "read", False, True),
        ("COLLABORATOR", "triage", False, True),
        ("CONTRIBUTOR", "write", False, False),
        ("FIRST_TIMER", "none", False, False),
        ("NONE", "none", False, False),
    ],
)
def test_the_fork_of_an_insider_runs_if_the_insider_may_write(
    room: Room, association: str, role: str, runs: bool, asked: bool
) -> None:
    room.forge.roles["jane"] = role
    room.hear(told(head_repository="jane/compiler", association=association))
    room.work()
    assert bool(room.campaigns()) is runs
    assert room.forge.asked == ["jane"] * asked


def test_where_github_cannot_be_asked_every_fork_waits(tmp_path: Path) -> None:
    room = Room(tmp_path, asking=False)
    room.hear(told(8, head_repository="jane/compiler", association="OWNER"))
    room.hear(told(9, head_repository="Octo/Compiler"))
    room.hear(told(10, head_repository=""))
    room.work()
    assert [one.pull for one in room.campaigns()] == [9]
    room.database.close()


@pytest.mark.parametrize(
    ("config", "changes", "why"),
    [
        ("pull_requests: {test: false}", {}, "pull_requests.test is off"),
        ("", {"draft": True}, "it is a draft"),
        (None, {}, "nothing to test"),
    ],
)
def test_what_is_left_alone_says_so_in_the_audit_alone(
    room: Room, config: str | None, changes: dict[str, Any], why: str
) -> None:
    files = {} if config is None else {".github/assay.yml": f"version: 1\nbackend: openvino\n{config}\n"}
    room.mirrors.files = {head(1): files, BASE: files}
    room.hear(told(**changes))
    room.work()
    room.hear(told(**changes))
    room.work()
    assert (room.campaigns(), room.effects(), room.acts()) == ([], [], ["silent"])
    assert why in room.job()[1]


def test_drafts_are_tested_where_that_is_asked_for(room: Room) -> None:
    text = "version: 1\nbackend: openvino\npull_requests: {drafts: true}\n"
    room.mirrors.files[head(1)] = {".github/assay.yml": text}
    room.hear(told(draft=True))
    room.work()
    assert len(room.campaigns()) == 1


def test_in_rehearsal_nobody_is_told_to_wait(room: Room) -> None:
    room.mirrors.files[BASE] = {".github/assay.yml": "version: 1\nbackend: openvino\n"}
    room.hear(told(**FROM_FORK))
    room.work()
    assert (room.effects(), room.acts()) == ([], ["held"])


def test_a_configuration_that_cannot_be_read_is_told_as_base_wants_it(room: Room) -> None:
    room.mirrors.files[head(1)] = {".github/assay.yml": "version: 1\nbackend: opnevino\n"}
    room.hear(told())
    room.work()
    (check,) = room.effects()
    assert check.payload["conclusion"] == "neutral"
    assert "opnevino" in check.payload["output"]["summary"]
    room.mirrors.files[BASE] = {".github/assay.yml": "version: 1\nbackend: opnevino\n"}
    room.hear(told(8))
    room.work()
    assert len(room.effects()) == 1, "where nobody said that reports may be sent, none is"
    assert room.acts(8) == ["silent"]


def test_trouble_is_tried_again_and_given_up_in_the_end(room: Room) -> None:
    room.mirrors.trouble = InfrastructureError("the network is away")
    room.hear(told())
    room.work()
    assert room.job() == ("pending", "the network is away")
    room.mirrors.trouble = None
    room.work(600)
    assert len(room.campaigns()) == 1
    room.mirrors.trouble = InfrastructureError("the network is away")
    room.hear(told(head=head(2), updated_at=START + timedelta(minutes=1)))
    for _ in range(6):
        room.work(600)
    assert room.job() == ("failed", "failed 5 times: the network is away")


def test_a_pull_request_that_github_does_not_know_is_left(room: Room) -> None:
    room.hear(told(), known=False)
    room.work()
    assert (room.campaigns(), room.acts()) == ([], ["silent"])


def test_github_is_believed_more_than_its_events(room: Room) -> None:
    room.hear(told())
    room.forge.now[7] = told(head=head(3), updated_at=START + timedelta(seconds=30))
    room.work()
    assert [one.head for one in room.campaigns()] == [head(3)]
    room.hear(told(head=head(4), updated_at=START + timedelta(minutes=1)))
    room.forge.now[7] = told(state="closed", updated_at=START + timedelta(minutes=2))
    room.work()
    assert [one.state for one in room.campaigns()] == ["superseded"]


def test_a_push_while_it_is_looked_at_leaves_the_older_look_without_effect(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.hear(told())
    merge_base = room.mirrors.merge_base

    def pushed(target: str, base: str, commit: str) -> str:
        if commit == head(1):
            room.hear(told(head=head(2), updated_at=START + timedelta(minutes=1)))
        return merge_base(target, base, commit)

    monkeypatch.setattr(room.mirrors, "merge_base", pushed)
    room.work()
    assert room.campaigns() == []
    room.work()
    assert [one.head for one in room.campaigns()] == [head(2)]


def test_a_wish_outlives_the_events_that_come_before_anybody_looks(room: Room) -> None:
    room.hear(told())
    room.work()
    room.ask("maintainer", {"budget": 30.0})
    room.hear(told(action="edited", updated_at=START + timedelta(seconds=5)))
    room.work()
    first, second = room.campaigns()
    assert (first.state, second.trigger) == ("superseded", "pull_request:7:2")
    assert (second.overrides, second.asked_by) == ({"budget": 30.0}, "maintainer")


def test_a_wish_is_about_the_head_it_was_made_for(room: Room) -> None:
    room.hear(told())
    room.ask("maintainer", {"budget": 30.0})
    room.hear(told(head=head(2), updated_at=START + timedelta(seconds=5)))
    room.work()
    (campaign,) = room.campaigns()
    assert (campaign.head, campaign.overrides, campaign.asked_by) == (head(2), {}, "")


@settings(max_examples=12)
@given(st.permutations(range(6)), st.data())
def test_whatever_order_events_come_in_the_latest_counts(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], data: st.DataObject
) -> None:
    room = Room(tmp_path_factory.mktemp("room"), asking=False)
    twice = data.draw(st.lists(st.sampled_from(order), max_size=4))
    for number in [*order, *twice]:
        room.hear(told(head=head(number), updated_at=START + timedelta(seconds=number)))
        if data.draw(st.booleans()):
            room.work()
    room.work()
    alive = [one.head for one in room.campaigns() if one.state == CampaignState.PLANNING.value]
    assert alive == [head(5)]
    room.database.close()


def test_the_kit_is_configured_as_it_says() -> None:
    assert pulls_kit.config().pull_requests.budget == 120.0


def overtaken(room: Room, meanwhile: Callable[[], object]) -> Callable[[str, int], PullIntent]:
    """GitHub's first answer, on whose way to us something happens."""
    ask, first = room.forge.pull, [meanwhile]

    def pull(target: str, number: int) -> PullIntent:
        answer = ask(target, number)
        while first:
            first.pop()()
        return answer

    return pull


def pushed_and_released(room: Room) -> None:
    """Within the second of what GitHub has just answered."""
    room.hear(told(**FROM_FORK, head=head(2)))
    assert room.approve(7, head(2))


def test_a_push_within_the_second_of_an_answer_is_not_taken_back_nor_its_release(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.hear(told(**FROM_FORK))
    monkeypatch.setattr(room.forge, "pull", overtaken(room, lambda: pushed_and_released(room)))
    room.work()
    room.work()
    assert [one.head for one in room.campaigns()] == [head(2)]
    assert "voided" not in room.acts()


def test_a_push_while_somebody_asks_is_not_taken_back_nor_its_release(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.hear(told(**FROM_FORK))
    room.work()
    monkeypatch.setattr(room.forge, "pull", overtaken(room, lambda: pushed_and_released(room)))
    seen = refresh(room.database, cast("Asked", room.forge), TARGET, 7, room.clock.now())
    assert seen is not None
    assert (seen.head, seen.approved_head) == (head(2), head(2))


def test_a_push_that_is_noticed_because_somebody_asks_is_tested(room: Room) -> None:
    """Its webhook is lost; a comment makes us read the pull request."""
    room.hear(told())
    room.work()
    room.forge.now[7] = told(head=head(2), updated_at=START + timedelta(minutes=1))
    refresh(room.database, cast("Asked", room.forge), TARGET, 7, room.clock.now())
    room.work()
    assert [(one.head, one.state) for one in room.campaigns()] == [
        (head(1), "superseded"),
        (head(2), "planning"),
    ]
    (job,) = jobs_of(room)
    refresh(room.database, cast("Asked", room.forge), TARGET, 7, room.clock.now())
    assert jobs_of(room) == [job], "there is no news"


def jobs_of(room: Room) -> list[tuple[str, int]]:
    """State and turn of each job."""
    with room.database.reading() as session:
        return [(one.state, jobs.turn(one)) for one in session.query(Job)]


def test_one_that_changes_while_it_is_looked_at_is_looked_at_again_at_once(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.hear(told())
    merge_base, first = room.mirrors.merge_base, [True]

    def changed(target: str, base: str, commit: str) -> str:
        while first and first.pop():
            with room.database.transaction() as session:
                session.get_one(Pull, (TARGET, 7)).author = "june"
        return merge_base(target, base, commit)

    monkeypatch.setattr(room.mirrors, "merge_base", changed)
    room.work()
    assert len(room.campaigns()) == 1


def test_closed_and_opened_within_a_second_told_in_another_order_is_open(room: Room) -> None:
    room.hear(told())
    room.work()
    room.hear(told(action="reopened"))
    room.work()
    room.hear(told(action="closed", state="closed"), known=False)
    room.work()
    (one, two) = room.campaigns()
    assert (one.state, two.state) == ("superseded", "planning")


def test_a_wish_outlives_a_look_that_came_to_nothing(room: Room) -> None:
    room.hear(told())
    room.work()
    room.mirrors.trouble = InfrastructureError("the network is away")
    room.ask("maintainer", {"budget": 30.0})
    for _ in range(6):
        room.work(600)
    assert room.job()[0] == "failed"
    room.mirrors.trouble = None
    room.hear(told(action="labeled"))
    room.work()
    assert room.campaigns()[-1].overrides == {"budget": 30.0}


def test_a_push_ends_the_campaign_before_it_though_nobody_has_looked_yet(room: Room) -> None:
    """In a storm each push puts off the look; what is overtaken must not come to its end meanwhile."""
    room.hear(told())
    room.work()
    room.hear(told(head=head(2), updated_at=START + timedelta(seconds=1)))
    (old,) = room.campaigns()
    assert (old.state, old.reason) == ("superseded", f"superseded: {head(2)[:12]} is the head of #7 now")
    room.work()
    assert [one.state for one in room.campaigns()] == ["superseded", "planning"]


def test_a_wish_that_is_stopped_before_anybody_looks_is_not_fulfilled(room: Room) -> None:
    """`/assay run`, then `/assay stop`, while the look of the first still waits."""
    room.hear(told())
    room.work()
    room.ask("maintainer", {"budget": 30.0})
    assert room.stop() == 1
    room.work()
    assert [one.state for one in room.campaigns()] == ["superseded"]
    assert room.job() == ("done", f"commit {head(1)[:12]} was stopped; `/assay run` has it tested")


def test_a_wish_that_is_stopped_while_it_is_looked_at_is_not_fulfilled(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.hear(told())
    room.ask("maintainer", {})
    monkeypatch.setattr(room.forge, "pull", overtaken(room, lambda: room.stop()))
    room.work()
    room.work()
    assert room.campaigns() == []


def test_a_wish_of_a_look_that_came_to_nothing_is_stopped_too(room: Room) -> None:
    room.hear(told())
    room.work()
    room.change(lambda campaign: setattr(campaign, "state", "done"), 1)
    room.mirrors.trouble = InfrastructureError("the network is away")
    room.ask("maintainer", {"budget": 30.0})
    for _ in range(6):
        room.work(600)
    assert (room.job()[0], room.stop(), room.stop()) == ("failed", 1, 0)
    room.mirrors.trouble = None
    room.hear(told(action="labeled"))
    room.work()
    assert [one.state for one in room.campaigns()] == ["done"]


def test_what_was_stopped_is_tested_when_somebody_asks_and_not_before(room: Room) -> None:
    room.hear(told())
    room.work()
    assert (room.stop(), room.stop()) == (1, 0)
    room.hear(told(action="edited", updated_at=START + timedelta(minutes=1)))
    room.work()
    assert [one.state for one in room.campaigns()] == ["superseded"]
    room.ask("maintainer", {})
    room.work()
    assert [one.state for one in room.campaigns()] == ["superseded", "planning"]


def test_a_push_behind_what_was_stopped_is_tested_and_what_comes_back_too(room: Room) -> None:
    room.hear(told())
    room.stop()
    for number, commit in enumerate((2, 1)):
        room.hear(told(head=head(commit), updated_at=START + timedelta(minutes=number + 1)))
        room.work()
    assert [(one.head, one.state) for one in room.campaigns()] == [
        (head(2), "superseded"),
        (head(1), "planning"),
    ]


def test_the_last_of_two_commits_that_are_pushed_by_turns_is_tested(room: Room) -> None:
    for number, commit in enumerate((1, 2, 1, 2)):
        room.hear(told(head=head(commit), updated_at=START + timedelta(minutes=number)))
        room.work()
    alive = [one.head for one in room.campaigns() if one.state == CampaignState.PLANNING.value]
    assert alive == [head(2)]
