"""The kinds of jobs on a real compiler: releases of OpenVINO that are installed from the package index."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.bugs import issue_filing
from bot.store import bugs, outbox
from bot.store.models import BugState, Effect, EffectState, JobState, SuppressionCause
from bot.store.outbox import EffectDraft
from tests.bot.bugs.jobs.real_bug import START, Found, Real, real

pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with real(tmp_path_factory.mktemp("real")) as made:
        yield made


@pytest.mark.slow
def test_a_bug_is_asked_about_on_builds_of_commits(world: Real) -> None:
    still = world.do("retest", purpose="fix", commit=world.shas[1])
    assert still.reason.startswith("fails in 3 of 3 fresh runs on openvino 2026.4.1, commit ")
    assert world.bug.state == BugState.REPORTED.value
    gone = world.do("retest", purpose="asked", commit=world.shas[3])
    assert gone.reason.startswith("passes in all of 3 fresh runs on openvino 2024.0.0, commit ")
    assert world.bug.state == BugState.REPORTED.value, "what was only asked changes nothing"


def test_a_smaller_case_that_fails_where_the_bug_is_not_is_another(world: Real) -> None:
    job = world.do("reduce", budget=60.0)
    assert job.state == JobState.DONE.value, job.reason
    assert "fails on openvino 2024.0.0, where the known one passes: dropped" in job.reason
    assert (world.bug.case_id, job.result["case"] != world.case) == ("", True)


def held(world: Real, name: str) -> str:
    """An issue about the bug that waits for its checks; its key."""
    with world.database.transaction() as session:
        bug = bugs.of_id(session, 1)
        assert bug is not None
        bug.state, bug.issue = BugState.NEW.value, None
        payload = {"title": bug.title, "body": f"words\n<!-- assay:{name} -->\n", "labels": []}
        draft = EffectDraft(
            "issue",
            name,
            bug.target,
            payload,
            bug.signature,
            hold=issue_filing.CHECKING,
            cause=SuppressionCause.CHECKING,
        )
        outbox.post(session, [draft], campaign_id=bug.campaign_id, issues_per_day=2, at=START)
    return name


def effect(world: Real, name: str) -> Effect:
    with world.database.reading() as session:
        return session.get_one(Effect, name)


def test_what_the_newest_commit_passes_is_not_filed(world: Real) -> None:
    name = held(world, "gone")
    world.github_reader.head = world.shas[3]
    job = world.do("issue_filing", effect=name)
    assert "passes in all of 3 fresh runs on openvino 2024.0.0" in job.reason
    assert (effect(world, name).state, effect(world, name).reason) == (EffectState.HELD.value, job.reason)
    assert (world.bug.state, world.bug.reason) == (BugState.FIXED.value, job.reason)


def test_what_is_still_there_goes_out_with_its_relatives(world: Real) -> None:
    name = held(world, "there")
    world.github_reader.head = world.shas[2]  # the same build: there is nothing to be run
    world.github_reader.issues = (
        Found(3, "AffineGrid @everyone crashes"),
        Found(4, "ours", "<!-- assay:x -->"),
    )
    job = world.do("issue_filing", effect=name)
    assert job.reason == "checked: the bug is still there, and no open issue has the same title"
    row = effect(world, name)
    assert row.state == EffectState.PENDING.value
    assert "#3: AffineGrid" in row.payload["body"]
    assert "@everyone" not in row.payload["body"]
    assert "#4" not in row.payload["body"]
    assert row.payload["body"].endswith("<!-- assay:there -->\n")
