"""Installations, renames, archives: through the gate, from deliveries of the double, in any order."""

from __future__ import annotations

import random
from typing import Any

import pytest

from bot.github.dry_run import DryRunSink
from bot.github.github_api import GitHubApi
from bot.github.identity import Credentials
from bot.github.live_sink import GitHubSink
from bot.github.outbox_queue import OutboxQueue
from bot.store import outbox, periodic_tasks, targets
from bot.store.models import Bug, Effect, EffectState, Installation
from bot.store.outbox import EffectDraft
from bot.targets.event_filter import EventFilter
from bot.webhooks.intents import CheckIntent, Intent
from bot.worker import Worker
from tests.bot.targets.targets_kit import CONFIG, TargetHarness
from tests.github import app_installations
from tests.github.repository_double import RepositoryDouble


def deliveries(watch: TargetHarness) -> list[Any]:
    """All that GitHub wants to tell, taken from it."""
    taken = []
    while len(watch.hub.deliveries):
        taken.append(watch.hub.deliveries.pop())
    return taken


def post(
    watch: TargetHarness, key: str, kind: str = "check_run", target: str = "octo/compiler", **more: Any
) -> None:
    with watch.database.transaction() as session:
        draft = EffectDraft(
            **{"kind": kind, "key": key, "target": target, "payload": {}, "mode": "live", **more}
        )
        outbox.post(session, [draft], campaign_id=None, issues_per_day=9, at=watch.clock())


def effects(watch: TargetHarness) -> dict[str, tuple[str, str]]:
    with watch.database.reading() as session:
        rows = [effect for state in EffectState for effect in outbox.in_state(session, state)]
        return {row.key: (row.state, row.reason) for row in rows}


def test_an_installation_brings_its_repositories_under_watch(watch: TargetHarness) -> None:
    watch.hub.repository("octo/compiler")
    watch.hub.repository("octo/other")
    watch.deliver()
    assert watch.targets() == {"octo/compiler": "watched", "octo/other": "watched"}
    with watch.database.reading() as session:
        row = session.get_one(Installation, watch.target().installation_id)
        assert (row.account, row.permissions["checks"]) == ("octo", "write")


@pytest.mark.parametrize("seed", range(3))
def test_in_any_order_the_end_is_what_github_says(watch: TargetHarness, seed: int) -> None:
    """What a shuffled, doubled and partly lost history leaves unclear, the next look settles."""
    repository = watch.hub.repository("octo/compiler")
    other = watch.hub.repository("octo/other")
    repository.commit({".github/assay.yml": CONFIG})
    repository.rename("first")
    repository.archive()
    repository.archive(False)
    watch.hub.suspend("octo")
    watch.hub.suspend("octo", False)
    repository.rename("second")
    watch.vacate("octo/compiler")
    other.rename("compiler")
    random_ = random.Random(seed)
    reported = [one for one in deliveries(watch) if random_.random() < 0.8]
    reported += random_.sample(reported, k=3)
    random_.shuffle(reported)
    for delivery in reported:
        watch.take(delivery)
    for _ in range(2):
        watch.clock.advance(minutes=20)
        watch.do("installations", "reconciliation")
    assert watch.targets() == {"octo/second": "watched", "octo/compiler": "watched"}
    assert watch.target("octo/second").github_id == repository.record.id
    assert watch.target("octo/compiler").github_id == other.record.id
    assert {one.target for one in watch.campaigns()} <= {"octo/second"}


def test_uninstalling_ends_what_is_under_way_whenever_it_is_heard(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    post(watch, "waiting")
    watch.hub.suspend("octo")
    watch.hub.suspend("octo", False)
    watch.hub.uninstall("octo")
    suspended, back, gone = deliveries(watch)
    for delivery in (gone, back, suspended):
        watch.take(delivery)
    assert watch.targets() == {"octo/compiler": "removed"}
    assert [one.state for one in watch.campaigns()] == ["superseded"]
    assert effects(watch)["waiting"] == ("failed", "not sent: the GitHub App was uninstalled")
    assert watch.audit_events()[-1] == "removed"
    assert watch.target().removed_at == watch.clock()


def test_events_of_a_repository_that_is_not_watched_change_nothing(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    repository.commit({"op.cc": "2\n"})
    push = watch.hub.deliveries.pop("push")
    watch.drop()
    watch.hub.uninstall("octo")
    watch.deliver()
    watch.take(push)
    assert len(watch.campaigns()) == 1


def test_installing_again_takes_everything_up_again(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    post(watch, "never left")
    watch.hub.uninstall("octo")
    watch.deliver()
    with watch.hub.hub.lock:
        app_installations.install(watch.hub.hub, watch.hub.hub.world.account("octo"), [repository.record])
    after = repository.commit({"op.cc": "3\n"})
    created = deliveries(watch)
    for delivery in reversed(created):  # the push is heard before the installation
        watch.take(delivery)
    assert watch.targets() == {"octo/compiler": "watched"}
    assert watch.target().removed_at is None
    assert watch.campaigns()[-1].head == after
    assert effects(watch) == {}, "what never left is posted again by whoever has something to say"


def test_a_rename_moves_every_row_and_later_events_of_the_old_name_find_it(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    post(watch, "e", number=3)
    repository.commit({"op.cc": "2\n"})
    late = deliveries(watch)
    repository.rename("machine")
    watch.deliver()
    for delivery in late:
        watch.take(delivery)
    assert watch.targets() == {"octo/machine": "watched"}
    assert {one.target for one in watch.campaigns()} == {"octo/machine"}
    with watch.database.reading() as session:
        assert session.get_one(Effect, "e").target == "octo/machine"
    assert "renamed" in watch.audit_events("octo/machine")


def test_two_repositories_can_swap_names(watch: TargetHarness, repository: RepositoryDouble) -> None:
    other = watch.hub.repository("octo/other")
    other.commit({".github/assay.yml": CONFIG, "x": "1\n"})
    watch.deliver()
    repository.rename("passing")
    watch.vacate("octo/compiler")
    other.rename("compiler")
    watch.vacate("octo/other")
    repository.rename("other")
    reported = deliveries(watch)
    for delivery in (reported[1], reported[2], reported[0]):
        watch.take(delivery)
    watch.do("installations", "reconciliation")
    ids = {name: watch.target(name).github_id for name in watch.targets()}
    assert ids == {"octo/other": repository.record.id, "octo/compiler": other.record.id}
    heads = {one.target: one.head for one in watch.campaigns()}
    assert heads == {"octo/other": repository.head(), "octo/compiler": other.head()}


def test_disabled_issues_give_up_issues_alone_and_enabled_ones_bring_them_back(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    with watch.database.transaction() as session:
        times = {"first_seen": watch.clock(), "last_seen": watch.clock()}
        session.add(Bug(target="octo/compiler", signature="s", title="t", **times))
    post(watch, "i", "issue", signature="s")
    post(watch, "c", "comment", depends_on="i")
    post(watch, "check")
    repository.disable_issues()
    watch.clock.advance(minutes=20)
    watch.do("reconciliation")
    found = effects(watch)
    assert {key: state for key, (state, _) in found.items()} == {
        "i": "failed",
        "c": "failed",
        "check": "pending",
    }
    assert "enable them in its settings" in found["i"][1]
    repository.record.has_issues = True
    watch.clock.advance(minutes=20)
    watch.do("reconciliation")
    assert set(effects(watch)) == {"check"}, "the next campaign posts the issue anew"


def closed_for_a_while(watch: TargetHarness, repository: RepositoryDouble, how: str, closed: bool) -> None:
    if how == "archived":
        repository.archive(closed)
    elif how == "suspended":
        watch.hub.suspend("octo", closed)
    elif closed:
        repository.disable_issues()
    else:
        repository.record.has_issues = True


@pytest.mark.parametrize("received", [True, False])
@pytest.mark.parametrize("how", ["archived", "suspended", "issues off"])
def test_what_github_refused_before_we_were_told_why_goes_on_afterwards(
    watch: TargetHarness, repository: RepositoryDouble, how: str, received: bool
) -> None:
    """Heard of, it is dropped for the next campaign to post; never heard of, it is sent after all."""
    with watch.database.transaction() as session:
        times = {"first_seen": watch.clock(), "last_seen": watch.clock()}
        session.add(Bug(target="octo/compiler", signature="s", title="t", **times))
    payload = {"title": "t", "body": "b", "labels": []}
    post(watch, "i", "issue", signature="s", payload=payload)
    hub = GitHubApi(Credentials(app_id=watch.hub.app_id, private_key=watch.hub.private_key), watch.hub.url)
    publisher = Worker(
        OutboxQueue(
            watch.database, GitHubSink(hub), watch.clock, DryRunSink(watch.dependencies.data_dir / "outbox")
        )
    )
    closed_for_a_while(watch, repository, how, True)
    publisher.run_once()
    state, reason = effects(watch)["i"]
    assert (state, reason.startswith("not sent: GitHub answered 4")) == ("failed", True)
    if received:
        look(watch)
    closed_for_a_while(watch, repository, how, False)
    if not received:
        watch.drop()
    look(watch)
    if not received:
        publisher.run_once()
    assert {key: state for key, (state, _) in effects(watch).items()} == ({} if received else {"i": "sent"})
    assert watch.targets() == {"octo/compiler": "watched"}
    hub.close()


def look(watch: TargetHarness) -> None:
    """Hears what there is to hear, and looks at everything."""
    watch.deliver()
    watch.clock.advance(minutes=20)
    watch.do("installations", "reconciliation")


def test_a_merge_group_is_tested_where_the_repository_gates(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    def queue() -> list[str]:
        number = repository.open_pull({"op.cc": str(watch.clock())}, branch=f"b{watch.clock():%H%M}")
        repository.merge_group(number)
        watch.deliver()
        return [one.head for one in watch.campaigns() if one.trigger == "merge_group"]

    assert queue() == []
    repository.commit({".github/assay.yml": CONFIG + "pull_requests: {gate: true}\n"})
    watch.deliver()
    watch.clock.advance(minutes=20)
    watch.do("reconciliation")
    assert len(queue()) == 1
    assert not [one for one in watch.campaigns() if "gh-readonly-queue" in one.ref and one.trigger == "push"]


def test_checks_of_another_app_are_passed_over(watch: TargetHarness, repository: RepositoryDouble) -> None:
    def requested(app: str, *names: str) -> bool:
        received: list[Intent] = []
        gate = EventFilter(lambda _session, intent: received.append(intent), app=app)
        intent = CheckIntent(
            target="octo/compiler",
            action="rerequested",
            head="a" * 40,
            external_id="",
            sender="ada",
            app=names,
        )
        with watch.database.transaction() as session:
            gate(session, intent)
        return bool(received)

    assert requested("7", "7", "Iv1.abc")
    assert requested("Iv1.abc", "7", "Iv1.abc")
    assert not requested("8", "7", "Iv1.abc")
    assert requested("Iv1.abc", "7"), "its client id is not told"
    assert requested("", "7"), "there is no App"


def test_a_branch_that_goes_to_and_fro_is_tested_where_it_ends(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    first = repository.head()
    second = repository.commit({"op.cc": "2\n"})
    for commit in (first, second, first, second):
        watch.clock.advance(seconds=10)
        repository.force("main", commit)
        watch.deliver()
    alive = [one.head for one in watch.campaigns() if one.state == "planning"]
    assert alive == [second]


def leave_out(watch: TargetHarness, repository: RepositoryDouble) -> None:
    """Somebody takes it from the installation."""
    with watch.hub.hub.lock:
        app_installations.choose(watch.hub.hub, watch.hub.installation("octo"), [], [repository.record])


def test_lost_installations_and_repositories_are_noticed(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    other = watch.hub.repository("octo/other")
    watch.deliver()
    leave_out(watch, other)
    watch.drop()
    watch.do("installations")
    assert watch.targets() == {"octo/compiler": "watched", "octo/other": "removed"}
    watch.hub.uninstall("octo")
    watch.drop()
    watch.do("installations")
    assert watch.targets() == {"octo/compiler": "removed", "octo/other": "removed"}


def due(watch: TargetHarness) -> list[str]:
    """The duties that are done once more."""
    with watch.database.reading() as session:
        return [row.name for row in periodic_tasks.list_all(session) if row.done_at is None]


def test_a_repository_that_comes_while_github_is_asked_stays(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.deliver()
    watch.overtake(monkeypatch, "installation_repositories", lambda: watch.hub.repository("octo/new"))
    watch.do("installations")
    assert watch.targets() == {"octo/compiler": "watched", "octo/new": "watched"}
    assert watch.audit_events("octo/new") == ["watched"]
    assert due(watch) == ["installations"]
    watch.do("installations")
    assert due(watch) == []
    assert watch.targets() == {"octo/compiler": "watched", "octo/new": "watched"}


def test_a_repository_that_leaves_while_github_is_asked_is_gone(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = watch.hub.repository("octo/other")
    watch.deliver()
    watch.overtake(monkeypatch, "installation_repositories", lambda: leave_out(watch, other))
    watch.do("installations")
    assert watch.targets() == {"octo/compiler": "watched", "octo/other": "removed"}
    assert watch.audit_events("octo/other") == ["watched", "removed"]


def test_an_installation_that_comes_while_github_is_asked_stays(
    watch: TargetHarness, repository: RepositoryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.deliver()
    watch.overtake(monkeypatch, "installations", lambda: watch.hub.repository("acme/graphs"))
    watch.do("installations")
    assert watch.targets() == {"octo/compiler": "watched", "acme/graphs": "watched"}


def test_a_target_says_why_it_is_not_watched(watch: TargetHarness, repository: RepositoryDouble) -> None:
    repository.archive()
    watch.deliver()
    with watch.database.reading() as session:
        assert targets.unwatched_reason(session, "octo/compiler") == (
            "octo/compiler is archived: the repository is archived"
        )
        assert targets.unwatched_reason(session, "un/known") == ""
