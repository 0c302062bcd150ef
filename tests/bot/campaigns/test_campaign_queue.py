from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import select

from bot.campaigns.campaign_queue import BACKOFF_S
from bot.campaigns.classify.classification import NOT_REPEATED
from bot.errors import InfrastructureError, ProvisionError, RefusalError, RunnerError
from bot.store import findings, outcomes
from bot.store.models import CampaignState, Classification, Effect, Finding, Side
from bot.store.outcomes import CacheKey
from fuzzing.outcomes import Phase, Verdict
from tests.bot.campaigns import fakes
from tests.bot.campaigns.conftest import World
from tests.bot.campaigns.fakes import EXPECTED, IDS, NAMES, TESTS, digest_of

HEAD = CacheKey(digest_of("2"), "standin", "CPU")


def found(world: World, campaign_id: int) -> dict[str, Finding]:
    with world.database.reading() as session:
        return {NAMES[row.case_id]: row for row in findings.of_campaign(session, campaign_id)}


def effects(world: World) -> list[Effect]:
    with world.database.reading() as session:
        return list(session.scalars(select(Effect).order_by(Effect.key)))


def test_a_campaign_finds_what_differs_between_two_releases(world: World) -> None:
    campaign_id = world.push()
    world.run()
    assert world.campaign(campaign_id).state == "done"
    rows = found(world, campaign_id)
    assert {test: (Classification(row.classification), row.verdict) for test, row in rows.items()} == EXPECTED
    counts = {t: (r.head_failed, r.head_runs, r.base_failed, r.base_runs) for t, r in rows.items()}
    assert counts["Add_regressed"] == (3, 3, 0, 3)
    assert counts["Hann_support_lost"] == (1, 1, 0, 1)
    assert counts["Neg_changed"] == (3, 3, 3, 3)
    assert rows["Neg_changed"].reason == "Neg_changed: wrong_result at base; Neg_changed: crash at head"
    assert counts["Div_already_broken"] == (1, 1, 1, 1)
    assert counts["Exp_flaky_at_head"] == (2, 3, 0, 1)
    assert counts["Gelu_flaky_at_base"] == (3, 3, 2, 3)
    assert counts["Erf_fixed"] == (0, 1, 1, 1)


def test_its_summary_tells_everything(world: World) -> None:
    world.push()
    world.run()
    [summary] = world.reports.published
    assert world.reports.written == [summary]
    assert summary.planned == len(TESTS)  # the doubled case is planned once
    assert summary.not_run == 0
    assert summary.counts[Side.HEAD] == {
        Verdict.CRASH: 7,
        Verdict.HANG: 1,
        Verdict.PASS: 3,
        Verdict.UNSUPPORTED: 2,
        Verdict.WRONG_RESULT: 1,
    }
    assert summary.operators["Add"] == {Side.HEAD: {Verdict.CRASH: 1}, Side.BASE: {Verdict.PASS: 1}}
    assert summary.toolchains[Side.BASE].label == "standin==1"
    assert summary.libraries == ("standin 1.0",)
    assert summary.skipped == {"no values": 2}
    assert {one.origin.test for one in summary.classification(Classification.SUPPORT_LOST)} == {
        "Hann_support_lost"
    }
    regressed = summary.classification(Classification.REGRESSION)
    assert {one.origin.test for one in regressed} == {
        "Add_regressed",
        "Conv_regressed_wrong",
        "Cos_regressed_hang",
    }
    assert all(one.program.shown == f"program of {one.origin.test}" for one in regressed)
    assert [one.title for one in summary.classification(Classification.FIXED)] == ["crash compile Erf"]


def test_only_the_repeats_at_head_look_for_who_is_to_blame(world: World) -> None:
    world.push()
    world.run()
    looking = [shard for shard in world.runner.shards if shard.ablate]
    assert {(shard.toolchain, shard.fresh) for shard in looking} == {(HEAD.toolchain, True)}
    assert [shard for shard in world.runner.shards if shard.fresh and not shard.ablate], (
        "and not those at base"
    )


def test_what_the_shards_cost_is_summed_by_step(world: World) -> None:
    world.push()
    world.run()
    [summary] = world.reports.published
    running = summary.costs["running"]
    assert (running.runs, running.seconds, running.busy) == (len(TESTS), 2.0, 1.5)
    assert running.overhead == 2.0 * world.settings.workers / 1.5
    assert summary.costs["comparing"].phases == {"compile": 3.75}, "a shard at base, one of repeats at each"
    assert summary.phases[Side.HEAD][Phase.COMPILE] == {
        Verdict.CRASH: 7,
        Verdict.HANG: 1,
        Verdict.UNSUPPORTED: 2,
    }
    world.push(head="2" + "a" * 39, base="1" + "a" * 39)
    world.run()
    assert world.reports.published[-1].costs == {}, "every verdict was known"


def test_options_and_profile_are_part_of_the_verdict_cache(world: World) -> None:
    """The same cases under another configuration are run again; the shard is told."""
    world.push()
    world.run()
    executed = world.runner.executed
    config = fakes.PlainConfig(options={"level": "0"}, profile="isra")
    second = "2" + "d" * 39
    world.repositories.files[second] = {
        fakes.CONFIG: fakes.to_bytes(config),
        fakes.PIN: b"standin==2",
    }
    campaign_id = world.push(head=second, base="")
    world.run()
    assert world.campaign(campaign_id).state == "done"
    assert world.runner.executed > executed
    assert world.runner.shards[-1].options == {"level": "0"}
    assert world.reports.published[-1].configuration == "level=0 profile=isra"


def test_base_runs_what_failed_at_head_first(world: World) -> None:
    world.push()
    world.run()
    ordinary = [s for s in world.runner.shards if not s.fresh and s.toolchain == digest_of("1")]
    failing, rest = ([TESTS[NAMES[case]][1][0] for case in shard.cases] for shard in ordinary)
    assert set(failing) == {"crash", "hang", "wrong_result"}
    assert rest == ["unsupported"] * rest.count("unsupported") + ["pass"] * rest.count("pass")
    assert set(rest) == {"unsupported", "pass"}


def test_a_second_campaign_on_the_same_toolchains_executes_nothing(world: World) -> None:
    world.push()
    world.run()
    executed, migrated = world.runner.executed, world.tools.calls.count("fuzzing.migrate")
    second = world.push(head="2" + "a" * 39, base="1" + "a" * 39)
    world.run()
    assert world.runner.executed == executed
    assert world.tools.calls.count("fuzzing.migrate") == migrated == 1
    rows = found(world, second)
    assert {test: (Classification(row.classification), row.verdict) for test, row in rows.items()} == EXPECTED


def test_without_a_base_confirmed_accusations_stay_unjudged(world: World) -> None:
    campaign_id = world.push(base="")
    world.run()
    rows = found(world, campaign_id)
    assert {row.classification for row in rows.values()} == {"inconclusive", "flaky"}
    assert rows["Add_regressed"].reason == "there is no base to compare with"
    assert all(shard.toolchain == HEAD.toolchain for shard in world.runner.shards)


def test_a_base_without_a_pin_is_told_and_not_compared(world: World) -> None:
    world.repositories.files["1" * 40] = {}
    campaign_id = world.push()
    world.run()
    campaign = world.campaign(campaign_id)
    assert campaign.state == "done"
    assert campaign.reason.startswith("there is no base to compare with: 111111111111 pins no toolchain")
    assert world.reports.published[0].note == campaign.reason
    assert found(world, campaign_id)["Add_regressed"].classification == "inconclusive"


def test_a_base_that_cannot_be_made_fails_the_campaign_and_says_nothing_of_the_compiler(world: World) -> None:
    def provision(spec: Any, data_dir: Any, progress: Any) -> fakes.PlainReady:
        if spec.label == "standin==1":
            raise ProvisionError("standin==1 was yanked")
        return fakes.provision(spec, data_dir, progress)

    world.use(provision=provision)
    campaign_id = world.push()
    world.run()  # at once: trying again would not make the release installable
    campaign = world.campaign(campaign_id)
    assert (campaign.state, campaign.base_toolchain) == ("failed", None)
    assert "standin==1 was yanked" in campaign.reason
    assert world.reports.published == []


@pytest.mark.parametrize("stage", ["provision", "runner", "run_tool"])
def test_infrastructure_trouble_is_tried_three_times_then_told_once(world: World, stage: str) -> None:
    calls: list[int] = []

    def fail(*_: Any) -> Any:
        calls.append(1)
        raise InfrastructureError("the disk is full; make room below /data")

    class FailingRunner:
        run = staticmethod(fail)

    world.use(**{stage: FailingRunner() if stage == "runner" else fail})
    campaign_id = world.push()
    for tries, wait in enumerate(BACKOFF_S, start=1):
        world.run()
        assert len(calls) == tries
        assert world.campaign(campaign_id).attempts == tries
        world.clock.advance(wait - 1)
        assert not world.engine.run_once()  # backing off
        world.clock.advance(1)
    world.run()
    campaign = world.campaign(campaign_id)
    assert len(calls) == 3
    assert campaign.state == "failed"
    assert "failed 3 times: the disk is full; make room below /data" in campaign.reason
    [effect] = effects(world)
    assert (effect.kind, effect.payload["conclusion"], effect.payload["kind"]) == (
        "check_run",
        "neutral",
        "infrastructure",
    )
    assert effect.payload["reason"] == campaign.reason
    assert found(world, campaign_id) == {}


def test_trouble_that_passes_leaves_no_trace(world: World) -> None:
    failing = iter([RunnerError("the runner's machine was rebooted")])

    def before(_case: str, _stop: threading.Event) -> None:
        for error in failing:
            raise error

    world.runner.before = before
    campaign_id = world.push()
    world.run()
    world.clock.advance(BACKOFF_S[0])
    world.run()
    campaign = world.campaign(campaign_id)
    assert (campaign.state, campaign.reason, campaign.attempts) == ("done", "", 0)


def test_a_wrong_configuration_ends_at_once_and_is_quoted(world: World) -> None:
    world.repositories.files["2" * 40] = {fakes.CONFIG: b'{"budgte": 1}'}
    campaign_id = world.push()
    world.run()
    campaign = world.campaign(campaign_id)
    assert campaign.state == "failed"
    assert campaign.reason.startswith("line 3: budgte: .github/assay.yml: ")
    [effect] = effects(world)
    assert effect.payload == {"conclusion": "neutral", "kind": "configuration", "reason": campaign.reason}


def test_a_refusal_is_not_tried_again(world: World) -> None:
    def read(*_: str) -> bytes:
        raise RefusalError("octo/compiler is gone, or Assay may not read it; install the App there")

    world.repositories.read = read  # type: ignore[assignment, method-assign]
    campaign_id = world.push()
    world.run()
    assert world.campaign(campaign_id).state == "failed"
    assert [problem.kind for problem in world.reports.troubles] == ["refusal"]


def test_our_own_bug_ends_its_campaign_and_no_other(world: World) -> None:
    real = fakes.provision

    def provision(spec: Any, data_dir: Any, progress: Any) -> fakes.PlainReady:
        if spec.label == "standin==3":
            raise ZeroDivisionError
        return real(spec, data_dir, progress)

    world.use(provision=provision)
    broken, sound = world.push(head="3" * 40), world.push(target="octo/other")
    world.run()
    assert world.campaign(broken).state == "failed"
    assert world.campaign(broken).reason.startswith("internal error in provisioning: ZeroDivisionError")
    assert world.campaign(sound).state == "done"
    assert world.reports.troubles == []
    assert [type(error) for error in world.failures] == [ZeroDivisionError]


def test_a_bug_in_telling_of_trouble_does_not_end_the_engine(world: World) -> None:
    def publish_problem(*_: Any) -> None:
        raise LookupError

    world.repositories.files["2" * 40] = {fakes.CONFIG: b'{"budgte": 1}'}
    world.reports.publish_problem = publish_problem  # type: ignore[assignment, method-assign]
    campaign_id = world.push()
    world.run()
    assert world.campaign(campaign_id).reason.startswith("internal error in planning: LookupError")


def test_nothing_to_test_is_done_and_says_why(world: World) -> None:
    world.repositories.files["2" * 40] = {}
    campaign_id = world.push()
    world.run()
    campaign = world.campaign(campaign_id)
    assert campaign.state == "done"
    assert campaign.reason.startswith("nothing to test: there is no .github/assay.yml")
    assert effects(world) == []


@pytest.mark.parametrize(
    ("ref", "branches", "watched"),
    [
        ("refs/heads/main", None, True),
        ("refs/heads/topic", None, False),
        ("refs/heads/release/1.0", ["release/*"], True),
        ("refs/heads/main", ["release/*"], False),
    ],
)
def test_only_watched_branches_are_tested(
    world: World, ref: str, branches: list[str] | None, watched: bool
) -> None:
    config = fakes.PlainConfig(branches=None if branches is None else tuple(branches))
    text = fakes.to_bytes(config)
    world.repositories.files["2" * 40] = {fakes.CONFIG: text, fakes.PIN: b"standin==2"}
    campaign_id = world.push(ref=ref, base="")
    world.run()
    campaign = world.campaign(campaign_id)
    assert campaign.state == "done"
    assert bool(world.runner.shards) == watched
    assert ("is not watched" in campaign.reason) != watched


def test_a_newer_push_stops_the_running_shard_and_keeps_its_outcomes(world: World) -> None:
    stopped: list[bool] = []
    older = world.push()
    world.use(clock=fakes.services().clock)  # real time: the step has to look by itself

    def before(case_id: str, stop: threading.Event) -> None:
        if case_id == IDS["Cos_regressed_hang"] and not stopped:
            world.push(head="4" * 40, delivery="d-2")
            stopped.append(stop.wait(timeout=600))

    world.runner.before = before
    assert world.engine.run_once()  # planning
    assert world.engine.run_once()  # provisioning
    assert world.engine.run_once()  # running, until superseded
    assert stopped == [True]
    campaign = world.campaign(older)
    assert campaign.state == "superseded"
    assert campaign.reason == "superseded: 444444444444 was pushed to refs/heads/main (campaign 2)"
    with world.database.reading() as session:
        assert outcomes.ran(session, older, HEAD) == 3


def test_a_push_to_another_branch_supersedes_nothing(world: World) -> None:
    older = world.push()
    world.push(head="4" * 40, ref="refs/heads/other")
    assert world.campaign(older).state == "planning"


def test_shutting_down_gives_the_campaign_back_with_what_it_has(world: World) -> None:
    shutdown = threading.Event()

    def before(case_id: str, stop: threading.Event) -> None:
        if case_id == IDS["Cos_regressed_hang"]:
            shutdown.set()
            assert stop.wait(timeout=600)

    world.runner.before = before
    campaign_id = world.push()
    for _ in range(3):
        assert world.engine.run_once(shutdown)
    campaign = world.campaign(campaign_id)
    assert (campaign.state, campaign.owner, campaign.lease_until) == ("running", "", None)
    with world.database.reading() as session:
        kept = outcomes.ran(session, campaign_id, HEAD)
    assert kept == 3
    world.runner.before = None
    world.runner.shards.clear()
    world.run()
    assert len(world.runner.shards[0].cases) == len(TESTS) - kept
    assert world.campaign(campaign_id).state == "done"


def test_the_budget_is_kept_over_restarts_and_the_rest_counts_as_not_run(world: World) -> None:
    config = fakes.PlainConfig(budget=5.0)
    text = fakes.to_bytes(config)
    world.repositories.files["2" * 40] = {fakes.CONFIG: text, fakes.PIN: b"standin==2"}
    world.runner.seconds = 1.0
    shutdown = threading.Event()

    def before(case_id: str, stop: threading.Event) -> None:
        if case_id == IDS["Conv_regressed_wrong"]:
            shutdown.set()
            assert stop.wait(timeout=600)

    world.runner.before = before
    campaign_id = world.push(base="")
    for _ in range(3):
        world.engine.run_once(shutdown)
    assert world.campaign(campaign_id).state == "running"
    assert world.campaign(campaign_id).clock["running"] == 2.0
    world.runner.before = None
    world.run()
    campaign = world.campaign(campaign_id)
    assert campaign.clock["running"] >= 5.0
    [summary] = world.reports.published
    assert summary.ran(Side.HEAD) == 5
    assert summary.not_run == len(TESTS) - 5
    assert sum(summary.counts[Side.HEAD].values()) == 5


def found_within(world: World, budget: float) -> dict[str, Finding]:
    """The findings, by test, of a campaign with this budget, of which each run takes a second."""
    text = fakes.to_bytes(fakes.PlainConfig(budget=budget))
    world.repositories.files["2" * 40] = {fakes.CONFIG: text, fakes.PIN: b"standin==2"}
    world.runner.seconds = 1.0
    campaign_id = world.push()
    world.run()
    return found(world, campaign_id)


def test_what_was_not_repeated_in_time_accuses_nobody(world: World) -> None:
    rows = found_within(world, 12.0)
    regressions = {test for test, row in rows.items() if row.classification == "regression"}
    assert regressions <= {
        test for test, (classification, _) in EXPECTED.items() if classification is Classification.REGRESSION
    }
    inconclusive = [row for row in rows.values() if row.classification == "inconclusive"]
    assert any("within `budget`" in row.reason for row in inconclusive)
    assert all(
        row.head_runs == 3 == row.base_runs for row in rows.values() if row.classification == "regression"
    )


def test_both_sides_of_one_failure_are_repeated_before_the_next_one(world: World) -> None:
    rows = found_within(world, 20.0)
    assert rows["Add_regressed"].classification == "regression"
    assert rows["Gelu_flaky_at_base"].reason == NOT_REPEATED, "there was no time for all of them"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda e: e["outcome"].update(toolchain="other"), "another toolchain"),
        (lambda e: e["outcome"].update(case="f" * 64), "unexpected outcome"),
        (lambda e: e.update(repeat=[1]), "unexpected outcome"),
        (lambda e: e["outcome"].update(verdict="fine"), "the runner sent an invalid outcome"),
        (lambda e: e.pop("outcome"), "the runner sent an invalid outcome"),
        (lambda e: e.update(event="other"), "missing and no reason"),
    ],
)
def test_what_a_runner_sends_is_checked(world: World, spoil: Any, message: str) -> None:
    real = world.runner.run

    def run(shard: fakes.PlainShard, on_event: Any, stop: threading.Event) -> None:
        def spoiling(event: dict[str, Any]) -> None:
            if event.get("outcome", {}).get("case") == IDS["Add_regressed"]:
                spoil(event)
            on_event(event)

        real(shard, spoiling, stop)

    world.runner.run = run  # type: ignore[method-assign]
    campaign_id = world.push(base="")
    for wait in (*BACKOFF_S, 0):
        world.run()
        world.clock.advance(wait)
    campaign = world.campaign(campaign_id)
    assert campaign.state == "failed"
    assert message in campaign.reason
    assert [problem.kind for problem in world.reports.troubles] == ["infrastructure"]


def test_a_runner_that_returns_early_is_trouble(world: World) -> None:
    world.runner.run = lambda *_: None  # type: ignore[method-assign]
    campaign_id = world.push(base="")
    for wait in (*BACKOFF_S, 0):
        world.run()
        world.clock.advance(wait)
    assert "returned before its shard had ended" in world.campaign(campaign_id).reason


def test_progress_tells_cases_and_states(world: World) -> None:
    world.push()
    world.run()
    running = [p for p in world.progress if p.state is CampaignState.RUNNING]
    assert (running[-1].done, running[-1].total) == (len(TESTS), len(TESTS))
    told = {state for state in CampaignState if not state.ended}
    nothing_small = {CampaignState.REDUCING}  # of no case: there is nothing to tell
    assert {p.state for p in world.progress} == told - nothing_small


def test_steps_without_shards_are_timed_too(world: World) -> None:
    real = world.services.provision

    def provision(spec: Any, data_dir: Any, progress: Any) -> Any:
        world.clock.advance(7)
        return real(spec, data_dir, progress)

    world.use(provision=provision)
    campaign_id = world.push()
    world.run()
    clock = world.campaign(campaign_id).clock
    assert clock.keys() == {state.value for state in CampaignState if not state.ended} | {"collecting"}
    assert clock["provisioning"] == 14.0
