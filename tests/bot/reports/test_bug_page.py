"""The page of one bug, from its rows to the text that people read."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.reports.bug_facts import add_program_text, collect_bug_facts
from bot.reports.bug_page import BugFacts, as_json, page
from bot.reports.bug_plots import plots
from bot.store import Database, audit, bugs, campaigns, findings, outcomes
from bot.store import bug_details as known
from bot.store.models import Base, Campaign, Classification, Finding, Reduction, Retest, Toolchain
from fuzzing.cases import Corpus
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from tests.bot.reports.sample_campaign import case_named

NOW = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
CASE = case_named("test_pad (reduced)", "Pad")
HOSTILE = "<script>alert(1)</script> @octocat ghp_0123456789abcdefghijABCDEFGHIJ012345"
WRONG = Mismatch("y", "value", "1 of 4 elements", 0.25, 2.0, 0.5, (1, 1), "9.0", "7.0", 1e-3, 1e-5)
NUMBERS: dict[str, Any] = {
    "event": "output", "output": "y", "dtype": "float32", "shape": [2, 2], "elements": 4,
    "at": [0, 1, 2, 3], "want": [0.5, -1.25, 3e-5, 7.0], "got": [0.5, -1.25, 3e-5, 9.0],
    "wrong": [False, False, False, True],
}  # fmt: skip


def outcome(toolchain: str, verdict: Verdict) -> Outcome:
    seen = Evidence(mismatches=(WRONG,), log=HOSTILE) if verdict.is_failure else Evidence()
    return Outcome(CASE.id, "onnxruntime", toolchain, "CPU", verdict, Phase.RUN, f"{verdict.value} {HOSTILE}",
                   {"run": 0.1}, seen)  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(made.engine)
    with made.transaction() as session:
        for at, (digest, verdict) in enumerate({"old": Verdict.PASS, "new": Verdict.WRONG_RESULT}.items()):
            session.add(
                Toolchain(
                    digest=digest, backend="onnxruntime", provisioner="release", label=f"ort {digest}",
                    python="/x/python", versions={"onnxruntime": digest}, requirements=[f"onnxruntime=={at}"],
                    created_at=NOW + timedelta(days=at),
                )
            )  # fmt: skip
            outcomes.record(session, [outcome(digest, verdict)], NOW)
        row = Campaign(
            target="o/n", head="a" * 40, base="b" * 40, trigger="push", head_toolchain="new",
            created_at=NOW, updated_at=NOW,
        )  # fmt: skip
        campaign, _ = campaigns.create(session, row)
        found = Finding(
            campaign_id=campaign.id, case_id="c" * 64, classification=Classification.REGRESSION.value,
            verdict="wrong_result", signature="sig", reduced=CASE.id,
        )  # fmt: skip
        findings.replace(session, campaign.id, [found])
        traits = {"pattern": "Pad", "dtypes": ["float"], "needs": ["Pad.mode"], "operators": ["Pad"]}
        by = bugs.Sighting(campaign.id, False, CASE.id, "onnxruntime", "CPU", "", traits, {"operator": "Pad"})
        bug = bugs.record_sighting(session, "o/n", "sig", f"[ONNX] Pad: {HOSTILE}", NOW, "", by)
        body = {"words": ["operators"], "before": [50], "after": [2], "runs": 40, "replayed": 4}
        session.add(
            Reduction(
                case_id="c" * 64, toolchain="new", backend="onnxruntime", device="CPU", reduced=CASE.id,
                body=body, recorded_at=NOW,
            )
        )  # fmt: skip
        session.add(
            Retest(bug_id=bug.id, number=0, purpose="fix", commit="f" * 40, toolchain="new", runs=3, failed=1,
                   control_passed=True, at=NOW)
        )  # fmt: skip
        audit.record(session, "o/n", "held", f"bug:{bug.id}", f"because {HOSTILE}", NOW)
    yield made
    made.close()


@pytest.fixture
def facts(database: Database, tmp_path: Path) -> BugFacts:
    Corpus(tmp_path / "corpus").add(CASE)
    with database.reading() as session:
        [bug] = known.find_bugs(session, "sig")
        gathered = collect_bug_facts(session, bug, tmp_path / "corpus")
    reported = add_program_text(
        gathered, tmp_path / "corpus", lambda _module, _args, take: take({"program": HOSTILE})
    )
    rows = [
        {"label": "tvm", "verdict": "pass", "to_reference": 0.0, "to_float64": 1e-8, "summary": HOSTILE,
         "outlier": False},
    ]  # fmt: skip
    return dataclasses.replace(reported, numbers=[NUMBERS], comparison=rows)


def test_everything_that_is_known_is_on_the_page(facts: BugFacts) -> None:
    shown = page(facts)
    for part in (
        "50 → 2 operators in 44 runs", "ort new", "ort old", "wrong result in phase run",
        "onnxruntime==1", "assay replay", "1 of 3", "because", "fix", "regression", "push", "tvm",
        "expected 7, got 9", "a" * 12, "2026-01-01 12:30",
    ):  # fmt: skip
        assert re.search(re.escape(part).replace(r"\ ", r"\s+"), re.sub(r"<[^>]+>", " ", shown)) or (
            part in shown
        ), part


def test_the_failing_head_is_shown_and_not_the_release_that_passes(facts: BugFacts) -> None:
    assert facts.outcome is not None
    assert facts.outcome.toolchain == "new"
    assert [(run.label, run.outcome.verdict) for run in facts.runs] == [
        ("ort old", Verdict.PASS),
        ("ort new", Verdict.WRONG_RESULT),
    ]
    assert "THE BUG SHOWS" in facts.script


def test_equal_facts_give_equal_pages(facts: BugFacts) -> None:
    assert page(facts) == page(facts)


def test_what_came_from_outside_can_do_nothing(facts: BugFacts) -> None:
    shown = page(facts)
    assert "<script>" not in shown
    assert "ghp_0123456789" not in shown
    assert shown.count("&lt;script&gt;") >= 5
    assert "default-src &#39;none&#39;" in shown or "default-src 'none'" in shown


def test_where_this_machine_keeps_things_is_not_on_the_page(facts: BugFacts) -> None:
    facts.bug.reason = "written down, not sent: file:///srv/assay/outbox/1.json: dry-run"
    facts.audit_events[0].reason = "kept in /var/lib/assay/mirrors/o.git, as ever"
    shown = page(facts)
    assert "written down, not sent: a file of the service: dry-run" in shown
    assert "kept in a file of the service, as ever" in shown
    assert "/srv/assay" not in shown


def test_all_that_scrolls_can_be_reached_by_keyboard(facts: BugFacts) -> None:
    boxes = re.findall(r'<div class="(?:scroll|ulps)"[^>]*>', page(facts))
    assert len(boxes) >= 6
    assert all('tabindex="0"' in box and "aria-label=" in box for box in boxes)


def test_a_bug_of_which_little_is_left_has_a_page_too(database: Database, tmp_path: Path) -> None:
    with database.transaction() as session:
        bug = bugs.record_sighting(session, "o/n", "bare", "bare", NOW, "already broken at base")
        shown = page(collect_bug_facts(session, bug, tmp_path / "nowhere"))
    assert "Its cases are no longer stored." in shown
    assert "No outcome is stored." in shown


def test_why_its_case_was_not_made_small_is_told(database: Database, tmp_path: Path) -> None:
    Corpus(tmp_path / "corpus").add(CASE)
    with database.transaction() as session:
        [bug] = known.find_bugs(session, "sig")
        bug.case_id = ""
        [row] = findings.copies(session, 1)
        row.bug_id, row.case_id = bug.id, CASE.id
        row.reason = f"crash at head; not reduced: no space {HOSTILE}"
        findings.replace(session, 1, [row])
        shown = page(collect_bug_facts(session, bug, tmp_path / "corpus"))
    assert "Not reduced: no space &lt;script&gt;" in shown
    assert "ghp_0123456789" not in shown


def test_it_is_told_to_programs_too(facts: BugFacts) -> None:
    reported = json.loads(json.dumps(as_json(facts)))
    assert (reported["case"], reported["reduced"], reported["seen"]) == (CASE.id, True, 1)
    assert reported["campaigns"] == [
        {"campaign": 1, "head": "a" * 40, "trigger": "push", "classification": "regression", "cases": 1}
    ]
    assert [run["verdict"] for run in reported["runs"]] == ["pass", "wrong_result"]


def numbers(want: list[float | str], got: list[float | str]) -> dict[str, Any]:
    wrong = [mine != reference for mine, reference in zip(got, want, strict=True)]
    return NUMBERS | {"at": list(range(len(want))), "want": want, "got": got, "wrong": wrong}


def test_marks_lie_within_the_picture_and_in_the_order_of_their_numbers() -> None:
    [plot] = plots([numbers([1.0, -2.0, 3.0], [1.0, 5.0, "nan"])])
    assert plot.non_finite
    assert plot.scale == "linear"
    heights = {mark.want: mark.want_y for mark in plot.marks}
    assert heights["3"] < heights["1"] < heights["-2"], "up is more"
    assert plot.marks[2].got_y < heights["3"], "what is no number stands above all"
    assert plot.marks[1].got_y < heights["3"]
    assert all(0 <= mark.got_y <= plot.height and plot.left <= mark.x <= plot.right for mark in plot.marks)
    assert (plot.wrong, plot.error) == (2, "7")


def test_one_huge_number_does_not_flatten_the_others() -> None:
    [plot] = plots([numbers([1.0, 2.0, 1e30], [1.0, 2.5, 1e30])])
    assert plot.scale == "logarithmic"
    assert plot.marks[0].want_y - plot.marks[1].want_y > 0.5
    [one] = plots([numbers([4.0], [4.0])])
    assert one.error == ""


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"kind": "found"}, "Since <b>1.2</b>; 1.1 is the release before it."),
        (
            {"kind": "range", "between": ["1.1.1"], "before": "1.0"},
            "Since <b>1.2</b> at the latest; 1.0 is the last release before it with a result.",
        ),
        (
            {"kind": "unreliable", "doubt": "the words are"},
            "Perhaps since <b>1.2</b>; 1.1 is the release before it. Its failure differs: the words are.",
        ),
        ({"kind": "error", "release": None}, "Inconclusive: error."),
    ],
)
def test_since_when_is_told_as_surely_as_it_is_known(
    facts: BugFacts, answer: dict[str, Any], message: str
) -> None:
    facts.bug.facts = {"bisection": {"since": {"release": "1.2", "before": "1.1", **answer}}}
    assert message in page(facts)
