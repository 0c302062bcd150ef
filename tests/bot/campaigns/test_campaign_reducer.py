"""The reducing step: what is made small, what that amounts to, and what is said where it cannot be."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.campaigns.classify.bug_matching import KnownBug
from bot.campaigns.reduce.batch_reduction import ReductionBatch, journal_path
from bot.campaigns.reduce.reducer import FindingReducer
from bot.campaigns.run.shards import Environment
from bot.campaigns.steps import reducing
from bot.errors import RunnerError
from bot.runners.protocol import OnEvent
from bot.store import findings, reductions
from bot.store.models import Bug, BugState, Campaign, Classification, Finding, Side
from bot.store.outcomes import CacheKey
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.triage.signature import UNSORTED, Signature, compute_unsorted_key
from fuzzing.triage.traits import Traits
from tests.bot.campaigns import fakes
from tests.bot.campaigns.conftest import World
from tests.bot.campaigns.fakes import IDS, NAMES, SMALL_IDS, digest_of

HEAD = CacheKey(digest_of("2"), "standin", "CPU")
AGAIN = "2" + "a" * 39  # another commit that pins the same release


def found(world: World, campaign_id: int) -> dict[str, Finding]:
    with world.database.reading() as session:
        return {NAMES[row.case_id]: row for row in findings.of_campaign(session, campaign_id)}


def configured(world: World, cases: int) -> None:
    config = fakes.PlainConfig(reduction=fakes.PlainReduction(cases=cases))
    files = {fakes.CONFIG: fakes.to_bytes(config), fakes.PIN: b"standin==2"}
    world.repositories.files |= {"2" * 40: files, AGAIN: files}


@pytest.fixture(autouse=True)
def _reducing(world: World) -> None:
    configured(world, cases=10)


def test_what_is_new_is_reduced_first_and_what_was_broken_last(world: World) -> None:
    world.push()
    world.run()
    first, broken = world.tools.reduced[:4], world.tools.reduced[4:]
    assert sorted(set(first)) == ["Add_regressed", "Conv_regressed_wrong", "Cos_regressed_hang"]
    assert broken == [
        "Loop_supported_at_last",
        "Neg_changed",
        "Not_changed_once",
        "Div_already_broken",
        "Sub_other",
    ], "unsupported at base, failing otherwise, failing too, and last what was met on the way"


def test_a_finding_is_known_by_its_reduced_case(world: World) -> None:
    campaign_id = world.push()
    world.run()
    row = found(world, campaign_id)["Add_regressed"]
    assert (row.classification, row.reduced) == ("regression", SMALL_IDS["Add_small"])
    [summary] = world.reports.published
    [facts] = [one for one in summary.findings if one.case_id == IDS["Add_regressed"]]
    assert facts.title == "crash compile Add reduced"
    assert facts.reduced is not None
    assert facts.reduced.traits == Traits("Add", ("float",), (), ("Add",))
    assert (facts.reduced.head_failed, facts.reduced.head_runs) == (3, 3), "repeated like what was planned"
    assert (facts.reduced.base_failed, facts.reduced.base_runs) == (0, 3)
    assert facts.reduced.program.shown == "program of Add_small"
    assert facts.reduced.history["before"] == [7, 12]
    assert summary.tried[SMALL_IDS["Add_small"]] == 1


def test_a_small_case_that_base_fails_too_is_another_bug(world: World) -> None:
    campaign_id = world.push()
    world.run()
    rows = found(world, campaign_id)
    assert rows["Conv_regressed_wrong"].reduced == ""
    assert rows["Conv_regressed_wrong"].classification == "regression"
    assert "fails at base too: another bug" in rows["Conv_regressed_wrong"].reason
    assert rows["Conv_small"].classification == Classification.ALREADY_BROKEN.value, (
        "and is told of for itself"
    )


def test_what_is_met_on_the_way_is_a_finding_and_reduced_in_turn(world: World) -> None:
    campaign_id = world.push()
    world.run()
    rows = found(world, campaign_id)
    assert (rows["Sub_other"].classification, rows["Sub_other"].reduced) == (
        "regression",
        SMALL_IDS["Sub_small"],
    )
    [summary] = world.reports.published
    assert {NAMES[one.case_id] for one in summary.findings if one.found_by_reduction} == {
        "Sub_other",
        "Conv_small",
    }
    assert summary.planned == len(fakes.TESTS), "and was never planned"


@pytest.mark.parametrize(
    ("pull", "state", "heard"),
    [(7, BugState.NEW, True), (None, BugState.NEW, False), (None, BugState.CLOSED, True)],
)
def test_what_is_met_is_told_if_nobody_heard_of_it_on_a_branch(
    world: World, pull: int | None, state: BugState, *, heard: bool
) -> None:
    """Of a bug that waits on a branch there is nothing to tell."""
    traits = {"operator": "Sub", "dtypes": ["float"], "needs": []}
    fields = {"verdict": "crash", "phase": "compile", "complaint": "", **traits}
    with world.database.transaction() as session:
        now = world.clock.now()
        done = {"trigger": "x", "state": "done", "created_at": now, "updated_at": now}
        session.add(Campaign(target="octo/compiler", head="9" * 40, pull=pull, **done))
        session.flush()
        bug = Bug(target="octo/compiler", signature="known", title="t", first_seen=now, last_seen=now)
        bug.facts, bug.state, bug.campaign_id = {"signature": fields}, state.value, 1
        session.add(bug)
    campaign_id = world.push()
    world.run()
    rows = found(world, campaign_id)
    assert ("Sub_other" in rows) is heard
    assert [test for test, row in rows.items() if row.signature == "known"] == ["Sub_other"] * heard


def test_a_reducer_that_dies_costs_no_finding(world: World) -> None:
    campaign_id = world.push()
    world.run()
    row = found(world, campaign_id)["Cos_regressed_hang"]
    assert row.classification == "regression"
    assert row.reason.endswith(
        "; not reduced: the reducer failed; the next campaign tries again: "
        "fuzzing.reduce was killed by SIGSEGV and logged nothing"
    )
    with world.database.reading() as session:
        assert reductions.get(session, row.case_id, HEAD) is None, "it may go better the next time"


REGRESSED = ["Add_regressed", "Conv_regressed_wrong", "Cos_regressed_hang"]
BROKEN = ["Loop_supported_at_last", "Neg_changed", "Not_changed_once", "Div_already_broken"]


def dying(world: World, monkeypatch: pytest.MonkeyPatch, *tests: str, alone_too: bool = True) -> None:
    """The reducer's process dies of these tests, and of others never."""
    honest = world.tools.reduce

    def reduce(shard: dict[str, Any], on_event: OnEvent) -> None:
        test = NAMES[shard["case"]]
        if test in tests and (alone_too or len(world.tools.batches[-1]) > 1):
            world.tools.reduced.append(test)
            raise RunnerError("fuzzing.reduce was killed by SIGSEGV and logged nothing")
        honest(shard, on_event)

    monkeypatch.setattr(world.tools, "reduce", reduce)


def test_cases_that_must_pass_at_the_same_place_share_a_process(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fakes, "DEADLY", "")
    world.push()
    world.run()
    assert sorted(world.tools.batches[0]) == REGRESSED
    assert world.tools.batches[1:] == [BROKEN[:1], BROKEN[1:], ["Sub_other"]]


def test_of_three_the_second_kills_the_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again alone, and its death costs the others nothing."""
    monkeypatch.setattr(fakes, "DEADLY", "")
    campaign_id = world.push()
    sizes = {IDS[test]: place for place, test in enumerate(REGRESSED)}
    monkeypatch.setattr(FindingReducer, "size", lambda _, case: sizes.get(case, 9))
    dying(world, monkeypatch, "Conv_regressed_wrong")
    world.run()
    assert world.tools.batches[:3] == [REGRESSED, ["Conv_regressed_wrong"], ["Cos_regressed_hang"]]
    rows = found(world, campaign_id)
    assert rows["Add_regressed"].reduced == SMALL_IDS["Add_small"]
    assert "was killed by SIGSEGV" in rows["Conv_regressed_wrong"].reason
    assert rows["Cos_regressed_hang"].reason.endswith("not reduced: Cos_regressed_hang cannot be reduced")
    assert world.tools.reduced.count("Add_regressed") == 1
    with world.database.reading() as session:
        assert reductions.get(session, IDS["Conv_regressed_wrong"], HEAD) is None


def test_a_case_that_dies_only_behind_others_is_reduced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier one wrote out of bounds is not held against it."""
    monkeypatch.setattr(fakes, "DEADLY", "")
    dying(world, monkeypatch, "Not_changed_once", "Div_already_broken", alone_too=False)
    campaign_id = world.push()
    world.run()
    assert found(world, campaign_id)["Div_already_broken"].reduced == SMALL_IDS["Div_small"]
    assert world.tools.batches[2:5] == [BROKEN[1:], ["Not_changed_once"], ["Div_already_broken"]]


def test_a_process_that_dies_before_its_first_case_is_not_started_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(args: object, on_event: object, stop: object) -> None:
        world.tools.batches.append([])
        raise RunnerError("fuzzing.reduce ended with status 3")

    monkeypatch.setattr(world.tools, "reduce_all", die)
    campaign_id = world.push()
    world.run()
    assert len(world.tools.batches) == len(REGRESSED + BROKEN), "each case is charged once"
    assert world.campaign(campaign_id).state == "done"
    assert "ended with status 3" in found(world, campaign_id)["Add_regressed"].reason


def test_the_budget_ends_in_the_middle_of_a_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fakes, "DEADLY", "")
    config = fakes.PlainConfig(budget=100.0, reduction=fakes.PlainReduction(budget=10.0, cases=10))
    files = {fakes.CONFIG: fakes.to_bytes(config), fakes.PIN: b"standin==2"}
    world.repositories.files["2" * 40] = files
    world.tools.seconds = 60.0
    campaign_id = world.push()
    world.run()
    assert len(world.tools.reduced) == 2, "after 120 s of 100 no other one begins"
    rows = found(world, campaign_id)
    assert [test for test in REGRESSED if rows[test].reason.endswith("the time for reducing was spent")] == [
        test for test in REGRESSED if test not in world.tools.reduced
    ]


def test_what_ended_before_a_kill_is_not_reduced_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result is committed as it comes, not when its process ends."""
    monkeypatch.setattr(fakes, "DEADLY", "")
    honest = world.tools.reduce

    def kill(shard: dict[str, Any], on_event: OnEvent) -> None:
        if len(world.tools.reduced) == 2:
            raise KeyboardInterrupt
        honest(shard, on_event)

    monkeypatch.setattr(world.tools, "reduce", kill)
    campaign_id = world.push()
    with pytest.raises(KeyboardInterrupt):
        world.run()
    done = list(world.tools.reduced)
    assert len(done) == 2
    monkeypatch.setattr(world.tools, "reduce", honest)
    world.run()
    again = world.tools.batches[1]
    assert again == [test for test in REGRESSED if test not in done]
    assert found(world, campaign_id)["Add_regressed"].reduced == SMALL_IDS["Add_small"]
    assert [world.tools.reduced.count(test) for test in REGRESSED] == [1, 1, 1]


def test_a_reduction_that_cannot_be_read_is_not_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real = world.tools.reduce

    def without_traits(shard: dict[str, Any], on_event: OnEvent) -> None:
        def pass_on(event: dict[str, Any]) -> None:
            on_event(event | {"traits": {}} if event["event"] == "end" else event)

        real(shard, pass_on)

    monkeypatch.setattr(world.tools, "reduce", without_traits)
    campaign_id = world.push()
    world.run()
    row = found(world, campaign_id)["Add_regressed"]
    assert "tries again: fuzzing.reduce sent traits that are none" in row.reason
    with world.database.reading() as session:
        assert reductions.get(session, row.case_id, HEAD) is None


def test_what_the_machine_lacked_is_told_and_nothing_else_that_a_program_logged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = "OSError: [Errno 28] No space left on device: '/home/somebody'"

    def fail(shard: object, on_event: object) -> None:
        raise RunnerError(f"fuzzing.reduce ended with status 1; its log ends:\nTraceback:\n{logged}")

    monkeypatch.setattr(world.tools, "reduce", fail)
    campaign_id = world.push()
    world.run()
    reason = found(world, campaign_id)["Add_regressed"].reason
    assert reason.endswith("tries again: fuzzing.reduce ended with status 1: No space left on device")


def test_after_a_restart_no_more_is_reduced_than_is_allowed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(world, cases=2)
    campaign_id, honest = world.push(), world.tools.reduce

    def end(shard: dict[str, Any], on_event: OnEvent) -> None:
        if world.tools.reduced:
            raise KeyboardInterrupt
        honest(shard, on_event)

    monkeypatch.setattr(world.tools, "reduce", end)
    with pytest.raises(KeyboardInterrupt):
        world.run()
    monkeypatch.setattr(world.tools, "reduce", honest)
    world.run()
    assert len(world.tools.reduced) == 2
    assert sum(bool(row.reduced) for row in found(world, campaign_id).values()) == 1, "Conv's is another bug"


def test_another_campaign_on_the_toolchain_reduces_nothing_again(world: World) -> None:
    world.push()
    world.run()
    world.tools.reduced.clear()
    again = world.push(head=AGAIN, base="1" + "a" * 39)
    world.run()
    assert world.tools.reduced == ["Cos_regressed_hang"], (
        "the only one without an answer, alone from the start"
    )
    assert found(world, again)["Add_regressed"].reduced == SMALL_IDS["Add_small"]


def test_a_small_case_the_corpus_has_lost_is_sought_anew(world: World) -> None:
    world.push()
    world.run()
    folder = world.settings.data_dir / "corpus" / SMALL_IDS["Add_small"][:2] / SMALL_IDS["Add_small"]
    folder.rename(world.settings.data_dir / "gone")
    world.tools.reduced.clear()
    world.push(head=AGAIN, base="1" + "a" * 39)
    world.run()
    assert "Add_regressed" in world.tools.reduced


def test_the_configuration_says_how_many_cases_are_reduced(world: World) -> None:
    configured(world, cases=1)
    campaign_id = world.push()
    world.run()
    assert world.tools.reduced == ["Add_regressed"], "the smallest of what is new"
    reasons = [row.reason for row in found(world, campaign_id).values()]
    assert sum("the limit reduction.cases" in reason for reason in reasons) == 6, (
        "two regressions, one that base does not support, one that it fails otherwise, and two that were "
        "broken already; what was met on the way is not reported"
    )


def test_none_are_if_it_says_so(world: World) -> None:
    configured(world, cases=0)
    campaign_id = world.push()
    world.run()
    assert world.campaign(campaign_id).state == "done"
    assert world.tools.reduced == []
    assert not any(row.reduced for row in found(world, campaign_id).values())


def test_a_failure_that_was_not_reduced_joins_the_bug_behind_it(world: World) -> None:
    configured(world, cases=0)
    fields = {
        "verdict": "crash", "phase": "compile", "operator": "Add", "complaint": "", "dtypes": ["int"],
        "needs": ["rank 1"],
    }  # fmt: skip
    with world.database.transaction() as session:
        now = world.clock.now()
        bug = Bug(target="octo/compiler", signature="known", title="t", first_seen=now, last_seen=now)
        bug.facts = {"signature": fields}
        session.add(bug)
    campaign_id = world.push()
    world.run()
    rows = found(world, campaign_id)
    assert rows["Add_regressed"].signature == "known"
    assert [test for test, row in rows.items() if row.signature == "known"] == ["Add_regressed"], (
        "though others crash while they are compiled: they hold no Add"
    )


def test_an_old_failure_that_a_known_bug_explains_is_not_reduced_again(world: World) -> None:
    fields = {
        "verdict": "crash", "phase": "compile", "operator": "Div", "complaint": "", "dtypes": ["int"],
        "needs": [],
    }  # fmt: skip
    with world.database.transaction() as session:
        now = world.clock.now()
        bug = Bug(target="octo/compiler", signature="known", title="t", first_seen=now, last_seen=now)
        bug.facts = {"signature": fields}
        session.add(bug)
    campaign_id = world.push()
    world.run()
    row = found(world, campaign_id)["Div_already_broken"]
    assert (row.classification, row.signature) == ("already_broken", "known")
    assert row.reason == "crash in compile at base too", "that it is not reduced is no fault"
    assert "Div_already_broken" not in world.tools.reduced
    assert "Add_regressed" in world.tools.reduced, "what is new is reduced, whatever is known"


def test_what_is_new_must_stay_new_while_it_is_made_small(world: World) -> None:
    world.push()
    world.run()
    assert {test: beside for test, beside in world.tools.beside.items() if beside} == {
        test: digest_of("1")
        for test in ("Add_regressed", "Conv_regressed_wrong", "Cos_regressed_hang", "Sub_other")
    }
    assert world.tools.beside["Div_already_broken"] is None


def test_journals_of_one_case_at_two_places_are_two(world: World) -> None:
    place = standins_place("CPU", "")
    others = [standins_place("GPU", ""), standins_place("CPU", "optimization=basic profile=isra")]
    case = IDS["Add_regressed"]
    tasks = [ReductionBatch({case: ""}, one, None, 1.0, lambda: 1.0) for one in (place, *others)]
    tasks += [replace(tasks[0], passing_environment=place)]
    paths = {journal_path(world.settings.data_dir, task, case) for task in tasks}
    assert len(paths) == 4
    assert all(path.parent == world.settings.data_dir / "reductions" for path in paths)


def standins_place(device: str, configuration: str) -> Environment:
    return Environment(Side.HEAD, CacheKey(digest_of("2"), "standin", device, configuration), "/python")


@pytest.mark.parametrize(("rewrite", "subject"), [("", "several operators"), ("unit-axes", "unit-axes")])
def test_a_wrong_result_of_several_operators_that_is_not_reduced_belongs_to_no_bug(
    world: World, monkeypatch: pytest.MonkeyPatch, rewrite: str, subject: str
) -> None:
    """Its heading names the rewrite that a repeat blames."""
    plain, signed = fakes.outcome_of, list[Signature]()

    def outcome_of(case_id: str, toolchain: str, run: int, *given: Any, **named: Any) -> Outcome:
        outcome = plain(case_id, toolchain, run, *given, **named)
        blamed = run and outcome.verdict is Verdict.WRONG_RESULT
        return replace(outcome, evidence=replace(outcome.evidence, rewrite=rewrite)) if blamed else outcome

    def sign(outcome: Outcome, operator: str, *given: Any) -> Signature:
        found = fakes.sign(outcome, operator, *given)
        signed.append(replace(found, fields=found.fields | {"rewrite": outcome.evidence.rewrite}))
        return signed[-1]

    monkeypatch.setattr(fakes, "outcome_of", outcome_of)
    world.use(sign=sign)

    def read_traits(test: str) -> dict[str, Any]:
        return {"pattern": "Abs(Conv)", "dtypes": [], "needs": [], "operators": ["Abs", "Conv"]}

    configured(world, cases=0)
    monkeypatch.setattr(fakes, "read_traits", read_traits)
    campaign_id = world.push()
    world.run()
    rows = found(world, campaign_id)
    assert rows["Conv_regressed_wrong"].signature.startswith(UNSORTED)
    keys = {compute_unsorted_key(one.fields) for one in signed if one.fields["rewrite"] == rewrite}
    assert rows["Conv_regressed_wrong"].signature in keys
    [summary] = world.reports.published
    [facts] = [one for one in summary.findings if one.case_id == IDS["Conv_regressed_wrong"]]
    assert facts.title == f"wrong_result run {subject}"
    assert not rows["Add_regressed"].signature.startswith(UNSORTED), "an exception says what failed"


@pytest.mark.parametrize(("verdict", "joins"), [("wrong_result", False), ("crash", True)])
def test_an_unreduced_failure_that_a_reduced_one_does_not_explain(
    monkeypatch: pytest.MonkeyPatch, verdict: str, *, joins: bool
) -> None:
    """Wrong values of one operator are two bugs if one needs an attribute that the other case lacks."""
    fields = {"verdict": verdict, "phase": "run", "operator": "LSTM", "complaint": "value"}
    bug = KnownBug("forgotten attribute", fields | {"needs": ["LSTM.input_forget"]})
    rows = {
        case: Finding(case_id=case, classification="regression", verdict=verdict, signature="raw")
        for case in ("with", "without")
    }
    work = SimpleNamespace(
        found=rows,
        small={"with": SimpleNamespace(case="small")},
        why={},
        bugs_by_case=lambda: {"with": bug},
        underlying_bug=lambda _raw: {},
        unsorted=lambda _raw: {},
    )
    monkeypatch.setattr(reducing, "_raw", lambda _work, _rows: [("without", Signature("raw", "", fields))])
    reducing._sign(cast("FindingReducer", work))
    assert rows["with"].signature == bug.key
    assert rows["without"].signature == (bug.key if joins else "raw")
