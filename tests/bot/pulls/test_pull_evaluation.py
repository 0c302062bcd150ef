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
from bot.pulls.dependencies import GitHubReader as Asked
from bot.pulls.pull_evaluation import refresh_pull
from bot.store import audit, jobs
from bot.store.models import CampaignState, Job, Pull
from bot.webhooks.intents import PullIntent
from tests.bot.pulls import pulls_kit
from tests.bot.pulls.pulls_kit import BASE, FORK, ROOT, START, TARGET, PullHarness, head, pull_intent

FROM_FORK: dict[str, Any] = {
    "head_repository": FORK,
    "author": "stranger",
    "association": "FIRST_TIME_CONTRIBUTOR",
}


def test_a_branch_of_the_repository_is_tested_against_the_merge_base(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    assert harness.campaigns() == [], "nothing is asked of git inside the delivery"
    harness.work()
    (campaign,) = harness.campaigns()
    assert (campaign.head, campaign.base, campaign.pull) == (head(1), ROOT, 7)
    assert (campaign.trigger, campaign.ref) == ("pull_request:7", "refs/pull/7/head")
    assert campaign.config["budget"] == 120.0, "pull_requests.budget is its budget"
    assert harness.woken == 1
    assert harness.audit_events() == ["tested"]
    (check,) = harness.effects()
    assert (check.payload["status"], check.payload["output"]["title"]) == ("queued", "Queued: next")


def test_an_event_that_comes_twice_or_late_changes_nothing(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    harness.work()
    harness.receive(pull_intent())
    harness.receive(pull_intent(head=head(0), updated_at=START - timedelta(seconds=1)), known=False)
    harness.work()
    assert [one.head for one in harness.campaigns()] == [head(1)]
    assert harness.audit_events() == ["tested"]


def test_a_storm_of_pushes_costs_one_campaign(harness: PullHarness) -> None:
    for number in range(1, 51):
        harness.receive(pull_intent(head=head(number), updated_at=START + timedelta(seconds=number)))
        harness.work(0.5)
    harness.work()
    assert [one.head for one in harness.campaigns()] == [head(50)]


def test_a_push_ends_the_campaign_before_it_and_its_check(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    harness.work()
    harness.receive(pull_intent(head=head(2), updated_at=START + timedelta(minutes=1)))
    harness.work()
    old, new = harness.campaigns()
    assert (old.state, new.state) == (CampaignState.SUPERSEDED.value, CampaignState.PLANNING.value)
    assert old.reason == f"superseded: {head(2)[:12]} is the head of #7 now"
    harness.checks.update_due()
    message = {one.payload["head_sha"]: one.payload for one in harness.effects()}
    assert message[head(1)]["conclusion"] == "cancelled"
    assert message[head(2)]["status"] == "queued"


def test_what_was_pushed_before_is_tested_again_when_it_comes_back(harness: PullHarness) -> None:
    for number, commit in enumerate((1, 2, 1)):
        harness.receive(pull_intent(head=head(commit), updated_at=START + timedelta(minutes=number)))
        harness.work()
    assert [(one.head, one.trigger) for one in harness.campaigns()] == [
        (head(1), "pull_request:7"),
        (head(2), "pull_request:7"),
        (head(1), "pull_request:7:2"),
    ]
    assert [one.state for one in harness.campaigns()][:2] == [CampaignState.SUPERSEDED.value] * 2


@pytest.mark.parametrize("state", ["closed", "merged"])
def test_closing_ends_the_campaign_and_finishes_its_check(harness: PullHarness, state: str) -> None:
    harness.receive(pull_intent())
    harness.work()
    harness.receive(pull_intent(state=state, updated_at=START + timedelta(minutes=1)))
    (campaign,) = harness.campaigns()
    assert (campaign.state, campaign.reason) == ("superseded", f"pull request #7 was {state}")
    assert harness.checks.update_due() == 1
    assert harness.checks.update_due() == 0
    (check,) = harness.effects()
    assert (check.payload["status"], check.payload["conclusion"]) == ("completed", "cancelled")
    assert f"pull request \\#7 was {state}" in check.payload["output"]["summary"].replace("\u200b", "")


def test_what_is_opened_again_is_tested_again(harness: PullHarness) -> None:
    for number, state in enumerate(("open", "closed", "open")):
        harness.receive(pull_intent(state=state, updated_at=START + timedelta(minutes=number)))
        harness.work()
    assert [(one.state, one.trigger) for one in harness.campaigns()] == [
        ("superseded", "pull_request:7"),
        ("planning", "pull_request:7:2"),
    ]


def test_another_base_is_another_comparison(harness: PullHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness.receive(pull_intent())
    harness.work()
    monkeypatch.setattr(harness.mirrors, "merge_base", lambda *_: "c" * 40)
    harness.receive(pull_intent(base="d" * 40, base_ref="release", updated_at=START + timedelta(minutes=1)))
    harness.work()
    assert [(one.base, one.state) for one in harness.campaigns()] == [
        (ROOT, "superseded"),
        ("c" * 40, "planning"),
    ]


def test_a_push_that_is_not_tested_ends_the_campaign_before_it_all_the_same(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    harness.work()
    off = "version: 1\nbackend: openvino\npull_requests: {test: false}\n"
    harness.mirrors.files[head(2)] = {".github/assay.yml": off}
    harness.receive(pull_intent(head=head(2), updated_at=START + timedelta(minutes=1)))
    harness.work()
    assert [one.state for one in harness.campaigns()] == ["superseded"]
    with harness.database.reading() as session:
        assert [act.action for act in audit.of(session, TARGET, "campaign:1")] == ["ended"]


def test_code_of_a_fork_waits_and_nothing_of_it_is_read(harness: PullHarness) -> None:
    harness.mirrors.files[head(1)] = {".github/assay.yml": "version: 1\nbackend: openvino\nbudget: 12h\n"}
    harness.receive(pull_intent(**FROM_FORK))
    harness.work()
    assert harness.campaigns() == []
    assert harness.mirrors.read_at == {BASE}
    (check,) = harness.effects()
    assert (check.payload["head_sha"], check.payload["conclusion"]) == (head(1), "neutral")
    assert "/assay run" in check.payload["output"]["summary"]
    assert (check.mode, check.number) == ("live", 7)
    assert harness.audit_events() == ["held"]


def test_a_release_holds_for_one_commit_and_under_the_configuration_of_base(harness: PullHarness) -> None:
    harness.mirrors.files[head(1)] = {".github/assay.yml": "version: 1\nbackend: openvino\nbudget: 12h\n"}
    harness.receive(pull_intent(**FROM_FORK))
    harness.work()
    assert not harness.approve(7, head(9)), "another commit than the head cannot be released"
    assert harness.approve(7, head(1))
    harness.work()
    (campaign,) = harness.campaigns()
    assert (campaign.head, campaign.config["budget"]) == (head(1), 120.0)
    assert (head(1), ".github/assay.yml") not in harness.mirrors.reads

    harness.receive(pull_intent(**FROM_FORK, head=head(2), updated_at=START + timedelta(minutes=1)))
    harness.work()
    assert [(one.head, one.state) for one in harness.campaigns()] == [(head(1), "superseded")]
    assert harness.audit_events() == ["held", "approved", "tested", "voided", "held"]


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
    harness: PullHarness, association: str, role: str, runs: bool, asked: bool
) -> None:
    harness.github_reader.roles["jane"] = role
    harness.receive(pull_intent(head_repository="jane/compiler", association=association))
    harness.work()
    assert bool(harness.campaigns()) is runs
    assert harness.github_reader.asked == ["jane"] * asked


def test_where_github_cannot_be_asked_every_fork_waits(tmp_path: Path) -> None:
    harness = PullHarness(tmp_path, asking=False)
    harness.receive(pull_intent(8, head_repository="jane/compiler", association="OWNER"))
    harness.receive(pull_intent(9, head_repository="Octo/Compiler"))
    harness.receive(pull_intent(10, head_repository=""))
    harness.work()
    assert [one.pull for one in harness.campaigns()] == [9]
    harness.database.close()


@pytest.mark.parametrize(
    ("config", "changes", "why"),
    [
        ("pull_requests: {test: false}", {}, "pull_requests.test is off"),
        ("", {"draft": True}, "it is a draft"),
        (None, {}, "nothing to test"),
    ],
)
def test_what_is_left_alone_says_so_in_the_audit_alone(
    harness: PullHarness, config: str | None, changes: dict[str, Any], why: str
) -> None:
    files = {} if config is None else {".github/assay.yml": f"version: 1\nbackend: openvino\n{config}\n"}
    harness.mirrors.files = {head(1): files, BASE: files}
    harness.receive(pull_intent(**changes))
    harness.work()
    harness.receive(pull_intent(**changes))
    harness.work()
    assert (harness.campaigns(), harness.effects(), harness.audit_events()) == ([], [], ["silent"])
    assert why in harness.job()[1]


def test_drafts_are_tested_where_that_is_asked_for(harness: PullHarness) -> None:
    text = "version: 1\nbackend: openvino\npull_requests: {drafts: true}\n"
    harness.mirrors.files[head(1)] = {".github/assay.yml": text}
    harness.receive(pull_intent(draft=True))
    harness.work()
    assert len(harness.campaigns()) == 1


def test_in_rehearsal_nobody_is_told_to_wait(harness: PullHarness) -> None:
    harness.mirrors.files[BASE] = {".github/assay.yml": "version: 1\nbackend: openvino\n"}
    harness.receive(pull_intent(**FROM_FORK))
    harness.work()
    assert (harness.effects(), harness.audit_events()) == ([], ["held"])


def test_a_configuration_that_cannot_be_read_is_told_as_base_wants_it(harness: PullHarness) -> None:
    harness.mirrors.files[head(1)] = {".github/assay.yml": "version: 1\nbackend: opnevino\n"}
    harness.receive(pull_intent())
    harness.work()
    (check,) = harness.effects()
    assert check.payload["conclusion"] == "neutral"
    assert "opnevino" in check.payload["output"]["summary"]
    harness.mirrors.files[BASE] = {".github/assay.yml": "version: 1\nbackend: opnevino\n"}
    harness.receive(pull_intent(8))
    harness.work()
    assert len(harness.effects()) == 1, "where nobody said that reports may be sent, none is"
    assert harness.audit_events(8) == ["silent"]


def test_trouble_is_tried_again_and_given_up_in_the_end(harness: PullHarness) -> None:
    harness.mirrors.trouble = InfrastructureError("the network is away")
    harness.receive(pull_intent())
    harness.work()
    assert harness.job() == ("pending", "the network is away")
    harness.mirrors.trouble = None
    harness.work(600)
    assert len(harness.campaigns()) == 1
    harness.mirrors.trouble = InfrastructureError("the network is away")
    harness.receive(pull_intent(head=head(2), updated_at=START + timedelta(minutes=1)))
    for _ in range(6):
        harness.work(600)
    assert harness.job() == ("failed", "failed 5 times: the network is away")


def test_a_pull_request_that_github_does_not_know_is_left(harness: PullHarness) -> None:
    harness.receive(pull_intent(), known=False)
    harness.work()
    assert (harness.campaigns(), harness.audit_events()) == ([], ["silent"])


def test_github_is_believed_more_than_its_events(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    harness.github_reader.now[7] = pull_intent(head=head(3), updated_at=START + timedelta(seconds=30))
    harness.work()
    assert [one.head for one in harness.campaigns()] == [head(3)]
    harness.receive(pull_intent(head=head(4), updated_at=START + timedelta(minutes=1)))
    harness.github_reader.now[7] = pull_intent(state="closed", updated_at=START + timedelta(minutes=2))
    harness.work()
    assert [one.state for one in harness.campaigns()] == ["superseded"]


def test_a_push_while_it_is_looked_at_leaves_the_older_look_without_effect(
    harness: PullHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.receive(pull_intent())
    merge_base = harness.mirrors.merge_base

    def pushed(target: str, base: str, commit: str) -> str:
        if commit == head(1):
            harness.receive(pull_intent(head=head(2), updated_at=START + timedelta(minutes=1)))
        return merge_base(target, base, commit)

    monkeypatch.setattr(harness.mirrors, "merge_base", pushed)
    harness.work()
    assert harness.campaigns() == []
    harness.work()
    assert [one.head for one in harness.campaigns()] == [head(2)]


def test_a_wish_outlives_the_events_that_come_before_anybody_looks(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    harness.work()
    harness.ask("maintainer", {"budget": 30.0})
    harness.receive(pull_intent(action="edited", updated_at=START + timedelta(seconds=5)))
    harness.work()
    first, second = harness.campaigns()
    assert (first.state, second.trigger) == ("superseded", "pull_request:7:2")
    assert (second.overrides, second.requested_by) == ({"budget": 30.0}, "maintainer")


def test_a_wish_is_about_the_head_it_was_made_for(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    harness.ask("maintainer", {"budget": 30.0})
    harness.receive(pull_intent(head=head(2), updated_at=START + timedelta(seconds=5)))
    harness.work()
    (campaign,) = harness.campaigns()
    assert (campaign.head, campaign.overrides, campaign.requested_by) == (head(2), {}, "")


@settings(max_examples=12)
@given(st.permutations(range(6)), st.data())
def test_whatever_order_events_come_in_the_latest_counts(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], data: st.DataObject
) -> None:
    harness = PullHarness(tmp_path_factory.mktemp("room"), asking=False)
    twice = data.draw(st.lists(st.sampled_from(order), max_size=4))
    for number in [*order, *twice]:
        harness.receive(pull_intent(head=head(number), updated_at=START + timedelta(seconds=number)))
        if data.draw(st.booleans()):
            harness.work()
    harness.work()
    alive = [one.head for one in harness.campaigns() if one.state == CampaignState.PLANNING.value]
    assert alive == [head(5)]
    harness.database.close()


def test_the_kit_is_configured_as_it_says() -> None:
    assert pulls_kit.config().pull_requests.budget == 120.0


def overtaken(harness: PullHarness, meanwhile: Callable[[], object]) -> Callable[[str, int], PullIntent]:
    """GitHub's first answer, on whose way to us something happens."""
    ask, first = harness.github_reader.pull, [meanwhile]

    def pull(target: str, number: int) -> PullIntent:
        answer = ask(target, number)
        while first:
            first.pop()()
        return answer

    return pull


def pushed_and_released(harness: PullHarness) -> None:
    """Within the second of what GitHub has just answered."""
    harness.receive(pull_intent(**FROM_FORK, head=head(2)))
    assert harness.approve(7, head(2))


def test_a_push_within_the_second_of_an_answer_is_not_taken_back_nor_its_release(
    harness: PullHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.receive(pull_intent(**FROM_FORK))
    monkeypatch.setattr(
        harness.github_reader, "pull", overtaken(harness, lambda: pushed_and_released(harness))
    )
    harness.work()
    harness.work()
    assert [one.head for one in harness.campaigns()] == [head(2)]
    assert "voided" not in harness.audit_events()


def test_a_push_while_somebody_asks_is_not_taken_back_nor_its_release(
    harness: PullHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.receive(pull_intent(**FROM_FORK))
    harness.work()
    monkeypatch.setattr(
        harness.github_reader, "pull", overtaken(harness, lambda: pushed_and_released(harness))
    )
    seen = refresh_pull(
        harness.database, cast("Asked", harness.github_reader), TARGET, 7, harness.clock.now()
    )
    assert seen is not None
    assert (seen.head, seen.approved_head) == (head(2), head(2))


def test_a_push_that_is_noticed_because_somebody_asks_is_tested(harness: PullHarness) -> None:
    """Its webhook is lost; a comment makes us read the pull request."""
    harness.receive(pull_intent())
    harness.work()
    harness.github_reader.now[7] = pull_intent(head=head(2), updated_at=START + timedelta(minutes=1))
    refresh_pull(harness.database, cast("Asked", harness.github_reader), TARGET, 7, harness.clock.now())
    harness.work()
    assert [(one.head, one.state) for one in harness.campaigns()] == [
        (head(1), "superseded"),
        (head(2), "planning"),
    ]
    (job,) = jobs_of(harness)
    refresh_pull(harness.database, cast("Asked", harness.github_reader), TARGET, 7, harness.clock.now())
    assert jobs_of(harness) == [job], "there is no news"


def jobs_of(harness: PullHarness) -> list[tuple[str, int]]:
    """State and turn of each job."""
    with harness.database.reading() as session:
        return [(one.state, jobs.run_number(one)) for one in session.query(Job)]


def test_one_that_changes_while_it_is_looked_at_is_looked_at_again_at_once(
    harness: PullHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.receive(pull_intent())
    merge_base, first = harness.mirrors.merge_base, [True]

    def changed(target: str, base: str, commit: str) -> str:
        while first and first.pop():
            with harness.database.transaction() as session:
                session.get_one(Pull, (TARGET, 7)).author = "june"
        return merge_base(target, base, commit)

    monkeypatch.setattr(harness.mirrors, "merge_base", changed)
    harness.work()
    assert len(harness.campaigns()) == 1


def test_closed_and_opened_within_a_second_told_in_another_order_is_open(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    harness.work()
    harness.receive(pull_intent(action="reopened"))
    harness.work()
    harness.receive(pull_intent(action="closed", state="closed"), known=False)
    harness.work()
    (one, two) = harness.campaigns()
    assert (one.state, two.state) == ("superseded", "planning")


def test_a_wish_outlives_a_look_that_came_to_nothing(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    harness.work()
    harness.mirrors.trouble = InfrastructureError("the network is away")
    harness.ask("maintainer", {"budget": 30.0})
    for _ in range(6):
        harness.work(600)
    assert harness.job()[0] == "failed"
    harness.mirrors.trouble = None
    harness.receive(pull_intent(action="labeled"))
    harness.work()
    assert harness.campaigns()[-1].overrides == {"budget": 30.0}


def test_a_push_ends_the_campaign_before_it_though_nobody_has_looked_yet(harness: PullHarness) -> None:
    """In a storm each push puts off the look; what is overtaken must not come to its end meanwhile."""
    harness.receive(pull_intent())
    harness.work()
    harness.receive(pull_intent(head=head(2), updated_at=START + timedelta(seconds=1)))
    (old,) = harness.campaigns()
    assert (old.state, old.reason) == ("superseded", f"superseded: {head(2)[:12]} is the head of #7 now")
    harness.work()
    assert [one.state for one in harness.campaigns()] == ["superseded", "planning"]


def test_a_wish_that_is_stopped_before_anybody_looks_is_not_fulfilled(harness: PullHarness) -> None:
    """`/assay run`, then `/assay stop`, while the look of the first still waits."""
    harness.receive(pull_intent())
    harness.work()
    harness.ask("maintainer", {"budget": 30.0})
    assert harness.stop() == 1
    harness.work()
    assert [one.state for one in harness.campaigns()] == ["superseded"]
    assert harness.job() == ("done", f"commit {head(1)[:12]} was stopped; `/assay run` tests it")


def test_a_wish_that_is_stopped_while_it_is_looked_at_is_not_fulfilled(
    harness: PullHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.receive(pull_intent())
    harness.ask("maintainer", {})
    monkeypatch.setattr(harness.github_reader, "pull", overtaken(harness, lambda: harness.stop()))
    harness.work()
    harness.work()
    assert harness.campaigns() == []


def test_a_wish_of_a_look_that_came_to_nothing_is_stopped_too(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    harness.work()
    harness.change(lambda campaign: setattr(campaign, "state", "done"), 1)
    harness.mirrors.trouble = InfrastructureError("the network is away")
    harness.ask("maintainer", {"budget": 30.0})
    for _ in range(6):
        harness.work(600)
    assert (harness.job()[0], harness.stop(), harness.stop()) == ("failed", 1, 0)
    harness.mirrors.trouble = None
    harness.receive(pull_intent(action="labeled"))
    harness.work()
    assert [one.state for one in harness.campaigns()] == ["done"]


def test_what_was_stopped_is_tested_when_somebody_asks_and_not_before(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    harness.work()
    assert (harness.stop(), harness.stop()) == (1, 0)
    harness.receive(pull_intent(action="edited", updated_at=START + timedelta(minutes=1)))
    harness.work()
    assert [one.state for one in harness.campaigns()] == ["superseded"]
    harness.ask("maintainer", {})
    harness.work()
    assert [one.state for one in harness.campaigns()] == ["superseded", "planning"]


def test_a_push_behind_what_was_stopped_is_tested_and_what_comes_back_too(harness: PullHarness) -> None:
    harness.receive(pull_intent())
    harness.stop()
    for number, commit in enumerate((2, 1)):
        harness.receive(pull_intent(head=head(commit), updated_at=START + timedelta(minutes=number + 1)))
        harness.work()
    assert [(one.head, one.state) for one in harness.campaigns()] == [
        (head(2), "superseded"),
        (head(1), "planning"),
    ]


def test_the_last_of_two_commits_that_are_pushed_by_turns_is_tested(harness: PullHarness) -> None:
    for number, commit in enumerate((1, 2, 1, 2)):
        harness.receive(pull_intent(head=head(commit), updated_at=START + timedelta(minutes=number)))
        harness.work()
    alive = [one.head for one in harness.campaigns() if one.state == CampaignState.PLANNING.value]
    assert alive == [head(2)]
