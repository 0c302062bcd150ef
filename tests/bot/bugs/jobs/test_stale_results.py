"""What long jobs found out is not written over what became known while they were at work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.bisection.releases import Range, releases
from bot.bugs import culprit, first_bad_release
from bot.bugs.release_bisection import ReleaseBisection
from bot.jobs.job_queue import JobQueue
from bot.jobs.registry import Lane
from bot.leases import Interrupted
from bot.runners.protocol import OnEvent
from bot.settings import Settings
from bot.store import Database, bugs, jobs
from bot.store.bug_states import Event
from bot.store.bugs import Sighting
from bot.store.models import Bug, BugState, Campaign, Job, JobState, Toolchain
from bot.worker import Worker
from tests.bot.campaigns import fakes
from tests.bot.jobs import killing
from tests.bot.jobs.killing import START, TARGET
from tests.scenarios import fake_toolchain

SMALL = fakes.SMALL_IDS["Add_small"]


class Index:
    """Knows the releases of the stand-in compiler, oldest first."""

    def __init__(self) -> None:
        self._left = sorted(fake_toolchain.BROKEN)

    def lowest_release(self, python: Path, requirement: str, /) -> str | None:
        return self._left.pop(0) if self._left else None


class World:
    """A reported bug with an unreduced case; `meanwhile` happens while the program of a job runs."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.settings = Settings(data_dir=folder, workers=1)
        killing.prepare(self.settings.database_url)
        self.database = Database(self.settings.database_url)
        self.meanwhile: Callable[[], None] = lambda: None
        made = killing.services(self.settings)
        self.services = replace(made, run_tool=self._run_tool)
        self._tool = made.run_tool
        wanted = Range.parse(f"openvino:2023..{fake_toolchain.BAD}")
        (folder / "bisections").mkdir()
        assert releases(wanted, Index(), folder / "bisections" / "releases")
        with self.database.transaction() as session:
            session.delete(session.get_one(Job, 1))
            session.get_one(Bug, 1).state = BugState.REPORTED.value
            row = session.get_one(Toolchain, session.get_one(Campaign, 1).head_toolchain)
            row.versions = {"openvino": fake_toolchain.BAD}

    def _run_tool(self, module: str, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
        self._tool(module, args, on_event, stop)
        self.meanwhile()

    def enqueue(self, kind: str, **arguments: Any) -> None:
        with self.database.transaction() as session:
            jobs.enqueue(session, kind, TARGET, kind, START, again=True, bug_id=1, arguments=arguments)

    def work(self) -> Job:
        worker = Worker(JobQueue(self.database, self.settings, self.services, Lane.LONG, backoff=()))
        assert worker.run_once()
        with self.database.reading() as session:
            return session.query(Job).order_by(Job.id).one()

    def give(self, case: str) -> None:
        """The bug's case is another one from now on."""
        with self.database.transaction() as session:
            session.get_one(Bug, 1).case_id = case

    def set_fact(self, what: str, facts: dict[str, Any]) -> None:
        with self.database.transaction() as session:
            bugs.set_fact(session, session.get_one(Bug, 1), what, facts)

    def come_back(self) -> None:
        """The bug is mended, and begins another life."""
        with self.database.transaction() as session:
            bug, at = session.get_one(Bug, 1), self.services.clock.now()
            bugs.apply_event(session, bug, Event.PASSED, "it passes", at)
            session.get_one(Campaign, 1).created_at = at
            bugs.record_sighting(session, TARGET, "s", "Add", at, by=Sighting(1))
            assert bugs.occurrence(bug) == 2

    @property
    def bug(self) -> Bug:
        with self.database.reading() as session:
            return session.get_one(Bug, 1)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "world")
    yield made
    made.database.close()


def test_a_reduction_takes_the_place_of_the_case_that_it_was_made_of(world: World) -> None:
    world.enqueue("reduce")
    assert world.work().reason == "smaller after 9 runs: size 7 is now 1"
    assert world.bug.case_id == SMALL


def test_a_reduction_does_not_take_the_place_of_another_case(world: World) -> None:
    """A campaign has reduced the bug's case meanwhile, to one that may be smaller."""
    world.meanwhile = lambda: world.give(killing.PASSING)
    world.enqueue("reduce")
    job = world.work()
    assert world.bug.case_id == killing.PASSING
    assert (job.state, job.reason) == (
        JobState.DONE.value,
        f"the bug has another case by now, {killing.PASSING[:12]}: the smaller one of the previous case is "
        "dropped; `/assay reduce` reduces the new case",
    )


def test_where_an_older_case_goes_wrong_is_not_told_of_a_newer_one(world: World) -> None:
    def answered() -> None:
        world.give(SMALL)
        world.set_fact("localization", {"facts": [], "case": SMALL})

    world.meanwhile = answered
    world.enqueue("localize")
    assert world.work().state == JobState.DONE.value
    assert world.bug.facts["localization"] == {"facts": [], "case": SMALL}
    world.meanwhile = lambda: None
    world.enqueue("localize")
    world.work()
    assert (world.bug.facts["localization"]["case"], len(world.bug.facts["localization"]["facts"])) == (
        SMALL,
        1,
    )


def test_a_bisection_of_releases_leaves_what_is_known_of_the_commits(world: World) -> None:
    commits = {"commit": {"commit": "a" * 40}, "before": {"commit": "c" * 40}}
    world.set_fact("bisection", {"commits": commits, "until": {"kind": "found"}})
    world.enqueue("bisect", releases=f"2023..{fake_toolchain.BAD}")
    assert world.work().state == JobState.DONE.value
    known = world.bug.facts["bisection"]
    assert (known["commits"], known["since"]["release"]) == (commits, fake_toolchain.BAD)
    assert "until" not in known, "it fails again in the newest release"


def test_a_bisection_that_is_interrupted_keeps_the_commit_it_has_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[int] = []

    def brought(*about: Any) -> dict[str, Any] | None:
        requested.append(1)
        return found(*about)

    def die(*_: object) -> None:
        raise Interrupted

    found = culprit.find_culprit
    monkeypatch.setattr(culprit, "find_culprit", brought)
    with monkeypatch.context() as dying:
        dying.setattr(first_bad_release, "update_comment", die)
        world.enqueue("bisect")
        assert world.work().state == JobState.PENDING.value
    known = world.bug.facts["bisection"]
    assert (list(known), known["commits"]["commit"]["commit"]) == (["commits"], "a" * 40)
    job = world.work()
    assert (job.state, len(requested)) == (JobState.DONE.value, 1)
    assert "brought by commit aaaaaaaaaaaa" in job.reason
    assert set(world.bug.facts["bisection"]) == {"commits", "since"}


def test_a_bisection_of_the_last_life_is_not_written_into_this_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bug is mended and back while the releases are tried."""

    def brought(job_context: Any, known: Any) -> None:
        if bugs.occurrence(world.bug) == 1:
            world.come_back()

    monkeypatch.setattr(culprit, "find_culprit", brought)
    world.enqueue("bisect")
    assert world.work().state == JobState.PENDING.value
    assert "bisection" not in world.bug.facts
    assert world.work().state == JobState.DONE.value
    assert world.bug.facts["bisection"]["since"]["release"] == fake_toolchain.BAD


def test_the_release_in_which_the_last_life_began_is_not_told_of_this_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = ReleaseBisection.find_first_bad

    def overtaken(asking: ReleaseBisection) -> dict[str, Any]:
        answer = began(asking)
        world.come_back()
        return answer

    monkeypatch.setattr(ReleaseBisection, "find_first_bad", overtaken)
    world.enqueue("first_bad_release", effect="")
    assert world.work().reason == "the bug recurred meanwhile; the result is for its previous occurrence"
    assert "bisection" not in world.bug.facts
