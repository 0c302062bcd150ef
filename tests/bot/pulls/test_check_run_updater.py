"""The check run of a campaign at work: from rows alone, now and then, and never after the last word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bot.errors import InfrastructureError
from bot.pulls.check_run_updater import CheckRunUpdater
from bot.reports.check_runs import build_untested_check_run, check_run_key
from bot.store import Session, campaigns, outbox, outcomes, pulls
from bot.store.models import Campaign, CampaignState, Effect, Side, Toolchain
from fuzzing.cases import Corpus, TestCase
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict
from tests.bot.pulls.pulls_kit import TARGET, PullHarness, head, pull_intent
from tests.bot.reports.sample_campaign import case_named

CASES = [case_named(f"test_{name}", name) for name in ("Add", "Mod", "Sin", "Tan", "Exp")]


@pytest.fixture
def queued(harness: PullHarness) -> PullHarness:
    """A pull request with its campaign, which nobody has begun."""
    harness.receive(pull_intent())
    harness.work()
    for case in CASES:
        Corpus(harness.corpus).add(case)
    return harness


def begin(harness: PullHarness, state: CampaignState, **fields: Any) -> None:
    """The engine is at work on the only campaign, in this state."""

    def change(row: Campaign) -> None:
        row.state, row.owner = state.value, "engine"
        for name, value in fields.items():
            setattr(row, name, value)

    harness.change(change, 1)


def provision(harness: PullHarness) -> None:
    """The campaign has its plan, and both toolchains."""
    with harness.database.transaction() as session:
        campaign = campaigns.get(session, 1)
        campaigns.write_plan(session, 1, [case.id for case in CASES])
        for side, version in ((Side.HEAD, "2"), (Side.BASE, "1")):
            row = Toolchain(
                digest=version * 64, backend="openvino", provisioner="release", label=f"openvino {version}",
                python="/x", versions={}, requirements=[], created_at=harness.clock.now(),
            )  # fmt: skip
            campaigns.set_toolchain(session, campaign, side, row)


def ran(harness: PullHarness, *verdicts: str, version: str = "2") -> None:
    """The first cases came to these verdicts."""
    found = [
        Outcome(case.id, "openvino", version * 64, "CPU", Verdict(verdict), Phase.CONVERT,
                f"{verdict} @octocat", {}, Evidence())
        for case, verdict in zip(CASES, verdicts, strict=False)
    ]  # fmt: skip
    with harness.database.transaction() as session:
        outcomes.record(session, found, harness.clock.now())


def repeated(harness: PullHarness, side: Side, case: TestCase, verdict: str) -> None:
    """Three fresh runs of a case gave this verdict."""
    version = "2" if side is Side.HEAD else "1"
    outcome = Outcome(
        case.id, "openvino", version * 64, "CPU", Verdict(verdict), Phase.CONVERT, verdict, {}, Evidence()
    )
    with harness.database.transaction() as session:
        outcomes.record_repeats(session, 1, side, enumerate([outcome] * 3))


def check(harness: PullHarness) -> Effect:
    (only,) = harness.effects()
    return only


def title(harness: PullHarness) -> str:
    return str(check(harness).payload["output"]["title"])


def update_due(harness: PullHarness, seconds: float) -> str:
    """Time passes, the check runs are looked at; the title there is then."""
    harness.clock.advance(seconds)
    harness.checks.update_due()
    return title(harness)


def test_it_follows_the_steps_at_once_and_their_progress_every_fifteen_seconds(queued: PullHarness) -> None:
    assert title(queued) == "Queued: next"
    begin(queued, CampaignState.PLANNING)
    assert update_due(queued, 1).startswith("Planning")
    provision(queued)
    begin(queued, CampaignState.RUNNING)
    assert update_due(queued, 1) == "Running: 0 of 5 cases, 0 fail so far"
    ran(queued, "pass")
    begin(queued, CampaignState.RUNNING, clock={"running": 1.0})
    assert update_due(queued, 1) == "Running: 1 of 5 cases, 0 fail so far", "first results are not waited for"
    ran(queued, "pass", "crash")
    assert update_due(queued, 5) == "Running: 1 of 5 cases, 0 fail so far", "too soon for another revision"
    assert update_due(queued, 10) == "Running: 2 of 5 cases, 1 fails so far"
    assert check(queued).payload["status"] == "in_progress"
    before = check(queued).revision
    update_due(queued, 60)
    assert check(queued).revision == before, "what has not changed is not sent again"
    begin(queued, CampaignState.COMPARING)
    assert update_due(queued, 1) == "Comparing with base: 0 of 2 cases"


def test_what_fails_is_listed_and_nothing_is_claimed(queued: PullHarness) -> None:
    provision(queued)
    begin(queued, CampaignState.COMPARING)
    ran(queued, "crash", "crash", "crash", "unsupported")
    ran(queued, "wrong_result", "pass", version="1")
    update_due(queued, 1)
    summary = check(queued).payload["output"]["summary"]
    assert "These are preliminary: " in summary
    rows = [line for line in summary.split("\n") if line.startswith("| `test_")]
    assert [row.split("|")[-2].strip() for row in rows] == ["pass", "not run yet", "wrong result"]
    assert "`crash @octocat`" in summary, "in a code span, which GitHub links nothing in"


def test_a_regression_that_fresh_runs_confirm_is_told_at_once(queued: PullHarness) -> None:
    provision(queued)
    ran(queued, "crash", "crash")
    ran(queued, "pass", "pass", version="1")
    begin(queued, CampaignState.RUNNING, clock={"running": 10.0, "confirming": 1.0})
    assert update_due(queued, 1) == "Running: 2 of 5 cases, 2 fail so far"
    repeated(queued, Side.HEAD, CASES[1], "crash")
    assert update_due(queued, 1) == "Running: 2 of 5 cases, 2 fail so far", "half of the evidence"
    repeated(queued, Side.BASE, CASES[1], "pass")
    assert update_due(queued, 1) == "1 regression so far. Running: 2 of 5 cases, 2 fail so far"
    summary = check(queued).payload["output"]["summary"]
    rows = [line for line in summary.split("\n") if line.startswith("| `test_")]
    assert [row.split("|")[-2].strip() for row in rows] == ["pass (**confirmed**)", "pass"]
    assert "`test_Mod`" in rows[0], "it comes first"
    assert "Confirmed regressions fail in fresh runs at head and pass in fresh runs at base." in summary


def test_how_long_it_takes_is_told_from_what_has_run(queued: PullHarness) -> None:
    provision(queued)
    begin(queued, CampaignState.RUNNING, clock={"running": 30.0})
    ran(queued, "pass", "pass")
    update_due(queued, 1)
    summary = check(queued).payload["output"]["summary"]
    assert "5 cases are planned within a budget of 2 min 0 s" in summary
    assert "about 45 s more" in summary, "3 cases at 15 s each"


def test_what_the_change_touches_is_told(queued: PullHarness) -> None:
    ranking = {
        "strategy": "change", "suites": [],
        "touched": [
            {"operator": "Add", "weight": 0.9, "why": "op/add.cpp, line 3: Add's converter add was changed",
             "places": []},
            {"pass": "FuseAdd", "places": []},
        ],
    }  # fmt: skip
    begin(queued, CampaignState.PROVISIONING, plan={"sources": [], "ranking": ranking})
    update_due(queued, 1)
    summary = check(queued).payload["output"]["summary"]
    assert "- `Add`: op/add.cpp, line 3" in summary
    assert "FuseAdd" not in summary


def test_the_place_in_the_queue_is_told(queued: PullHarness) -> None:
    queued.receive(pull_intent(8, head=head(8)))
    queued.work()
    titles = [one.payload["output"]["title"] for one in queued.effects()]
    assert sorted(titles) == ["Queued: 1 campaign ahead", "Queued: next"]


def test_nothing_follows_the_last_word(queued: PullHarness) -> None:
    draft = build_untested_check_run(TARGET, TARGET, head(1), 1, "openvino==9 cannot be installed")
    with queued.database.transaction() as session:
        outbox.post(session, [draft], campaign_id=1, issues_per_day=0, at=queued.clock.now())
        campaigns.move(campaigns.get(session, 1), CampaignState.FAILED, queued.clock.now(), "no")
    assert update_due(queued, 60) == "Could not test this commit"
    assert check(queued).key == check_run_key(TARGET, head(1), 1)


@pytest.mark.parametrize(
    ("state", "reason", "conclusion"),
    [
        (CampaignState.SUPERSEDED, "stopped by jane", "cancelled"),
        (CampaignState.DONE, "nothing to test: there is no pin", "neutral"),
        (CampaignState.FAILED, "internal error in running: KeyError", "neutral"),
    ],
)
def test_a_campaign_that_ends_without_a_word_gets_one(
    queued: PullHarness, state: CampaignState, reason: str, conclusion: str
) -> None:
    begin(queued, state, reason=reason)
    assert update_due(queued, 1).startswith("Ended early")
    payload = check(queued).payload
    assert (payload["status"], payload["conclusion"]) == ("completed", conclusion)
    assert reason.split(":")[0] in payload["output"]["summary"]


def test_a_restart_changes_nothing_but_the_moment(queued: PullHarness) -> None:
    provision(queued)
    begin(queued, CampaignState.RUNNING, clock={"running": 1.0})
    update_due(queued, 1)
    before = check(queued)
    CheckRunUpdater(queued.database, queued.corpus, clock=queued.clock.now).update_due()
    assert (check(queued).payload, check(queued).revision) == (before.payload, before.revision)


def test_a_corpus_that_lost_a_case_is_no_reason_to_be_silent(queued: PullHarness) -> None:
    provision(queued)
    begin(queued, CampaignState.RUNNING)
    ran(queued, "crash")
    (Corpus(queued.corpus).folder(CASES[0].id) / "case.json").unlink()
    assert update_due(queued, 1) == "Running: 1 of 5 cases, 1 fails so far"
    assert CASES[0].id[:16] in check(queued).payload["output"]["summary"]


def test_a_campaign_that_is_forgotten_meanwhile_leaves_the_others_told(
    queued: PullHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between seeing which campaigns are at work and telling of them, one goes."""
    unfinished_campaigns = pulls.unfinished_campaigns

    def forgotten(session: Session) -> Sequence[Campaign]:
        (known,) = unfinished_campaigns(session)
        return [Campaign(id=99, state="running", owner="engine", clock={}), known]

    monkeypatch.setattr(pulls, "unfinished_campaigns", forgotten)
    provision(queued)
    begin(queued, CampaignState.RUNNING)
    assert update_due(queued, 1).startswith("Running")


def test_an_end_that_came_while_the_database_was_away_is_told(
    queued: PullHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For half an hour nothing could be looked at; at its beginning another process ended the campaign."""
    update_due(queued, 1)
    begin(queued, CampaignState.SUPERSEDED, reason="stopped by jane", updated_at=queued.clock.now())
    with monkeypatch.context() as patch:
        patch.setattr(
            pulls, "unfinished_campaigns", lambda _: (_ for _ in ()).throw(InfrastructureError("away"))
        )
        for _ in range(3):
            with pytest.raises(InfrastructureError):
                update_due(queued, 600)
    assert update_due(queued, 1).startswith("Ended early")
