"""Provisioning of commits whose toolchains are their own sources over a wheel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from bot.campaigns.intents import resume
from bot.commit_files import ReadFile
from bot.errors import BrokenSourcesError, BuildFailedError, BuildPendingError, ProvisionError
from bot.store import findings
from bot.store.models import CampaignState
from bot.toolchains.registry import Folder
from bot.webhooks.intents import CiIntent
from tests.bot.campaigns import fakes
from tests.bot.campaigns.conftest import World
from tests.bot.campaigns.fakes import PlainReady, PlainSpec

NATIVE = "not tested, because only a build of the compiler has it: op.cc"


@dataclass(frozen=True)
class Overlay(PlainSpec):
    overlay: tuple[Folder, ...] = (Folder("python/standin", "standin", "content"),)
    commit: object = "head"
    like_label: str = ""

    def like(self, other: Any) -> PlainSpec:
        return replace(self, like_label=other.label)

    def is_out_of_reach(self, path: str) -> bool:
        return path.endswith(".cc")


@dataclass(frozen=True)
class Complete(Overlay):
    """An overlay that carries all of the compiler."""

    def is_out_of_reach(self, path: str) -> bool:
        return False


def resolve(config: Any, read: ReadFile) -> PlainSpec:
    return Overlay(fakes.resolve(config, read).label)


class Provision:
    """Makes toolchains; those of `broken` labels fail by `error`, all have one digest if they are `equal`."""

    def __init__(
        self, *broken: str, equal: bool = False, error: type[ProvisionError] = BrokenSourcesError
    ) -> None:
        self.broken, self.equal, self.made = broken, equal, list[PlainSpec]()
        self.error = error

    def __call__(self, spec: Any, data_dir: Any, progress: Any) -> PlainReady:
        self.made.append(spec)
        if spec.label in self.broken:
            raise self.error(f"{spec.label}: ImportError: no name 'ops'")
        ready = fakes.provision(spec, data_dir, progress)
        return replace(ready, digest=fakes.digest_of("1")) if self.equal else ready


class Building:
    """CI that builds the wheel of one label until it is `done`."""

    def __init__(self, label: str) -> None:
        self.label, self.done = label, False

    def __call__(self, spec: Any, data_dir: Any, progress: Any) -> PlainReady:
        if spec.label == self.label and not self.done:
            raise BuildPendingError("waiting for CI", 60.0)
        return fakes.provision(spec, data_dir, progress)


@pytest.mark.parametrize(("side", "label"), [("head", "standin==2"), ("base", "standin==1")])
def test_the_end_of_ci_resumes_a_campaign_that_waits_for_its_wheel(
    world: World, side: str, label: str
) -> None:
    ci, woken = Building(label), list[bool]()
    world.use(provision=ci)
    campaign_id = world.push()
    world.run()
    assert world.campaign(campaign_id).state == CampaignState.PROVISIONING
    world.run()
    assert world.campaign(campaign_id).state == CampaignState.PROVISIONING, "it is not due"
    ci.done = True

    def end(commit: str) -> int:
        with world.database.transaction() as session:
            intent = CiIntent(target="octo/compiler", head=commit)
            return resume(session, intent, wake=lambda: woken.append(True))

    assert end("3" * 40) == 0
    assert woken == []
    assert end({"head": "2" * 40, "base": "1" * 40}[side]) == 1
    assert woken == [True]
    world.run()
    assert world.campaign(campaign_id).state == CampaignState.DONE
    assert end("2" * 40) == 0, "nothing waits"


def test_head_is_made_as_base_is(world: World) -> None:
    provision = Provision()
    world.use(resolve=resolve, provision=provision)
    campaign_id = world.push()
    world.run()
    assert [(one.label, one.like_label) for one in provision.made] == [  # type: ignore[attr-defined]
        ("standin==1", ""),
        ("standin==2", "standin==1"),
    ]
    assert world.campaign(campaign_id).reason == NATIVE
    assert world.reports.published[0].note == NATIVE


def test_a_change_that_no_case_could_reach_ends_at_once(world: World) -> None:
    equal = partial(Complete, commit="head")
    world.use(resolve=lambda *given: equal(resolve(*given).label), provision=Provision(equal=True))
    campaign_id = world.push()
    world.run()
    (reported,) = world.reports.troubles
    assert (world.campaign(campaign_id).state, reported.kind) == (CampaignState.DONE, "unchanged")
    assert "nothing here that a case could reach" in reported.reason
    assert world.reports.published == []


def test_a_change_that_only_a_build_has_is_not_said_to_be_harmless(world: World) -> None:
    world.use(resolve=resolve, provision=Provision(equal=True))
    campaign_id = world.push()
    world.run()
    (reported,) = world.reports.troubles
    assert (world.campaign(campaign_id).state, reported.kind) == (CampaignState.DONE, "unreached")
    assert reported.reason.startswith("nothing was tested: the Python code of head's compiler and of base's")
    assert NATIVE in reported.reason
    assert world.reports.published == []


def test_a_wheel_that_is_older_than_both_commits_tests_neither(world: World) -> None:
    world.use(resolve=lambda _config, _read: replace(Overlay("standin==1"), overlay=(), predates="too old"))
    campaign_id = world.push()
    world.run()
    (reported,) = world.reports.troubles
    assert (world.campaign(campaign_id).state, reported.kind) == (CampaignState.DONE, "outdated")
    assert reported.reason == "nothing was tested: too old"


def test_equal_compilers_are_known_before_cases_are_collected(world: World) -> None:
    provision, asked = Provision(), list[object]()
    world.use(
        resolve=lambda _config, _read: Overlay("standin==1"),
        provision=provision,
        catalogs=lambda *args: asked.append(args),
    )
    campaign_id = world.push()
    world.run()
    (reported,) = world.reports.troubles
    assert (world.campaign(campaign_id).state, reported.kind) == (CampaignState.DONE, "unreached")
    assert NATIVE in reported.reason
    assert world.campaign(campaign_id).config, "its mode says where the check run goes"
    assert provision.made == asked == []


def test_a_second_pull_request_with_the_same_base_runs_nothing_at_base(world: World) -> None:
    world.use(resolve=resolve, provision=Provision())
    first = world.push(pull=1, trigger="pull_request")
    world.run()
    base = fakes.digest_of("1")
    assert any(shard.toolchain == base for shard in world.runner.shards)
    world.runner.shards.clear()
    second = world.push(pull=2, trigger="pull_request", head="3" * 40, delivery="d-2")
    world.run()
    assert {shard.toolchain for shard in world.runner.shards} == {fakes.digest_of("3")}
    with world.database.reading() as session:
        found = [
            sorted((one.case_id, one.classification) for one in findings.of_campaign(session, campaign))
            for campaign in (first, second)
        ]
    assert found[0] == found[1] != []


def test_a_change_that_breaks_the_compiler_is_a_finding(world: World) -> None:
    world.use(
        resolve=lambda config, read: Complete(fakes.resolve(config, read).label),
        provision=Provision("standin==2"),
    )
    campaign_id = world.push()
    world.run()
    (reported,) = world.reports.troubles
    assert (world.campaign(campaign_id).state, reported.kind) == (CampaignState.DONE, "broken")
    assert "breaks importing or compiling everything: standin==2: ImportError" in reported.reason


def test_a_change_of_native_code_too_accuses_nobody(world: World) -> None:
    """As TVM's 1bb5cf6102 over the wheel 0.25.0.post1: its sources name types that its native code adds."""
    world.use(resolve=resolve, provision=Provision("standin==2"))
    campaign_id = world.push()
    world.run()
    (reported,) = world.reports.troubles
    assert (world.campaign(campaign_id).state, reported.kind) == (CampaignState.DONE, "native")
    assert reported.reason == f"nothing was tested: standin==2: ImportError: no name 'ops'\n{NATIVE}"


def test_a_base_that_does_not_work_accuses_nobody(world: World) -> None:
    world.use(resolve=resolve, provision=Provision("standin==1", "standin==2"))
    campaign_id = world.push()
    world.run()
    (reported,) = world.reports.troubles
    assert (world.campaign(campaign_id).state, reported.kind) == (CampaignState.FAILED, "infrastructure")
    assert reported.reason.startswith("cannot compare, because base")


@pytest.mark.parametrize(
    ("failing", "reported"),
    [("standin==2", "nothing was tested: standin==2"), ("standin==1", "nothing was tested: base")],
)
def test_a_failed_build_is_no_finding(world: World, failing: str, reported: str) -> None:
    provision = Provision(failing, error=BuildFailedError)
    world.use(resolve=resolve, provision=provision)
    campaign_id = world.push()
    world.run()
    (problem,) = world.reports.troubles
    assert (world.campaign(campaign_id).state, problem.kind) == (CampaignState.DONE, "unbuilt")
    assert problem.reason.startswith(reported)
    assert ("head was not tried" in problem.reason) == (failing == "standin==1")
