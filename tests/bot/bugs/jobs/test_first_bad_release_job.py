"""Since which release a filed bug is there: found without being asked, once; told if it is an answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from bot.bisection.releases import Range, releases
from bot.bugs import first_bad_release, reproduction, transitions
from bot.bugs.jobs.first_bad_release import MAX_WAIT
from bot.bugs.release_bisection import release_range
from bot.jobs.job_context import JobContext, JobSpec
from bot.jobs.registry import Lane, get_job_kind
from bot.settings import Settings
from bot.store import Database, audit, bugs, jobs, outbox, target_rename, targets
from bot.store.bug_states import Event
from bot.store.bugs import Sighting
from bot.store.models import Bug, BugState, Campaign, Effect, EffectState, Job, JobState, Toolchain
from bot.store.outbox import EffectDraft
from tests.bot.campaigns import fakes
from tests.bot.jobs import killing
from tests.bot.jobs.killing import START, TARGET
from tests.scenarios import fake_toolchain

RANGE = Range.parse(f"openvino:2023..{fake_toolchain.BAD}")


class Index:
    """Knows these releases, oldest first."""

    def __init__(self, there: Sequence[str]) -> None:
        self._left = list(there)

    def lowest_release(self, python: Path, requirement: str, /) -> str | None:
        return self._left.pop(0) if self._left else None


class World:
    """A bug whose issue is on its way out, and releases of which the newest shows it."""

    def __init__(self, folder: Path, there: Sequence[str] = tuple(sorted(fake_toolchain.BROKEN))) -> None:
        self.settings = Settings(data_dir=folder, workers=1)
        folder.mkdir()
        killing.prepare(self.settings.database_url)
        self.services = killing.services(self.settings)
        self.database = Database(self.settings.database_url)
        (folder / "bisections").mkdir()
        assert releases(RANGE, Index(there), folder / "bisections" / "releases") == tuple(there)
        with self.database.transaction() as session:
            jobs.complete(session.get_one(Job, 1), JobState.DONE, "", {}, START)
            bug = session.get_one(Bug, 1)
            bug.state, bug.issue = BugState.NEW.value, None
            row = session.get_one(Toolchain, session.get_one(Campaign, 1).head_toolchain)
            row.versions = {"openvino": fake_toolchain.BAD}
            payload = {"title": "Add", "body": "words\n<!-- assay:e -->\n", "labels": []}
            draft = EffectDraft("issue", "e", TARGET, payload, "s")
            outbox.post(session, [draft], campaign_id=1, issues_per_day=5, at=START)

    def configure(self, **reports: Any) -> None:
        with self.database.transaction() as session:
            row = session.get_one(Campaign, 1)
            row.config = {**row.config, "reports": {**row.config["reports"], **reports}}

    def enqueue(self) -> Job | None:
        with self.database.transaction() as session:
            at = self.services.clock.now()
            first_bad_release.request_search(
                session, session.get_one(Effect, "e"), bugs.of_id(session, 1), at
            )
        with self.database.reading() as session:
            return session.query(Job).filter(Job.kind == first_bad_release.FIRST_BAD_RELEASE).one_or_none()

    def work(self) -> Job:
        """Does it as a worker would."""
        with self.database.transaction() as session:
            at = self.services.clock.now()
            job = jobs.claim(
                session, [first_bad_release.FIRST_BAD_RELEASE], "me", at, at + timedelta(hours=1)
            )
            assert job is not None, "it is due"
            job_spec = JobSpec.of(job)
        job_context = JobContext(
            job_spec, self.database, self.settings, self.services, "me", threading.Event()
        )
        get_job_kind(first_bad_release.FIRST_BAD_RELEASE).work(job_context)
        with self.database.reading() as session:
            return session.get_one(Job, job_spec.id)

    def complete(self) -> None:
        """Works until it is done, as the worker of a process that begins anew."""
        while True:
            with self.database.transaction() as session:
                jobs.release_other_leases(session, [first_bad_release.FIRST_BAD_RELEASE], "nobody")
            with self.database.reading() as session:
                [job] = session.query(Job).filter(Job.kind == first_bad_release.FIRST_BAD_RELEASE)
                if job.state == JobState.DONE.value:
                    return
            self.work()

    def change(self, **fields: Any) -> None:
        with self.database.transaction() as session:
            bug = session.get_one(Bug, 1)
            for name, value in fields.items():
                setattr(bug, name, value)

    @property
    def bug(self) -> Bug:
        with self.database.reading() as session:
            return session.get_one(Bug, 1)

    @property
    def notes(self) -> list[Effect]:
        with self.database.reading() as session:
            return session.query(Effect).filter(Effect.kind == first_bad_release.NOTE).all()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "world")
    made.configure(bisect="auto")
    yield made
    made.database.close()


def test_it_is_asked_once_and_told_behind_the_issue(world: World) -> None:
    first, again = world.enqueue(), world.enqueue()
    assert first is not None
    assert again is not None
    assert first.id == again.id
    job = world.work()
    assert (job.state, job.reason) == (
        JobState.DONE.value,
        "began to fail in openvino 2026.4.1; openvino 2025.4.0 does not fail",
    )
    assert world.bug.facts["bisection"]["since"]["release"] == fake_toolchain.BAD
    [note] = world.notes
    assert (note.depends_on, note.number, note.state) == ("e", None, EffectState.PENDING.value)
    body = str(note.payload["body"])
    assert body.startswith("Began to fail in openvino 2026.4.1; openvino 2025.4.0 does not fail.\n")
    assert "✗  fails  2026.4.1  crash ×2" in body
    assert f"`assay bisect {killing.FAILING[:16]} --releases openvino:2023..2026.4.1" in body
    with world.database.reading() as session:
        assert body.endswith(f"\n<!-- assay:{first_bad_release.comment_key(session, world.bug)} -->\n")
    # Another issue about it would say it from the first.
    assert first_bad_release.render_section(world.bug).startswith(
        "### Since which release\n\nBegan to fail in openvino 2026.4.1;"
    )
    assert first_bad_release.summarize(world.bug).startswith(
        "**First bad release:** began to fail in openvino"
    )


@pytest.mark.parametrize("renamed", [False, True])
def test_a_note_on_an_issue_that_is_out_is_edited_in_place(world: World, *, renamed: bool) -> None:
    with world.database.transaction() as session:
        targets.ensure(session, TARGET)
    world.enqueue()
    world.change(issue=7, state=BugState.REPORTED.value)
    world.work()
    [note] = world.notes
    assert (note.depends_on, note.number, note.revision) == ("", 7, 1)
    with world.database.transaction() as session:
        if renamed:
            target_rename.rename_target(session, TARGET, f"{TARGET}-by-another-name")
        bug = session.get_one(Bug, 1)
        answer = {**bug.facts["bisection"]["since"], "before": "2024.0.0", "between": ["2025.4.0"]}
        bugs.set_fact(session, bug, "bisection", {"since": answer})
        first_bad_release.update_comment(session, bug, START)
    [note] = world.notes
    assert note.revision == 2
    assert "began to fail after openvino 2024.0.0" in str(note.payload["body"]).lower()


@pytest.mark.parametrize(
    ("reports", "provisioner"), [({"bisect": "manual"}, "release"), ({"bisect": "auto"}, "existing")]
)
def test_it_is_not_asked_where_nobody_wants_it_or_builds_are_of_no_commit(
    world: World, reports: dict[str, str], provisioner: str
) -> None:
    world.configure(**reports)
    with world.database.transaction() as session:
        for row in session.query(Toolchain):
            row.provisioner = provisioner
    assert world.enqueue() is None


@pytest.mark.parametrize("provisioner", ["overlay", "source", "artifact", "index"])
def test_it_is_asked_where_builds_are_commits(world: World, provisioner: str) -> None:
    with world.database.transaction() as session:
        for row in session.query(Toolchain):
            row.provisioner = provisioner
    assert world.enqueue() is not None


@pytest.mark.parametrize(
    ("version", "provisioner", "newest"),
    [
        ("0.27.dev0+gabc1234", "source", "0.27"),
        ("0.27.0.post1", "overlay", "0.27.0"),
        ("2026.4.1", "release", "2026.4.1"),
        ("2024.5.0.dev20241017", "index", "2024.5.0.dev20241017"),
        ("2.14.0.dev20261101+gitabc1234", "index", "2.14.0.dev20261101"),
    ],
)
def test_releases_are_searched_up_to_one_that_an_index_may_have(
    world: World, version: str, provisioner: str, newest: str
) -> None:
    with world.database.transaction() as session:
        row = session.get_one(Toolchain, session.get_one(Campaign, 1).head_toolchain)
        row.provisioner, row.versions = provisioner, {"openvino": version}
    job = world.enqueue()
    assert job is not None
    job_context = JobContext(
        JobSpec.of(job), world.database, world.settings, world.services, "me", threading.Event()
    )
    with world.database.reading() as session:
        known = reproduction.load_bug_case(session, job_context)
    assert release_range(job_context, known).newest == newest


def test_where_nothing_is_known_nothing_is_said(tmp_path: Path) -> None:
    world = World(tmp_path / "world", [fake_toolchain.GOOD])
    world.configure(bisect="auto")
    world.enqueue()
    job = world.work()
    assert "does not fail: no change in" in job.reason
    assert (world.notes, first_bad_release.render_section(world.bug)) == ([], "")
    world.database.close()


def test_a_bug_that_is_over_is_not_asked_about(world: World) -> None:
    assert get_job_kind(first_bad_release.FIRST_BAD_RELEASE).lane is Lane.LONG
    world.enqueue()
    world.change(state=BugState.CLOSED.value, resolution="invalid")
    assert world.work().reason == "people have resolved it"
    assert "bisection" not in world.bug.facts


def test_it_gives_way_to_other_work_and_keeps_what_it_knows(world: World) -> None:
    world.enqueue()
    with world.database.transaction() as session:
        jobs.enqueue(session, "retest", TARGET, "other", START, bug_id=1)
    job = world.work()
    assert (job.state, job.reason, job.attempts) == (JobState.PENDING.value, "yields to other work", 0)
    assert job.lease_until is not None
    assert job.lease_until > world.services.clock.now()
    assert world.bug.facts.get("bisection") is None


def test_one_that_waited_long_gives_way_no_more(world: World) -> None:
    job = world.enqueue()
    assert job is not None
    with world.database.transaction() as session:
        jobs.enqueue(session, "retest", TARGET, "other", START, bug_id=1)
        session.get_one(Job, job.id).created_at = world.services.clock.now() - MAX_WAIT
    assert world.work().state == JobState.DONE.value


# -- a bug that is back ----------------------------------------------------------------------------------


def come_back(world: World, event_: Event = Event.FAILED) -> None:
    """The bug of an issue that tells since when it fails is mended, on an older release, and is back."""
    world.enqueue()
    world.change(issue=7, state=BugState.REPORTED.value)
    world.work()
    with world.database.transaction() as session:
        other = session.get_one(Toolchain, fakes.digest_of(fake_toolchain.OTHER))
        other.versions = {"openvino": fake_toolchain.OTHER}
        bug, at = session.get_one(Bug, 1), world.services.clock.now()
        bugs.apply_event(session, bug, Event.CLOSED, "its fix was verified", at)
        before = BugState(bug.state)
        campaign = session.get_one(Campaign, 1)
        campaign.created_at = at
        if event_ is Event.REOPENED:
            bugs.apply_event(session, bug, Event.REOPENED, "ada opened #7 again", at)
            before = BugState(bug.state)
        else:
            bugs.record_sighting(session, TARGET, "s", "Add", at, by=Sighting(1))
        for _ in range(2):  # the next campaign sees it as well
            transitions.handle_sighting(session, bug, before, campaign, at)


@pytest.mark.parametrize("event_", [Event.FAILED, Event.REOPENED])
def test_a_bug_that_is_back_is_asked_about_once_more(world: World, event_: Event) -> None:
    come_back(world, event_)
    assert "bisection" not in world.bug.facts, "what began its first life says nothing of this one"
    wanted = Range.parse(f"openvino:{fake_toolchain.OTHER}..{fake_toolchain.BAD}")
    there = (fake_toolchain.OTHER, fake_toolchain.BAD)
    assert releases(wanted, Index(there), world.settings.data_dir / "bisections" / "releases") == there
    job = world.work()
    answer = world.bug.facts["bisection"]["since"]
    assert (job.state, answer["range"]) == (JobState.DONE.value, str(wanted))
    assert answer["cost"]["replayed"] > 0
    [note] = world.notes
    assert (note.number, note.revision) == (7, 2)
    assert str(note.payload["body"]).startswith(
        "This was fixed and fails again. Began to fail in openvino 2026.4.1;"
    )
    with world.database.reading() as session:
        assert len(session.query(Job).filter(Job.kind == first_bad_release.FIRST_BAD_RELEASE).all()) == 2


def test_what_was_said_of_its_last_life_does_not_stay_where_nothing_is_known(world: World) -> None:
    come_back(world)
    wanted = Range.parse(f"openvino:{fake_toolchain.OTHER}..{fake_toolchain.BAD}")
    cache, there = world.settings.data_dir / "bisections" / "releases", (fake_toolchain.GOOD,)
    assert releases(wanted, Index(there), cache) == there
    world.work()
    [note] = world.notes
    assert note.revision == 2
    assert "fails again. Openvino 2024.0.0 does not fail: no change in" in note.payload["body"]


def test_a_bug_that_is_back_is_asked_about_only_where_that_is_wanted(world: World) -> None:
    world.enqueue()
    world.configure(bisect="manual")
    come_back(world)
    with world.database.reading() as session:
        assert len(session.query(Job).filter(Job.kind == first_bad_release.FIRST_BAD_RELEASE).all()) == 1
    assert "bisection" not in world.bug.facts


class _KilledError(BaseException):
    """The process dies."""


@pytest.mark.parametrize("moment", ["before commit", "after commit"])
@pytest.mark.parametrize("number", [1, 2])
def test_an_end_at_any_commit_changes_nothing(world: World, moment: str, number: int) -> None:
    """The first commit hands it out, the other keeps the answer and posts the comment."""
    world.enqueue()
    left = iter(range(number - 1))

    def die(*_given: object) -> None:
        if next(left, None) is None:
            raise _KilledError

    action, name = (
        (world.database.engine, "commit") if moment == "before commit" else (Session, "after_commit")
    )
    event.listen(action, name, die)
    try:
        with pytest.raises(_KilledError):
            world.work()
    finally:
        event.remove(action, name, die)
    world.complete()
    [note] = world.notes
    assert (note.revision, note.state) == (1, EffectState.PENDING.value)
    assert world.bug.facts["bisection"]["since"]["release"] == fake_toolchain.BAD
    with world.database.reading() as session:
        [job] = session.query(Job).filter(Job.kind == first_bad_release.FIRST_BAD_RELEASE)
        assert job.reason == "began to fail in openvino 2026.4.1; openvino 2025.4.0 does not fail"
        output = [
            act
            for act in audit.of(session, TARGET, "bug:1")
            if act.action == first_bad_release.FIRST_BAD_RELEASE
        ]
        assert len(output) == 1
