"""Which failures are repeated, how often, and when."""

from __future__ import annotations

import threading

import pytest

from bot.campaigns.classify.classification import NO_BASE, NOT_REPEATED
from bot.campaigns.run.noise import NOISE
from bot.campaigns.services import Sign
from bot.store.models import CampaignState, Classification
from fuzzing.outcomes import Outcome
from fuzzing.triage.signature import Signature
from fuzzing.triage.traits import Traits
from tests.bot.campaigns import fakes
from tests.bot.campaigns.conftest import World
from tests.bot.campaigns.fakes import EXPECTED, IDS, NAMES, TESTS, digest_of
from tests.bot.campaigns.test_campaign_queue import HEAD, found, found_within


def test_fresh_repeats_go_out_in_growing_shards_of_both_sides(world: World) -> None:
    world.push()
    world.run()
    fresh = [shard for shard in world.runner.shards if shard.fresh]
    sent = [
        (
            "head" if shard.toolchain == HEAD.toolchain else "base",
            [NAMES[case].partition("_")[0] for case in shard.cases],
            shard.repeats,
            shard.limit_factor,
        )
        for shard in fresh
    ]
    *sent, noise, changed, _ = sent
    assert set(noise[1]) == {"Abs", "Max", "Erf"}, "what passes"
    assert set(changed[1]) == {"Neg", "Not"}, "on both sides"
    assert sent == [
        ("head", ["Add", "Conv"], 3, 1.0),
        ("base", ["Add", "Conv"], 3, 1.0),
        ("head", ["Exp", "Gelu"], 3, 1.0),
        ("base", ["Gelu"], 3, 1.0),
        ("head", ["Cos"], 1, 3.0),
        ("head", ["Cos"], 2, 1.0),
        ("base", ["Cos"], 3, 1.0),
    ], "the hang comes last, and has shown itself once, alone and with more patience"
    assert [shard.ablate for shard in fresh if shard.limit_factor > 1] == [False]


def test_the_first_regression_is_told_while_cases_are_still_to_run(world: World) -> None:
    rows = found_within(world, 300.0)
    assert {test: row.classification for test, row in rows.items()} == {
        test: classification.value for test, (classification, _) in EXPECTED.items()
    }
    shards = world.runner.shards
    at_head = [at for at, shard in enumerate(shards) if shard.toolchain == HEAD.toolchain and not shard.fresh]
    late = at_head[1]
    assert IDS["Not_changed_once"] in shards[late].cases, "it has not run yet"
    told = [
        (step.state, step.note, step.lasting)
        for step in world.progress
        if step.lasting or (step.state is CampaignState.RUNNING and step.done == step.total > 0)
    ]
    first = (CampaignState.RUNNING, "regression: Add_regressed: Add_regressed: crash", True)
    assert told.index(first) < told.index((CampaignState.RUNNING, "4 of 4 runs at head", False))
    early = [shard for shard in shards[:late] if shard.fresh]
    assert [(shard.toolchain, shard.cases) for shard in early] == [
        (HEAD.toolchain, (IDS["Add_regressed"],)),
        (digest_of("1"), (IDS["Add_regressed"],)),
    ]
    assert [note for _, note, lasting in told if lasting].count(first[1]) == 1, "told once"
    assert [note for _, note, lasting in told if lasting] == [
        first[1],
        "regression: Conv_regressed_wrong: Conv_regressed_wrong: wrong_result",
        "regression: Cos_regressed_hang: Cos_regressed_hang: hang",
    ], "one for each group that confirms one"


def test_without_a_base_hangs_are_repeated_last(world: World) -> None:
    world.push(base="")
    world.run()
    fresh = [shard for shard in world.runner.shards if shard.fresh]
    *fresh, noise = fresh
    assert IDS["Max_fine"] in noise.cases
    hang = IDS["Cos_regressed_hang"]
    assert [(hang in shard.cases, shard.limit_factor) for shard in fresh] == [
        (False, 1.0),
        (True, 3.0),
        (True, 1.0),
    ]
    assert [len(shard.cases) for shard in fresh[1:]] == [1, 1]


def test_a_hang_is_not_confirmed_while_cases_are_still_to_run(world: World) -> None:
    replaced = {test: (("pass",), ("pass",)) for test in TESTS if test != "Cos_regressed_hang"}
    runner = fakes.Runner(world.clock, 1.0, replaced)
    world.use(runner=runner)
    world.push()
    world.run()
    fresh = [shard.fresh for shard in runner.shards if shard.toolchain == HEAD.toolchain]
    assert fresh == sorted(fresh), "first all cases, then the repeats"
    assert fresh.count(False) == 2, "the first ten seconds, then the rest"


@pytest.mark.parametrize("change", [False, True])
def test_noise_is_measured_where_something_was_repeated(world: World, change: bool) -> None:
    """It says how much repeats are worth; each measurement is one more start of the compiler."""
    alike: dict[str, tuple[fakes.Behavior, fakes.Behavior]] = {
        test: (base[:1], base[:1]) for test, (base, _) in TESTS.items()
    }
    if change:
        alike["Neg_changed"] = TESTS["Neg_changed"]
    runner = fakes.Runner(world.clock, replaced=alike)
    world.use(runner=runner)
    world.push()
    world.run()
    fresh = [shard for shard in runner.shards if shard.fresh]
    noise = [shard for shard in fresh if len(shard.cases) == NOISE]
    repeated = [shard.cases for shard in fresh if shard not in noise]
    assert repeated == [(IDS["Neg_changed"],)] * 2 * change, "on both sides"
    assert [(shard.toolchain, shard.workers) for shard in noise] == [(HEAD.toolchain, 1)] * change


def test_without_a_base_nothing_is_confirmed_early(world: World) -> None:
    world.runner.seconds = 1.0
    world.push(base="")
    world.run()
    assert not any(step.lasting for step in world.progress)
    head_first = [shard.fresh for shard in world.runner.shards]
    assert head_first[0] is False
    assert len(world.runner.shards[0].cases) == len(TESTS)


def sign_as(others: dict[str, str]) -> Sign:
    """Failures of these operators have the signatures of others."""

    def sign(outcome: Outcome, operator: str, frontend: str, reduced: Traits | None = None) -> Signature:
        return fakes.sign(outcome, others.get(operator, operator), frontend, reduced)

    return sign


@pytest.mark.parametrize("reduces", [False, True])
def test_of_each_signature_one_case_is_repeated_by_an_interpreter_that_is_not_forked(
    world: World, reduces: bool
) -> None:
    """Of reduced cases where cases are reduced, of the failures themselves otherwise."""
    config = fakes.PlainConfig(reduction=fakes.PlainReduction(cases=9 * reduces))
    world.use(sign=sign_as({"Div": "Add", "Sub": "Add"}))
    world.repositories.files["2" * 40] = {fakes.CONFIG: fakes.to_bytes(config), fakes.PIN: b"standin==2"}
    world.push(base="")
    world.run()
    fresh = [shard for shard in world.runner.shards if shard.fresh]
    assert all(shard.forked for shard in fresh)
    unforked = [NAMES[case] for shard in fresh for case in shard.unforked]
    repeated = {NAMES[case] for shard in fresh for case in shard.cases}
    if reduces:
        assert {"Add_small", "Sub_other"} <= repeated
        assert "Add_small" in unforked
        assert not {"Sub_other", "Div_small", *TESTS} & set(unforked)
    else:
        assert {"Add_regressed", "Neg_changed"} <= set(unforked)
        assert "Div_already_broken" in repeated - set(unforked)
    assert len(set(unforked)) == len(unforked)


def test_without_a_base_what_the_budget_leaves_counts_once_where_a_failure_alike_repeats(
    world: World,
) -> None:
    fails = ("Abs_fine", "Max_fine", "Neg_changed", "Not_changed_once")
    replaced = {test: ((), (("crash",) if test in fails else ("pass",))) for test in TESTS}
    runner = fakes.Runner(world.clock, replaced=replaced)

    def slow_where_fresh(case: str, stop: threading.Event) -> None:
        runner.seconds = 50.0 * runner.shards[-1].fresh

    runner.before = slow_where_fresh  # six runs use up the budget
    world.use(runner=runner, sign=sign_as({"Max": "Abs"}))
    campaign_id = world.push(base="")
    world.run()
    rows = found(world, campaign_id)
    assert {test: (row.head_runs, row.reason) for test, row in rows.items()} == {
        "Abs_fine": (3, NO_BASE),
        "Max_fine": (1, NO_BASE),
        "Neg_changed": (3, NO_BASE),
        "Not_changed_once": (1, NOT_REPEATED),
    }


#: What "Neg" and "Not" do on releases 1 and 2, and how "Not" then counts: its classification and runs.
CHANGES: dict[str, tuple[fakes.Behavior, fakes.Behavior, Classification, int]] = {
    "both are steady": (("wrong_result",), ("wrong_result",), Classification.CHANGED, 1),
    "the second is not": (("wrong_result",), ("wrong_result", "crash"), Classification.ALREADY_BROKEN, 1),
    "the first is not": (("wrong_result", "crash"), ("wrong_result",), Classification.CHANGED, 3),
}


@pytest.mark.parametrize("case", CHANGES)
def test_one_change_of_each_pair_of_signatures_is_repeated_and_others_run_once(
    world: World, case: str
) -> None:
    first, second, expected, runs = CHANGES[case]
    replaced = {"Neg_changed": (first, ("crash",)), "Not_changed_once": (second, ("crash",))}

    def sign(outcome: Outcome, operator: str, frontend: str, reduced: Traits | None = None) -> Signature:
        return fakes.sign(outcome, "Neg" if operator == "Not" else operator, frontend, reduced)

    world.use(runner=fakes.Runner(world.clock, replaced=replaced), sign=sign)
    campaign_id = world.push()
    world.run()
    row = found(world, campaign_id)["Not_changed_once"]
    assert (row.classification, row.head_runs, row.base_runs) == (expected.value, runs, runs)


#: What "Max" and "Add", the larger program, do at head, where they fail alike; they pass at base. And the
#: runs of "Add" on each side that count: the first one, or the fresh ones.
ALIKE: dict[str, tuple[fakes.Behavior, fakes.Behavior, int]] = {
    "the first repeats": (("crash",), ("crash", "pass"), 1),
    "the first does not": (("crash", "pass"), ("crash",), 3),
    "hangs, each of which may be the machine's": (("hang",), ("hang",), 3),
}


@pytest.mark.parametrize("case", ALIKE)
def test_of_regressions_that_fail_alike_one_is_repeated(world: World, case: str) -> None:
    first, second, runs = ALIKE[case]
    replaced = {"Max_fine": (("pass",), first), "Add_regressed": (("pass",), second)}

    def sign(outcome: Outcome, operator: str, frontend: str, reduced: Traits | None = None) -> Signature:
        return fakes.sign(outcome, "Add" if operator == "Max" else operator, frontend, reduced)

    runner = fakes.Runner(world.clock, replaced=replaced)
    world.use(runner=runner, sign=sign)
    campaign_id = world.push()
    world.run()
    rows = found(world, campaign_id)
    assert rows["Max_fine"].head_runs == 3
    row = rows["Add_regressed"]
    assert row.classification == Classification.REGRESSION.value
    assert (row.head_failed, row.head_runs, row.base_failed, row.base_runs) == (runs, runs, 0, runs)
    blamed = [case for shard in runner.shards if shard.ablate for case in shard.cases]
    assert (IDS["Add_regressed"] in blamed) == (runs == 3)


def test_what_was_confirmed_early_stands_for_what_fails_alike_and_ran_later(world: World) -> None:
    replaced = {"Neg_changed": (("pass",), ("crash",))}

    def sign(outcome: Outcome, operator: str, frontend: str, reduced: Traits | None = None) -> Signature:
        return fakes.sign(outcome, "Add" if operator == "Neg" else operator, frontend, reduced)

    world.use(runner=fakes.Runner(world.clock, seconds=1.0, replaced=replaced), sign=sign)
    campaign_id = world.push()
    world.run()
    rows = found(world, campaign_id)
    assert (rows["Add_regressed"].head_runs, rows["Neg_changed"].head_runs) == (3, 1)
    assert rows["Neg_changed"].classification == Classification.REGRESSION.value
