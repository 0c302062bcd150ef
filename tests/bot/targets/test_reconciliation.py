"""What webhooks missed is found by looking, and becomes what they would have become."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bot.github.resources import RepositoryInfo
from bot.store.models import Bug, PeriodicTask
from bot.targets import repository_sync
from bot.targets.periodic_tasks import TaskContext
from bot.targets.target_lifecycle import get_or_create
from bot.webhooks.intents import CommentIntent, IssueIntent, PullIntent
from tests.bot.targets.targets_kit import CONFIG, TargetHarness, open_harness
from tests.github.repository_double import RepositoryDouble


def looked(watch: TargetHarness) -> str:
    """Another look, when it is due."""
    watch.clock.advance(minutes=20)
    return watch.do("reconciliation")["reconciliation"]


def pulls(watch: TargetHarness) -> list[tuple[int, str, str]]:
    return [(one.number, one.action, one.head) for one in watch.handled if isinstance(one, PullIntent)]


def test_a_missed_push_becomes_the_campaign_that_its_webhook_asks_for(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    before = repository.head()
    after = repository.commit({"op.cc": "2\n"})
    lost = watch.hub.deliveries.pop("push")
    assert looked(watch) == "1 repositories read"
    (first, found) = watch.campaigns()
    assert (found.head, found.base, found.ref, found.trigger) == (after, before, "refs/heads/main", "push")
    watch.take(lost)
    assert len(watch.campaigns()) == 2, "the delivery comes after all, and changes nothing"
    assert first.head == before


def test_what_came_by_webhook_is_not_found_again(watch: TargetHarness, repository: RepositoryDouble) -> None:
    repository.commit({"op.cc": "2\n"})
    number = repository.open_pull({"op.cc": "3\n"})
    watch.deliver()
    watch.handled.clear()
    count = len(watch.campaigns())
    looked(watch)
    looked(watch)
    assert (pulls(watch), len(watch.campaigns()), number) == ([], count, number)


def test_several_missed_pushes_are_one_campaign_and_late_ones_none(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    start = repository.head()
    for text in ("2", "3", "4"):
        watch.clock.advance(seconds=1)
        repository.commit({"op.cc": text})
    late = [watch.hub.deliveries.pop("push") for _ in range(3)]
    looked(watch)
    for delivery in (late[1], late[0], late[2]):
        watch.take(delivery)
    (_, found) = watch.campaigns()
    assert (found.base, found.head, found.state) == (start, repository.head(), "planning")


def test_a_push_that_comes_while_github_is_asked_is_not_taken_back(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, requested, after = watch.reader.branch_head, 0, ""

    def overtaken(target: str, branch: str) -> str:
        nonlocal requested, after
        reported, requested = ask(target, branch), requested + 1
        if requested == 2:  # the first asks for the configuration, the second for the branch
            after = repository.commit({"op.cc": "2\n"})
            watch.deliver()
        return reported

    monkeypatch.setattr(watch.reader, "branch_head", overtaken)
    looked(watch)
    (_, found) = watch.campaigns()
    assert (found.head, found.state) == (after, "planning")
    assert watch.target().heads["main"]["commit"] == after
    watch.do("reconciliation")
    assert len(watch.campaigns()) == 2


def test_what_comes_while_github_is_asked_about_a_repository_holds(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = watch.reader.repository

    def overtaken(target: str) -> RepositoryInfo:
        facts = ask(target)
        repository.archive()
        watch.deliver()
        return facts

    monkeypatch.setattr(watch.reader, "repository", overtaken)
    looked(watch)
    assert watch.target().state == "archived"
    assert watch.audit_events().count("watched") == 1
    monkeypatch.undo()
    repository.archive(False)
    watch.drop()
    watch.do("reconciliation")
    assert watch.target().state == "watched", "it was due again at once"


def test_each_missed_turn_of_a_pull_request_is_found(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    number = repository.open_pull({"op.cc": "9\n"})
    turns: list[str] = []

    def found() -> str:
        watch.drop()
        watch.handled.clear()
        looked(watch)
        assert len(watch.handled) == 1
        intent = watch.handled[0]
        assert isinstance(intent, PullIntent)
        pull = repository.pull(number).pull
        assert pull is not None
        assert intent.head == pull.head_sha
        return intent.action

    turns.append(found())
    repository.push_pull(number, {"op.cc": "10\n"})
    turns.append(found())
    repository.set_draft(number, True)
    turns.append(found())
    repository.set_draft(number, False)
    turns.append(found())
    repository.close_pull(number)
    turns.append(found())
    repository.reopen_pull(number)
    turns.append(found())
    repository.merge_pull(number)
    turns.append(found())
    assert turns == [
        "opened",
        "synchronize",
        "converted_to_draft",
        "ready_for_review",
        "closed",
        "reopened",
        "closed",
    ]
    watch.handled.clear()
    looked(watch)
    assert watch.handled == []


def test_what_was_there_before_us_is_left_alone(watch: TargetHarness) -> None:
    """A thousand open pull requests at the first look are no thousand campaigns."""
    repository = watch.hub.repository("octo/compiler")
    repository.commit({".github/assay.yml": CONFIG})
    old = repository.open_pull({"op.cc": "1\n"})
    watch.drop()
    with watch.database.transaction() as session:
        get_or_create(session, "octo/compiler", None, watch.clock())
    looked(watch)
    assert (watch.handled, watch.campaigns()) == ([], [])
    repository.push_pull(old, {"op.cc": "2\n"})
    repository.open_pull({"op.cc": "3\n"}, branch="other")
    watch.drop()
    looked(watch)
    assert [action for _, action, _ in pulls(watch)] == ["synchronize", "opened"]


def test_settings_of_the_repository_are_read_again(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    repository.disable_issues()
    repository.commit({".github/assay.yml": CONFIG + "branches: [main, 'v*']\npull_requests: {gate: true}\n"})
    watch.drop()
    looked(watch)
    target = watch.target()
    assert (target.has_issues, target.default_branch) == (False, "main")
    assert target.policy == {"branches": ["main", "v*"], "gate": True, "commit": repository.head()}
    assert "disabled" in watch.audit_events()


def test_a_configuration_with_a_mistake_leaves_the_last_one_in_force(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    good = watch.target().policy
    repository.commit({".github/assay.yml": "backend: 7\n"})
    looked(watch)
    policy = watch.target().policy
    assert policy["branches"] == good["branches"]
    assert "backend" in policy["problem"]


def test_a_missed_rename_is_found_and_all_rows_follow(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    repository.rename("machine")
    watch.drop()
    looked(watch)
    assert watch.targets() == {"octo/machine": "watched"}
    assert {one.target for one in watch.campaigns()} == {"octo/machine"}


def test_archived_and_deleted_repositories_are_left(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    repository.archive()
    watch.drop()
    looked(watch)
    assert watch.targets() == {"octo/compiler": "archived"}
    assert [one.state for one in watch.campaigns()] == ["superseded"]
    repository.archive(False)
    watch.drop()
    looked(watch)
    assert watch.targets() == {"octo/compiler": "watched"}
    repository.delete()
    watch.drop()
    looked(watch)
    assert watch.targets() == {"octo/compiler": "gone"}


def test_a_repository_without_webhooks_is_polled_with_a_token(tmp_path: Path) -> None:
    with open_harness(tmp_path, token="ada", watch=("Octo/Compiler",)) as watch:
        repository = watch.hub.repository("octo/compiler", installed=False)
        repository.commit({".github/assay.yml": CONFIG})
        watch.do("reconciliation")
        assert watch.targets() == {"octo/compiler": "watched"}, "under the name GitHub gives it"
        number = repository.open_pull({"op.cc": "1\n"})
        watch.clock.advance(minutes=3)
        repository.comment(number, "ada", "/assay run")
        watch.do("reconciliation")
        watch.clock.advance(minutes=3)
        watch.do("reconciliation")
        comments = [one for one in watch.handled if isinstance(one, CommentIntent)]
        assert {(one.number, one.author, one.body, one.on_pull) for one in comments} == {
            (number, "ada", "/assay run", True)
        }
        assert [action for _, action, _ in pulls(watch)] == ["opened"]


def test_events_that_the_app_does_not_hear_are_polled(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    watch.hub.installation("octo").events.remove("issue_comment")
    watch.do("installations")
    number = repository.open_issue("Slow")
    watch.clock.advance(minutes=3)
    repository.comment(number, "ada", "/assay status")
    watch.drop()
    looked(watch)
    assert [one.body for one in watch.handled if isinstance(one, CommentIntent)] == ["/assay status"]


def test_an_app_without_a_webhook_polls(watch: TargetHarness, repository: RepositoryDouble) -> None:
    watch.reader.hook = ""
    with watch.database.transaction() as session:
        session.get_one(
            PeriodicTask, "reconciliation"
        ).saved_state = {}  # an hour has passed, as far as the webhook goes
    number = repository.open_issue("Slow")
    repository.comment(number, "ada", "/assay status")
    watch.clock.advance(minutes=3)
    watch.do("reconciliation")
    assert {one.body for one in watch.handled if isinstance(one, CommentIntent)} == {"/assay status"}


def test_an_issue_that_was_closed_unheard_is_noticed(tmp_path: Path) -> None:
    with open_harness(tmp_path, token="ada", watch=("octo/compiler",)) as watch:
        repository = watch.hub.repository("octo/compiler", installed=False)
        repository.commit({".github/assay.yml": CONFIG})
        numbers = [repository.open_issue(title) for title in ("first", "second")]
        watch.do("reconciliation")
        with watch.database.transaction() as session:
            for number in numbers:
                times = {"first_seen": watch.clock(), "last_seen": watch.clock()}
                bug = Bug(target="octo/compiler", signature=f"s{number}", title="t", issue=number, **times)
                session.add(bug)
        repository.close_issue(numbers[0], reason="not_planned")
        watch.clock.advance(minutes=3)
        watch.do("reconciliation")
        reported = [one for one in watch.handled if isinstance(one, IssueIntent)]
        assert [(one.number, one.action, one.state_reason) for one in reported] == [
            (numbers[0], "closed", "not_planned")
        ]
        for _ in range(2):
            watch.clock.advance(hours=3)
            watch.do("reconciliation")
            watch.handled.clear()
        watch.clock.advance(hours=3)
        watch.do("reconciliation")
        assert watch.handled == []


def test_nothing_is_asked_twice_within_its_time(watch: TargetHarness, repository: RepositoryDouble) -> None:
    watch.do("reconciliation")
    count = len(watch.hub.seen)
    watch.clock.advance(minutes=14)
    assert watch.do("reconciliation") == {"reconciliation": "0 repositories read"}
    assert len(watch.hub.seen) == count
    assert timedelta(0) < watch.clock() - (watch.target().reconciled_at or watch.clock())


def test_one_repositorys_fault_is_its_own(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is quarantined with the reason, and retried after growing delays; all others are read."""
    watch.hub.repository("octo/hostile").commit({"requirements.txt": "openvino==1\n"})
    watch.deliver()
    read = repository_sync.sync_repository
    tried: list[str] = []

    def planted(context: TaskContext, name: str) -> str:
        tried.append(name)
        if name == "octo/hostile" and len(tried) < 8:
            raise KeyError("planted")
        return read(context, name)

    monkeypatch.setattr(repository_sync, "sync_repository", planted)
    note = looked(watch)
    assert note == "1 repositories read; quarantined: octo/hostile (KeyError: 'planted')"
    for _ in range(12):
        watch.clock.advance(minutes=1)
        watch.do("reconciliation")
    assert 2 <= tried.count("octo/hostile") <= 4, "1 + the retries after 2, 4 and 8 minutes"
    watch.clock.advance(hours=7)
    tried += ["-"] * 8
    assert watch.do("reconciliation")["reconciliation"] == "2 repositories read"
