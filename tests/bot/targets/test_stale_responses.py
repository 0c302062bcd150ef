"""What GitHub answered before a webhook told us otherwise does not count, wherever the two may meet."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.bugs import issue_updates
from bot.errors import InfrastructureError
from bot.github.resources import IssueInfo
from bot.github.responses import NotFoundError
from bot.store import outbox, targets
from bot.store.models import Bug, BugState, Job, JobState, PeriodicTask
from bot.targets import target_deletion
from bot.targets.target_deletion import DeletedData
from bot.webhooks.intents import CommentIntent, IssueIntent, PullIntent
from tests.bot.targets.targets_kit import CONFIG, TargetHarness, open_harness
from tests.github import app_installations
from tests.github.repository_double import RepositoryDouble


def look(watch: TargetHarness) -> str:
    """Another look, when it is due."""
    watch.clock.advance(minutes=20)
    return watch.do("reconciliation")["reconciliation"]


def due_for_reconciliation(watch: TargetHarness, name: str = "octo/compiler") -> bool:
    """Whether GitHub is asked about it at once."""
    with watch.database.reading() as session:
        return name in targets.due_for_reconciliation(
            session, watch.clock() - timedelta(days=1), 10, has_webhook=True
        )


def test_a_rename_while_the_repository_is_asked_about_is_not_taken_back(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.overtake(monkeypatch, "repository", lambda: repository.rename("machine"))
    look(watch)
    assert watch.targets() == {"octo/machine": "watched"}
    assert watch.audit_events("octo/machine").count("renamed") == 1
    watch.do("reconciliation")
    assert watch.targets() == {"octo/machine": "watched"}


def test_a_rename_while_the_installation_is_asked_is_not_taken_back(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.overtake(monkeypatch, "installation_repositories", lambda: repository.rename("machine"))
    watch.do("installations")
    assert watch.targets() == {"octo/machine": "watched"}
    assert watch.audit_events("octo/machine").count("renamed") == 1


@pytest.mark.parametrize("event", ["suspend", "uninstall"])
@pytest.mark.parametrize(
    ("task", "question"),
    [
        ("installations", "installations"),
        ("installations", "installation_repositories"),
        ("reconciliation", "repository"),
        ("reconciliation", "branch_head"),
        ("reconciliation", "pulls"),
    ],
)
def test_an_app_that_is_taken_away_meanwhile_is_no_bug_of_ours(
    watch: TargetHarness,
    repository: RepositoryDouble,
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    question: str,
    event: str,
) -> None:
    asked = []

    def take_away() -> None:
        asked.append(question)
        getattr(watch.hub, event)("octo")

    watch.overtake(monkeypatch, question, take_away)
    watch.clock.advance(days=1)
    with capture_logs() as logs:
        watch.do(task)
    assert asked == [question]
    assert [line for line in logs if line["log_level"] in ("error", "critical")] == []
    assert set(watch.targets().values()) <= {"suspended", "removed", "gone"}


def test_a_repository_deleted_while_its_installation_is_asked_stays_gone(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.overtake(monkeypatch, "installation_repositories", repository.delete)
    watch.do("installations")
    assert watch.targets() == {"octo/compiler": "gone"}
    assert watch.audit_events()[-1] == "gone"
    with watch.database.reading() as session:
        assert session.get_one(PeriodicTask, "installations").done_at is None, "it is asked once more"


def test_a_repository_that_comes_back_while_it_is_missed_stays(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(name: str) -> None:
        one, hub = watch.hub.installation("octo"), watch.hub.hub
        with hub.lock:
            app_installations.choose(hub, one, [], [repository.record])
            app_installations.choose(hub, one, [repository.record], [])
        watch.deliver()
        raise NotFoundError("404", "")

    monkeypatch.setattr(watch.reader, "repository", hidden)
    look(watch)
    assert watch.targets() == {"octo/compiler": "watched"}
    assert due_for_reconciliation(watch), "whether it is there is asked again"


@pytest.mark.parametrize("kept", [True, False])
def test_a_repository_whose_app_was_just_installed_anew_is_not_missed(
    watch: TargetHarness, repository: RepositoryDouble, kept: bool
) -> None:
    """Which installation has it is remembered for minutes; so is its token, unless that was given back."""
    if not kept:
        watch.reader._github_api.identity.close()
    hub = watch.hub.hub
    watch.hub.uninstall("octo")
    with hub.lock:
        app_installations.install(hub, repository.record.owner, [repository.record])
    watch.deliver()
    assert watch.do("reconciliation") == {"reconciliation": "1 repositories read"}
    assert watch.targets() == {"octo/compiler": "watched"}


def test_who_wants_another_look_gets_it_though_this_one_fails(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        repository.archive()
        watch.deliver()
        raise InfrastructureError("GitHub is away")

    monkeypatch.setattr(watch.reader, "pulls", fail)
    look(watch)
    assert watch.target().state == "archived"
    assert due_for_reconciliation(watch)


def test_no_campaign_of_a_repository_that_was_left_while_its_branch_was_asked_about(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"op.cc": "2\n"})
    watch.drop()
    watch.overtake(monkeypatch, "branch_head", repository.archive, nth=2)
    look(watch)
    assert watch.target().state == "archived"
    assert [one.state for one in watch.campaigns()] == ["superseded"]


def test_a_pull_request_that_was_told_of_while_all_were_asked_for_is_not_found(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = repository.open_pull({"op.cc": "9\n"})
    watch.deliver()
    watch.handled.clear()
    pushed: list[str] = []
    watch.overtake(
        monkeypatch, "pulls", lambda: pushed.append(repository.push_pull(number, {"op.cc": "10\n"}))
    )
    look(watch)
    heads = [one.head for one in watch.handled if isinstance(one, PullIntent)]
    assert heads == pushed
    assert "found" not in watch.audit_events()


def test_a_pull_request_that_could_not_be_looked_at_is_looked_at_again(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    repository.open_pull({"op.cc": "9\n"})
    watch.deliver()
    watch.handled.clear()
    with watch.database.transaction() as session:
        (job,) = session.query(Job).all()
        job.state, job.reason = JobState.FAILED.value, "failed 5 times: the network is away"
    look(watch)
    (again,) = watch.handled
    assert isinstance(again, PullIntent)
    with watch.database.reading() as session:
        (job,) = session.query(Job).all()
        assert job.state == JobState.PENDING.value
    watch.handled.clear()
    look(watch)
    assert watch.handled == [], "it waits for its turn"


def test_a_schedule_waits_where_the_default_branch_has_changed_meanwhile(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({".github/assay.yml": CONFIG + "schedules: {nightly: {cron: '0 3 * * *'}}\n"})
    watch.deliver()
    look(watch)
    before = len(watch.campaigns())

    def change() -> None:
        with watch.database.transaction() as session:
            row = targets.lock(session, "octo/compiler")
            assert row is not None
            row.default_branch = "trunk"

    watch.clock.advance(days=1)
    watch.overtake(monkeypatch, "branch_head", change)
    watch.do("schedules")
    assert len(watch.campaigns()) == before, "what it asked about is the old branch"
    assert any(one["next"] <= watch.clock().isoformat() for one in watch.target().schedules), (
        "it is due still"
    )


def test_what_came_back_is_not_forgotten(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two takes a while, in which the other is installed again."""
    others = [watch.hub.repository(f"octo/{name}") for name in ("a", "b")]
    watch.deliver()
    one = watch.hub.installation("octo")
    with watch.hub.hub.lock:
        app_installations.choose(watch.hub.hub, one, [], [other.record for other in others])
    watch.deliver()
    watch.clock.advance(days=31)
    forget = target_deletion.delete_target_data

    def slowly(*given: Any, **more: Any) -> DeletedData:
        if inspect.signature(forget).bind(*given, **more).arguments["target"] == "octo/a":
            with watch.hub.hub.lock:
                app_installations.choose(watch.hub.hub, one, [others[1].record], [])
            watch.deliver()
        return forget(*given, **more)

    monkeypatch.setattr(target_deletion, "delete_target_data", slowly)
    assert watch.do("retention")["retention"].startswith("1 repositories deleted")
    assert watch.targets() == {"octo/compiler": "watched", "octo/b": "watched"}


@pytest.fixture
def polled(tmp_path: Path) -> Iterator[TargetHarness]:
    """A repository of which no webhook tells, looked at once."""
    with open_harness(tmp_path, token="ada", watch=("octo/compiler",)) as made:
        made.hub.repository("octo/compiler", installed=False).commit({".github/assay.yml": CONFIG})
        made.do("reconciliation")
        made.clock.advance(minutes=3)
        yield made


def test_what_was_said_while_github_could_not_be_asked_is_heard(
    polled: TargetHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage of half an hour, longer than what is asked for twice."""
    repository = polled.hub.repository("octo/compiler")
    number = repository.open_issue("Slow")
    repository.comment(number, "ada", "/assay status")

    def away(*_: object) -> None:
        raise InfrastructureError("GitHub is away")

    with monkeypatch.context() as patch:
        patch.setattr(polled.reader, "comments_since", away)
        for _ in range(10):
            polled.do("reconciliation")
            polled.clock.advance(minutes=3)
    polled.do("reconciliation")
    handled = [one.body for one in polled.handled if isinstance(one, CommentIntent)]
    assert handled == ["/assay status"]
    polled.handled.clear()
    polled.clock.advance(hours=1)
    polled.do("reconciliation")
    assert polled.handled == []


def bug_of(watch: TargetHarness, state: BugState) -> tuple[RepositoryDouble, int, str]:
    """A bug with its issue, and the effect that closes it, which we have asked for."""
    repository = watch.hub.repository("octo/compiler")
    number = repository.open_issue("Resize: crash")
    with watch.database.transaction() as session:
        times = {"first_seen": watch.clock(), "last_seen": watch.clock()}
        bug = Bug(target=repository.name, signature="s", title="t", issue=number, state=state.value, **times)
        session.add(bug)
        session.flush()
        (_, closing) = issue_updates.draft_obsolete(session, bug, "nothing was seen of it")
        outbox.post(session, [closing], campaign_id=None, issues_per_day=0, at=watch.clock())
    return repository, number, closing.key


def issues(watch: TargetHarness) -> list[tuple[int, str]]:
    return [(one.number, one.action) for one in watch.handled if isinstance(one, IssueIntent)]


def test_an_issue_that_we_are_about_to_close_was_not_opened_by_people(polled: TargetHarness) -> None:
    _, number, key = bug_of(polled, BugState.CLOSED)
    polled.do("reconciliation")
    assert issues(polled) == []
    with polled.database.transaction() as session:  # somebody opens it, long after we closed it
        outbox.mark_sent(session, key, "url", None, polled.clock() - timedelta(hours=1), remote_id="1")
    polled.clock.advance(minutes=3)
    polled.do("reconciliation")
    assert issues(polled) == [(number, "reopened")]


def test_an_issue_that_we_close_while_it_is_asked_about_was_not_closed_by_people(
    polled: TargetHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, _, key = bug_of(polled, BugState.REPORTED)
    ask = polled.reader.issue

    def meanwhile(target: str, number: int) -> IssueInfo:
        repository.close_issue(number, reason="not_planned")
        with polled.database.transaction() as session:
            session.get_one(Bug, 1).state = BugState.CLOSED.value
            outbox.mark_sent(session, key, "url", None, polled.clock(), remote_id="1")
        return ask(target, number)

    monkeypatch.setattr(polled.reader, "issue", meanwhile)
    assert polled.do("reconciliation") == {"reconciliation": "1 repositories read"}
    assert issues(polled) == []
