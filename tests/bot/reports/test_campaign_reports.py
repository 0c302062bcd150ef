"""A campaign's end becomes files, bugs and effects."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from bot.bugs.publication import CampaignPublisher
from bot.campaigns.plan.case_source import SourceReport
from bot.campaigns.plan.ranking import Ranking
from bot.campaigns.provenance import Origin
from bot.campaigns.report.summary import FindingFacts, ProgramText, ReducedFacts, Summary, ToolchainFacts
from bot.campaigns.services import CampaignProblem
from bot.config import RepositoryConfig
from bot.reports.annotations import TouchedCode
from bot.reports.campaign_reports import build_view
from bot.reports.check_runs import CheckRunOptions, build_check_run, headline
from bot.reports.issue import issue_body
from bot.reports.reference_outputs import add_reference_outputs
from bot.reports.report import build_report
from bot.reports.sections import sections, unmuted_regressions
from bot.reports.sticky_comment import draft_comment
from bot.runners.reproducer_run import Ending
from bot.store import Database, bugs, campaigns, outbox
from bot.store.models import Base, BugState, Campaign, Classification, Effect, Side
from bot.store.step_cost import StepCost
from fuzzing.cases import Corpus, EquivalentPair, Tensor, TestCase
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.cases.values import value_to_json
from fuzzing.execute.limits import Limits
from fuzzing.execute.reference_runner import ReferenceRunner
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from fuzzing.triage.traits import Traits
from tests.bot.reports.sample_campaign import case_named

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CRASH = Outcome(
    "", "openvino", "new", "CPU", Verdict.CRASH, Phase.CONVERT, "RuntimeError: no", {"convert": 0.1},
    Evidence("RuntimeError", "no"),
)  # fmt: skip
PASS = dataclasses.replace(CRASH, verdict=Verdict.PASS, toolchain="old", evidence=Evidence())


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(made.engine)
    with made.transaction() as session:
        row = Campaign(
            target="acme/graphs", head="a" * 40, base="b" * 40, trigger="push",
            config=RepositoryConfig(version=1, backend="openvino").to_json(), created_at=NOW, updated_at=NOW,
        )  # fmt: skip
        campaigns.create(session, row)
    yield made
    made.close()


@pytest.fixture
def reports(tmp_path: Path) -> CampaignPublisher:
    return CampaignPublisher(
        tmp_path / "corpus",
        lambda campaign: tmp_path / f"out-{campaign}",
        lambda: NOW,
        lambda campaign: f"https://assay.example/campaigns/{campaign}",
    )


BROKEN_AT_BASE = (Classification.FIXED, Classification.CHANGED, Classification.ALREADY_BROKEN)


def finding(corpus: Path, classification: Classification, operator: str) -> FindingFacts:
    case = case_named(f"test_{operator.lower()}_{classification.value}", operator)
    Corpus(corpus).add(case)
    at_head = classification is not Classification.FIXED
    at_base = classification in BROKEN_AT_BASE
    head, base = (
        dataclasses.replace(CRASH if failed else PASS, case=case.id) for failed in (at_head, at_base)
    )
    return FindingFacts(
        case_id=case.id, origin=Origin("onnx-node-tests", case.provenance.test, operator, 10),
        classification=classification, verdict=Verdict.CRASH, signature=f"{operator}-{classification.value}",
        title=f"[ONNX] {operator}: conversion fails: no", head=head, base=base,
        head_failed=3 * at_head, head_runs=3, base_failed=3 * at_base, base_runs=3, reason="because",
        program=ProgramText(f"the program of {operator}"),
    )  # fmt: skip


def summary(*findings: FindingFacts, planned: int = 12) -> Summary:
    sides = {
        side: ToolchainFacts(
            label[:3], "openvino", "release", label, "/x/python", {"python": "3.11.7", "openvino": "1"},
            ("openvino==1",),
        )
        for side, label in ((Side.HEAD, "openvino 2026.4.1"), (Side.BASE, "openvino 2024.0.0"))
    }  # fmt: skip
    return Summary(
        campaign_id=1, target="acme/graphs", stable_name="acme/graphs",
        head="a" * 40, base="b" * 40, ref="main",
        trigger="push", pull=None, seed=7, config=RepositoryConfig(version=1, backend="openvino").to_json(),
        toolchains=sides, created_at=NOW, planned=planned,
        counts={Side.HEAD: {Verdict.PASS: 10, Verdict.CRASH: 2}},
        operators={"Add": {Side.HEAD: {Verdict.PASS: 10, Verdict.CRASH: 2}}}, findings=findings,
        configuration="optimization=basic", phases={Side.HEAD: {Phase.CONVERT: {Verdict.CRASH: 2}}},
        cached={Side.HEAD: 4}, costs={"running": StepCost(8, 2.0, 3.2, 2, phases={"compile": 3.0})},
        seconds={"running": 2.5}, note="",
            sources=(SourceReport("onnx-node-tests", "onnx 1.23.2", 12, {"needs a network": 3}),),
            ranking=Ranking("opera", seed=7),
    )  # fmt: skip


def publish(
    database: Database, reports: CampaignPublisher, given: Summary
) -> tuple[list[str], dict[str, str]]:
    """Publishes; the kinds of all effects, and signature → why nothing is said of that bug."""
    with database.transaction() as session:
        reports.publish(session, given)
    with database.reading() as session:
        kinds = sorted(effect.kind for effect in outbox.of_campaign(session, 1))
        return kinds, {bug.signature: bug.reason for bug in bugs.of_target(session, "acme/graphs")}


def test_a_pass_that_equals_the_reference_only_at_base_is_shown_and_is_no_bug(
    database: Database, reports: CampaignPublisher, tmp_path: Path
) -> None:
    broken = finding(tmp_path / "corpus", Classification.CHANGED, "ArgMax")
    tie = Mismatch("y", "value", "1 of 4 elements are wrong", worst=(2,), got="1", want="0")
    assert broken.head is not None
    head = dataclasses.replace(
        broken.head, verdict=Verdict.PASS, summary="as good as the library", evidence=Evidence(excused=(tie,))
    )
    found = dataclasses.replace(broken, head=head, base=PASS, verdict=Verdict.PASS, head_failed=0)
    kinds, recorded = publish(database, reports, summary(found))
    assert (kinds, recorded) == (["check_run"], {})
    with database.reading() as session:
        [run] = outbox.of_campaign(session, 1)
    assert run.payload["conclusion"] == "neutral"
    assert run.payload["output"]["title"] == "Nothing new in 12 cases; 1 changed"
    assert "### Changed: 1" in run.payload["output"]["text"]
    assert "| `y` | `value` |" in run.payload["output"]["text"], "the output that differs"


def test_the_files_are_written_and_written_again_alike(reports: CampaignPublisher, tmp_path: Path) -> None:
    given = summary(finding(tmp_path / "corpus", Classification.REGRESSION, "Add"))
    reports.write(given)
    folder = tmp_path / "out-1"
    first = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {"report.md", "report.html", "report.json"} < {str(path) for path in first}
    [reproducer] = [path for path in first if path.suffix == ".py"]
    told = json.loads(first[Path("report.json")])
    assert told["groups"][0]["reproducer"] == str(reproducer)
    assert (told["library"], told["skipped"]) == ("onnx 1.23.2", {"needs a network": 3})
    assert (told["configuration"], told["cached"]) == ("optimization=basic", {"head": 4})
    assert told["phases"] == {"head": {"convert": {"crash": 2}}}
    running = told["work"]["running"]
    assert (running["runs"], running["rate"], running["overhead"]) == (8, 4.0, 1.25)
    reports.write(given)
    assert first == {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_regression_becomes_a_bug_an_issue_and_a_check_run(
    database: Database, reports: CampaignPublisher, tmp_path: Path
) -> None:
    given = summary(finding(tmp_path / "corpus", Classification.REGRESSION, "Add"))
    kinds, known = publish(database, reports, given)
    assert (kinds, list(known)) == (["check_run", "issue"], ["Add-regression"])
    with database.reading() as session:
        (check,) = [one for one in outbox.of_campaign(session, 1) if one.kind == "check_run"]
    assert check.payload["details_url"] == "https://assay.example/campaigns/1"
    assert publish(database, reports, given) == (kinds, known), "twice is once"


def test_what_a_pull_request_broke_becomes_no_issue(
    database: Database, reports: CampaignPublisher, tmp_path: Path
) -> None:
    given = summary(finding(tmp_path / "corpus", Classification.REGRESSION, "Add"))
    kinds, known = publish(database, reports, dataclasses.replace(given, pull=7))
    assert kinds == ["check_run", "sticky"]
    assert known == {"Add-regression": "in a pull request, #7: issues are about watched branches"}
    kinds, _ = publish(database, reports, given)
    assert kinds == ["check_run", "issue", "sticky"], "once a branch has it, it does"


def test_a_pull_request_does_not_revive_what_is_closed(
    database: Database, reports: CampaignPublisher, tmp_path: Path
) -> None:
    given = summary(finding(tmp_path / "corpus", Classification.REGRESSION, "Add"))
    publish(database, reports, given)
    with database.transaction() as session:
        [bug] = bugs.of_target(session, "acme/graphs")
        bug.state = BugState.CLOSED.value
    publish(database, reports, dataclasses.replace(given, pull=7))
    with database.reading() as session:
        [bug] = bugs.of_target(session, "acme/graphs")
    assert (bug.state, bug.seen) == ("closed", 1)


@pytest.mark.parametrize(
    ("classification", "known"),
    [
        (Classification.CHANGED, True),
        (Classification.ALREADY_BROKEN, True),
        (Classification.FLAKY, False),
        (Classification.FIXED, False),
        (Classification.INCONCLUSIVE, False),
        (Classification.SUPPORT_LOST, False),
    ],
)
def test_nothing_else_becomes_an_issue(
    classification: Classification,
    known: bool,
    database: Database,
    reports: CampaignPublisher,
    tmp_path: Path,
) -> None:
    kinds, found = publish(database, reports, summary(finding(tmp_path / "corpus", classification, "Add")))
    assert kinds == ["check_run"]
    assert bool(found) == known
    assert all(found.values()), "every silence records its reason"


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("configuration", "correct the error above in this repository, then push again"),
        ("refusal", "an administrator of this repository grants the permission above"),
        ("infrastructure", "this is an infrastructure failure: re-run\nthis check"),
    ],
)
def test_a_campaign_that_could_not_test_says_what_to_fix_and_who_can(
    kind: str, advice: str, database: Database, reports: CampaignPublisher
) -> None:
    problem = CampaignProblem(1, "acme/graphs", "a" * 40, "main", "push", kind, "line 3: no such backend")
    for _ in range(2):
        with database.transaction() as session:
            reports.publish_problem(session, problem)
    with database.reading() as session:
        [effect] = outbox.of_campaign(session, 1)
    assert effect.kind == "check_run"
    assert effect.payload["conclusion"] == "neutral"
    assert "line 3: no such backend" in json.dumps(effect.payload)
    assert advice in str(effect.payload["output"]["summary"])


@pytest.mark.parametrize("mode", ["dry-run", "held"])
def test_the_configuration_before_says_where_a_broken_one_is_shown(
    mode: str, database: Database, reports: CampaignPublisher
) -> None:
    problem = CampaignProblem(2, "acme/graphs", "b" * 40, "main", "push", "configuration", "line 3: no")
    config = RepositoryConfig.model_validate({"version": 1, "backend": "openvino", "reports": {"mode": mode}})
    with database.transaction() as session:
        campaigns.get(session, 1).config = config.to_json()
        row = Campaign(
            id=2, target="acme/graphs", head="b" * 40, trigger="push", created_at=NOW, updated_at=NOW
        )
        campaigns.create(session, row)
        reports.publish_problem(session, problem)
    with database.transaction() as session:
        claimed = outbox.claim(session, NOW, timedelta(minutes=1), live=True)
    assert claimed is not None
    assert claimed.dry_run == (mode == "dry-run")


def test_the_view_says_the_same_as_the_summary(tmp_path: Path) -> None:
    given = summary(finding(tmp_path / "corpus", Classification.REGRESSION, "Add"))
    view = build_view(given)
    assert (view.planned, view.stopped, view.seed, view.backend, view.device) == (
        12,
        "",
        7,
        "openvino",
        "CPU",
    )
    assert sum(count.cases for count in view.counts) == 12
    assert view.head_toolchain is not None
    assert (view.head_toolchain.python, dict(view.head_toolchain.versions)) == ("3.11.7", {"openvino": "1"})
    [shown] = view.findings
    assert (shown.head_runs.failed, shown.base_runs.failed, shown.reason) == (3, 0, "because")


def test_what_did_not_run_is_not_said_to_have_passed() -> None:
    view = build_view(summary(planned=100))
    assert (view.stopped, sum(count.cases for count in view.counts)) == ("budget", 12)


def test_without_toolchains_the_configuration_names_the_backend() -> None:
    view = build_view(dataclasses.replace(summary(), toolchains={}, counts={}, operators={}))
    assert (view.backend, view.head_toolchain, view.base_toolchain) == ("openvino", None, None)


SMALL = case_named("test_small (reduced)", "Add")


def reduced(corpus: Path, one: FindingFacts) -> FindingFacts:
    """The finding with a case that a reduction left."""
    Corpus(corpus).add(SMALL)
    head, base = (dataclasses.replace(made, case=SMALL.id) for made in (CRASH, PASS))
    facts = ReducedFacts(
        case_id=SMALL.id, size=5, head=head, base=base, head_failed=3, head_runs=3, base_failed=0,
        base_runs=3, traits=Traits("Add", ("float",), ("rank 1",), ("Add",)), fields={"operator": "Add"},
        history={"words": ["operators"], "before": [50], "after": [2], "runs": 40, "replayed": 4},
        program=ProgramText("the small program"),
    )  # fmt: skip
    return dataclasses.replace(one, reduced=facts)


def test_the_issue_shows_the_reduced_case(
    database: Database, reports: CampaignPublisher, tmp_path: Path
) -> None:
    found = reduced(tmp_path / "corpus", finding(tmp_path / "corpus", Classification.REGRESSION, "Add"))
    publish(database, reports, dataclasses.replace(summary(found), tried={SMALL.id: 1}))
    with database.reading() as session:
        [issue] = [one for one in outbox.of_campaign(session, 1) if one.kind == "issue"]
        [bug] = bugs.of_target(session, "acme/graphs")
    body = issue.payload["body"]
    assert "the small program" in body
    assert "the program of Add" not in body
    assert "Reduced by Assay: 50 → 2 operators in 44 runs." in body
    assert "It exited with 1 at head before this was written" in body
    assert "reduced by Assay" in body
    assert (bug.case_id, bug.backend, bug.device) == (SMALL.id, "openvino", "CPU")
    assert (bug.traits["needs"], bug.facts["signature"], bug.seen) == (["rank 1"], {"operator": "Add"}, 1)


def test_reproducers_are_tried_the_reduced_one_first(reports: CampaignPublisher, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    found = reduced(corpus, finding(corpus, Classification.REGRESSION, "Add"))
    given = summary(found, finding(corpus, Classification.ALREADY_BROKEN, "Mul"))
    [[first, second]] = reports.scripts(given)
    assert (first.case, second.case) == (SMALL.id, found.case_id)
    assert first.text != second.text
    assert "made the program small" in first.text


def test_what_did_not_show_the_bug_when_tried_is_not_offered(
    reports: CampaignPublisher, tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus"
    found = reduced(corpus, finding(corpus, Classification.REGRESSION, "Add"))
    given = summary(found)
    tried = {SMALL.id: 2}
    assert script_offered(reports, dataclasses.replace(given, tried=tried | {found.case_id: 1})) == (
        found.case_id,
        1,
    )
    assert script_offered(reports, dataclasses.replace(given, tried=tried | {found.case_id: 0})) == (None, 0)
    assert script_offered(reports, given) == (SMALL.id, None), "nothing was tried"


def test_a_pair_has_a_short_script_alone(reports: CampaignPublisher, tmp_path: Path) -> None:
    """It exits with 1 and prints no marker, so it is judged by how it ends."""
    left, right = (TorchProgram(f"import torch\n\n\ndef forward(x):\n    return x + {n}\n") for n in (1, 2))
    program = EquivalentPair(left, right, rule="made-up")
    pair = TestCase(program, (("x", Tensor.of(np.ones(2))),), SMALL.provenance)
    Corpus(tmp_path / "corpus").add(pair)
    found = finding(tmp_path / "corpus", Classification.REGRESSION, "Add")
    head = dataclasses.replace(
        CRASH, case=pair.id, backend="inductor", evidence=Evidence("KeyError", "'gone'")
    )
    given = summary(dataclasses.replace(found, case_id=pair.id, head=head))
    [[script]] = reports.scripts(given)
    assert (script.text, script.ending) == ("", Ending("KeyError", ("gone",)))
    assert "def right(x):" in script.short
    assert script_offered(reports, dataclasses.replace(given, tried={pair.id: 1})) == (pair.id, 1)
    assert script_offered(reports, dataclasses.replace(given, tried={pair.id: 125})) == (None, 125)


@pytest.mark.parametrize("verdict", [Verdict.WRONG_RESULT, Verdict.CRASH])
def test_the_issue_of_a_pair_says_that_its_programs_are_equal(verdict: Verdict, tmp_path: Path) -> None:
    left, right = (TorchProgram(f"import torch\n\n\ndef forward(x):\n    return x + {n}\n") for n in (1, 2))
    program = EquivalentPair(left, right, rule="made-up")
    pair = TestCase(program, (("x", Tensor.of(np.ones(2))),), SMALL.provenance)
    Corpus(tmp_path / "corpus").add(pair)
    found = finding(tmp_path / "corpus", Classification.REGRESSION, "Add")
    mismatch = Mismatch("0", "value", "2 of 2", worst=(1,), got="3.0", want="2.0", atol=1e-5, judged="right")
    evidence = {
        Verdict.WRONG_RESULT: Evidence(mismatches=(mismatch,)),
        Verdict.CRASH: Evidence("OneSidedError", "only the right program fails, in run: KeyError: 'gone'"),
    }[verdict]
    head = dataclasses.replace(CRASH, case=pair.id, backend="inductor", verdict=verdict, evidence=evidence)
    given = summary(dataclasses.replace(found, case_id=pair.id, head=head))
    report = build_report(build_view(given), Corpus(tmp_path / "corpus").get)
    [group] = report.groups
    body = issue_body(report, group)
    shown, _, rest = body.partition("**Expected:** ")
    assert "```python\n# pip install" in shown
    assert "It exits with 1" not in body
    if verdict is Verdict.CRASH:
        assert "raises `KeyError` for one of two equal programs" in shown
        assert rest.startswith("Both programs run")
        assert "OneSidedError" not in rest.partition("<details>")[0]
    else:
        assert "gives different results for two equal programs" in shown
        assert rest.startswith("`0[1]` is `2.0`, as the left program gives it.")


def script_offered(reports: CampaignPublisher, given: Summary) -> tuple[str | None, int | None]:
    """The case whose script the report offers, None if it tells how to replay it; the exit code."""
    reports.write(given)
    folder = reports._folder(1)
    [group] = json.loads((folder / "report.json").read_text())["groups"]
    offered_ = group["example"]["case"] if group["reproducer"].endswith(".py") else None
    return offered_, group["tried"]


def test_cases_met_on_the_way_are_not_counted_among_those_that_ran(tmp_path: Path) -> None:
    one = finding(tmp_path / "corpus", Classification.REGRESSION, "Add")
    other = dataclasses.replace(
        finding(tmp_path / "corpus", Classification.REGRESSION, "Mul"), found_by_reduction=True
    )
    report = build_report(build_view(summary(one, other)))
    assert report.headline == (
        "2 new bugs: 1 of 12 cases fails at head and passed at base; 1 more found during reduction"
    )
    alone = build_report(build_view(summary(other)))
    assert alone.headline == "1 new bug, found while reducing other cases; 12 cases ran"


@pytest.mark.parametrize(("muted", "bugs", "cases"), [((), 2, 3), (("Mul",), 1, 2)])
def test_all_that_is_told_counts_alike(tmp_path: Path, muted: tuple[str, ...], bugs: int, cases: int) -> None:
    """Two cases that ran, one of them with a second, and a third bug that was met: title, text and tiles."""
    found = [finding(tmp_path / "corpus", Classification.REGRESSION, name) for name in ("Add", "Abs")]
    found[1] = dataclasses.replace(found[1], signature=found[0].signature)
    other = dataclasses.replace(
        finding(tmp_path / "corpus", Classification.REGRESSION, "Mul"), found_by_reduction=True
    )
    report = build_report(build_view(dataclasses.replace(summary(*found, other), pull=3)))
    output = build_check_run(report, CheckRunOptions(muted=list(muted)))["output"]
    assert output["title"].startswith(f"{bugs} new bug{'s' * (bugs > 1)}: 2 of 12 cases fail")
    assert output["summary"].startswith(
        f"**{cases} cases fail at head and pass at base**, {bugs} distinct failure"
    )
    [new] = [one for one in sections(report, muted) if one.name == "new"]
    assert (new.count, len(new.groups)) == (cases, bugs)
    said = draft_comment(
        report, unmuted_regressions(report, muted), [], TouchedCode(()), "", headline(report, muted)
    )
    assert f"breaks {cases} cases that pass without it**, {bugs} distinct failure" in str(
        said.payload["body"]
    )


def test_what_was_met_on_the_way_and_not_made_small_becomes_no_issue(
    database: Database, reports: CampaignPublisher, tmp_path: Path
) -> None:
    one = dataclasses.replace(
        finding(tmp_path / "corpus", Classification.REGRESSION, "Mul"), found_by_reduction=True
    )
    kinds, known = publish(database, reports, summary(one))
    assert kinds == ["check_run"]
    why = "found while reducing another case, and not reduced itself; shown in the report"
    assert known == {"Mul-regression": why}


def test_what_was_met_on_the_way_and_made_small_goes_through_the_same_doors(
    database: Database, reports: CampaignPublisher, tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus"
    one = dataclasses.replace(
        reduced(corpus, finding(corpus, Classification.REGRESSION, "Add")), found_by_reduction=True
    )
    kinds, _ = publish(database, reports, summary(one))
    assert kinds == ["check_run", "issue"]
    with database.reading() as session:
        issue = session.query(Effect).filter(Effect.kind == "issue").one()
        assert "Found while a case of that test was reduced" in str(issue.payload["body"])


def test_a_reproducer_carries_what_the_library_gave(tmp_path: Path) -> None:
    bare = dataclasses.replace(case_named("t", "Add"), expected=None)
    outputs = Tensor.of(np.array([1.5, 2.5], np.float32))
    assert add_reference_outputs(bare, tmp_path) == bare, "nothing is known of it"
    library = ReferenceRunner("OnnxModel", tmp_path, sys.executable, Limits())
    library.store(bare, {"outputs": [["y", value_to_json(outputs)]]})
    assert add_reference_outputs(bare, tmp_path).expected == (("y", outputs),)
    library.store(bare, {"error": "fails"})
    assert add_reference_outputs(bare, tmp_path) == bare
    long = Tensor.of(np.zeros(1 << 15, np.float32))
    library.store(bare, {"outputs": [["y", value_to_json(long)]]})
    assert add_reference_outputs(bare, tmp_path) == bare, "a script is to be read"
