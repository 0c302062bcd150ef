"""What a pull request is told: its check run, the lines of its diff, and the one comment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bot.bugs.publication import record_comment
from bot.config import RepositoryConfig
from bot.reports import check_runs, progress_check, pull
from bot.reports.annotations import MAX_TITLE, TouchedCode, build_annotations
from bot.reports.check_runs import CheckRunOptions, build_check_run, conclusion
from bot.reports.progress_check import CampaignProgress, FailingCase, TouchedOperator
from bot.reports.report import Report, build_report
from bot.reports.sticky_comment import PreviousFinding, comment_key, draft_comment, rerun_command
from bot.store import Database, audit, campaigns, mutes, outbox, outcomes
from bot.store.models import Base, Campaign, CampaignState, Classification, Effect, Pull, Side, Toolchain
from fuzzing.outcomes import Outcome, Phase, Verdict
from tests.bot.reports import sample_campaign
from tests.bot.reports.test_renderer import check_golden

NOW = datetime(2026, 11, 20, 9, 35, tzinfo=UTC)
NUMBER = 7
TOUCHED: tuple[dict[str, Any], ...] = (
    {
        "operator": "AffineGrid",
        "weight": 1.0,
        "why": "src/op/affine_grid.cpp, line 41: AffineGrid's converter affine_grid was changed",
        "places": [
            {"path": "tests/test_affine_grid.py", "line": 3, "role": "test"},
            {"path": "src/op/affine_grid.cpp", "line": 41, "role": "converter"},
        ],
    },
    {"pass": "GraphOptimiserLevelBasic", "places": [{"path": "src/pass.cpp", "line": 9, "role": "pass"}]},
)


def of_pull(*findings: Any, **changes: Any) -> Report:
    """The sample's report, as a pull request's."""
    ranking = replace(sample_campaign.RANKING, touched=TOUCHED)
    view = replace(
        sample_campaign.view(), trigger=f"pull_request:{NUMBER}", pull=NUMBER, ranking=ranking, **changes
    )
    if findings:
        view = replace(view, findings=list(findings))
    return build_report(view, sample_campaign.made_cases.__getitem__, sample_campaign.describe)


@pytest.fixture(scope="module")
def report() -> Report:
    return of_pull()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(made.engine)
    yield made
    made.close()


def config(**changes: Any) -> RepositoryConfig:
    fields = {"version": 1, "backend": "openvino", "reports": {"mode": "auto"}}
    return RepositoryConfig.model_validate(fields | {"pull_requests": changes})


class PullRequestFixture:
    """A pull request over several campaigns, one at each head."""

    def __init__(self, database: Database) -> None:
        self.database, self.at = database, NOW

    def finish_campaign(self, report: Report, passing: Sequence[str] = (), **settings: Any) -> list[str]:
        """A campaign ends with this report, whose head passes these cases; the kinds of effects posted."""
        self.at += timedelta(hours=1)
        with self.database.transaction() as session:
            row, _ = campaigns.create(session, self._campaign(report))
            toolchain = Toolchain(
                digest="ab" * 32, backend="openvino", provisioner="release", label="openvino", python="/x",
                versions={}, requirements=[], created_at=self.at,
            )  # fmt: skip
            campaigns.set_toolchain(session, row, Side.HEAD, toolchain)
            found = (
                Outcome(case, "openvino", "ab" * 32, "CPU", Verdict.PASS, Phase.RUN, "", {})
                for case in passing
            )
            outcomes.record(session, found, self.at)
            report = replace(report, view=replace(report.view, campaign=row.id))
            check, comment = pull.draft_effects(session, report, config(**settings), self.at)
            record_comment(session, report, comment, self.at)
            drafts = [check, *([comment.draft] if comment.draft else [])]
            outbox.post(session, drafts, campaign_id=row.id, issues_per_day=9, at=self.at)
            return [draft.kind for draft in drafts]

    def _campaign(self, report: Report) -> Campaign:
        return Campaign(
            target=sample_campaign.TARGET, head=report.view.head, base=sample_campaign.BASE,
            trigger=report.view.trigger, pull=NUMBER, config=config().to_json(), created_at=self.at,
            updated_at=self.at,
        )  # fmt: skip

    def comments(self) -> list[Effect]:
        with self.database.reading() as session:
            return session.query(Effect).where(Effect.kind == "sticky").all()

    @property
    def text(self) -> str:
        (comment,) = self.comments()
        return str(comment.payload["body"])

    def skip_reasons(self) -> list[str]:
        with self.database.reading() as session:
            audit_events = audit.of(session, sample_campaign.TARGET, f"pull:{NUMBER}")
            return [act.reason for act in audit_events if act.action == "silent"]


def at_head(number: int, *findings: Any) -> Report:
    """A later head of the pull request, with these findings alone."""
    view = replace(
        sample_campaign.view(), pull=NUMBER, trigger=f"pull_request:{NUMBER}", head=f"{number:040x}"
    )
    return build_report(
        replace(view, findings=list(findings)),
        sample_campaign.made_cases.__getitem__,
        sample_campaign.describe,
    )


def only(classification: Classification) -> Any:
    """The first finding of the sample that is new, with another classification."""
    return replace(
        next(one for one in sample_campaign.findings() if one.classification is Classification.REGRESSION),
        classification=classification,
    )


# The check run


def test_the_check_run_of_a_pull_request(report: Report) -> None:
    changed_lines = build_annotations(
        report.with_classification(Classification.REGRESSION),
        TouchedCode(TOUCHED),
        partial(rerun_command, report),
        gate=False,
    )
    run = build_check_run(
        report, CheckRunOptions("https://assay.example/campaigns/12", False, (), NUMBER, changed_lines)
    )
    check_golden("check_run_pull.json", json.dumps(run, indent=1, ensure_ascii=False) + "\n")
    check_golden("check_run_pull.md", f"{run['output']['summary']}\n{run['output']['text']}")


def test_the_four_sections_are_always_there(report: Report) -> None:
    text = build_check_run(of_pull(only(Classification.FIXED)), CheckRunOptions(pull=NUMBER))["output"][
        "text"
    ]
    titles = [line for line in text.split("\n") if line.startswith("### ")]
    assert titles == [
        "### New here: 0",
        "### Already broken at base: 0",
        "### Fixed by this pull request: 1",
        "### Inconclusive: 0",
    ]


@pytest.mark.parametrize(
    ("classification", "gate", "muted", "expected"),
    [
        (Classification.REGRESSION, False, (), "neutral"),
        (Classification.REGRESSION, True, (), "failure"),
        (Classification.REGRESSION, True, ("Affine*",), "success"),
        (Classification.REGRESSION, True, ("Split",), "failure"),
        (Classification.CHANGED, True, (), "neutral"),
        (Classification.ALREADY_BROKEN, True, (), "success"),
        (Classification.FIXED, True, (), "success"),
        (Classification.FLAKY, True, (), "neutral"),
        (Classification.INCONCLUSIVE, True, (), "neutral"),
    ],
)
def test_the_conclusion(
    classification: Classification, gate: bool, muted: tuple[str, ...], expected: str
) -> None:
    assert (
        conclusion(of_pull(only(classification)), CheckRunOptions(gate=gate, muted=muted, pull=NUMBER))
        == expected
    )


def test_a_check_run_that_ran_nothing_is_no_success() -> None:
    assert conclusion(of_pull(only(Classification.FIXED), counts=[]), CheckRunOptions(gate=True)) == "neutral"


def test_what_is_muted_is_shown_apart_and_is_no_news() -> None:
    run = build_check_run(
        of_pull(only(Classification.REGRESSION)), CheckRunOptions(muted=["AffineGrid"], pull=NUMBER)
    )
    assert run["output"]["title"].endswith("but muted failures")
    assert "### New here: 0" in run["output"]["text"]
    assert "### Muted: 1" in run["output"]["text"]
    assert [one["identifier"] for one in run["actions"]] == ["rerun"]


def test_the_scripts_are_in_the_check_run_for_nothing_else_on_github_has_them(report: Report) -> None:
    text = build_check_run(report, CheckRunOptions(pull=NUMBER))["output"]["text"]
    for group in report.with_classification(Classification.REGRESSION):
        assert group.script.strip() in text
        assert f"<summary>{group.filename}" in text
    for group in report.with_classification(Classification.ALREADY_BROKEN):
        assert group.script.strip() not in text
    assert "import numpy" not in build_check_run(report)["output"]["text"]


def test_buttons_are_offered_where_they_do_something(report: Report) -> None:
    run = build_check_run(report, CheckRunOptions(pull=NUMBER))
    assert [one["identifier"] for one in run["actions"]] == ["rerun", "reduce", "mute"]
    assert "actions" not in build_check_run(report), "nobody looks at a branch's check run for long"


# The lines of the diff


def test_a_finding_is_told_beside_the_line_that_serves_its_operator(report: Report) -> None:
    changed_lines = build_annotations(
        report.with_classification(Classification.REGRESSION), TouchedCode(TOUCHED), lambda _: "", gate=True
    )
    assert [(one["path"], one["start_line"], one["annotation_level"]) for one in changed_lines] == [
        ("src/op/affine_grid.cpp", 41, "failure"),
        ("src/pass.cpp", 9, "failure"),
    ], "a test's line is no place for it, a blamed pass is, and Loop is served by nothing here"
    assert "at head only: 3 of 3 runs at head, 0 of 3 at base" in changed_lines[0]["message"]


@pytest.mark.parametrize("path", ["a\nb.cpp", "a\ufffdb.cpp", "x" * 1001, "a\u202eb.cpp"])
def test_a_file_whose_name_cannot_be_written_gets_no_annotation(report: Report, path: str) -> None:
    touched = [{"operator": "AffineGrid", "places": [{"path": path, "line": 1, "role": "converter"}]}]
    assert (
        build_annotations(
            report.with_classification(Classification.REGRESSION),
            TouchedCode(touched),
            lambda _: "",
            gate=True,
        )
        == []
    )


def test_a_change_that_touches_nothing_has_no_annotation(report: Report) -> None:
    assert (
        build_annotations(
            report.with_classification(Classification.REGRESSION), TouchedCode(()), lambda _: "", gate=True
        )
        == []
    )


def test_a_hostile_title_mentions_nobody_beside_a_line() -> None:
    hostile = replace(
        only(Classification.REGRESSION),
        title="@octocat see https://evil.example/#1 ghp_0123456789abcdefghijABCDEFGHIJ012345",
    )
    (changed_line,) = build_annotations(
        of_pull(hostile).with_classification(Classification.REGRESSION),
        TouchedCode(TOUCHED),
        lambda _: "",
        gate=False,
    )
    assert "@octocat" not in changed_line["title"]
    assert "://" not in changed_line["title"]
    assert "ghp_" not in changed_line["title"]
    assert len(changed_line["title"]) <= MAX_TITLE


# The comment


def test_the_comment(report: Report) -> None:
    previous = [PreviousFinding("openvino convert crash: Resize axes", "passes at 4f1c2a9be07d")]
    groups = report.with_classification(Classification.REGRESSION)
    draft = draft_comment(
        report, groups, previous, TouchedCode(TOUCHED), "https://github.com/acme/graphs/runs/5"
    )
    assert (draft.number, draft.editable) == (NUMBER, True)
    check_golden("pull_request_comment.md", draft.payload["body"])


def test_the_comment_once_nothing_is_left(report: Report) -> None:
    quiet = of_pull(only(Classification.FIXED))
    previous = [PreviousFinding("openvino convert crash: Split", "passes at 4f1c2a9be07d", True)]
    check_golden(
        "pull_request_comment_fixed.md",
        draft_comment(quiet, [], previous, TouchedCode(()), "").payload["body"],
    )


def test_nothing_new_is_silence_with_a_reason(database: Database) -> None:
    pull_request = PullRequestFixture(database)
    assert pull_request.finish_campaign(of_pull(only(Classification.ALREADY_BROKEN))) == ["check_run"]
    (reason,) = pull_request.skip_reasons()
    assert reason.startswith("nothing new in ")


def test_who_wants_no_comments_gets_none(database: Database) -> None:
    pull_request = PullRequestFixture(database)
    assert pull_request.finish_campaign(of_pull(), comment=False) == ["check_run"]
    assert pull_request.skip_reasons() == ["pull_requests.comment is off; shown in the check run"]


def test_muted_findings_are_no_reason_for_a_comment(database: Database) -> None:
    pull_request = PullRequestFixture(database)
    with database.transaction() as session:
        mutes.add(session, sample_campaign.TARGET, "Affine*", NOW + timedelta(days=9), "jane", "", NOW)
    assert pull_request.finish_campaign(of_pull(only(Classification.REGRESSION))) == ["check_run"]
    assert "but muted failures" in pull_request.skip_reasons()[0]


def test_one_comment_is_edited_until_what_it_told_of_passes(database: Database) -> None:
    pull_request, broken = PullRequestFixture(database), only(Classification.REGRESSION)
    assert pull_request.finish_campaign(at_head(1, broken)) == ["check_run", "sticky"]
    assert "breaks 1 case" in pull_request.text
    assert pull_request.finish_campaign(at_head(2, only(Classification.FIXED)), passing=[broken.case]) == [
        "check_run",
        "sticky",
    ]
    assert "What this pull request broke passes again" in pull_request.text
    assert f"passes at {2:040x}"[:22] in pull_request.text
    assert pull_request.finish_campaign(at_head(3, broken)) == ["check_run", "sticky"]
    assert "breaks 1 case" in pull_request.text
    assert [comment.key for comment in pull_request.comments()] == [
        comment_key(sample_campaign.TARGET, NUMBER)
    ]
    assert pull_request.comments()[0].revision == 3
    assert pull_request.skip_reasons() == []


@pytest.mark.parametrize(
    ("classification", "said"),
    [
        (None, "was not run at"),
        (Classification.CHANGED, "now fails at base too, in another way"),
        (Classification.ALREADY_BROKEN, "now fails at base too"),
        (Classification.FLAKY, "no longer fails every time"),
        (Classification.INCONCLUSIVE, "result inconclusive"),
        (Classification.FLAKY_PROGRAM, "result inconclusive"),
        (Classification.INFRASTRUCTURE, "result inconclusive"),
        (Classification.SUPPORT_LOST, "is now unsupported"),
    ],
)
def test_it_never_says_mended_of_what_was_not_seen_to_pass(
    database: Database, classification: Classification | None, said: str
) -> None:
    pull_request = PullRequestFixture(database)
    pull_request.finish_campaign(at_head(1, only(Classification.REGRESSION)))
    other = next(one for one in sample_campaign.findings() if one.classification is Classification.FIXED)
    pull_request.finish_campaign(at_head(2, other if classification is None else only(classification)))
    assert said in pull_request.text
    assert "Previously reported:" in pull_request.text
    assert "passes" not in pull_request.text


def test_the_comment_links_its_check_run_once_that_is_out(database: Database) -> None:
    pull_request, broken = PullRequestFixture(database), only(Classification.REGRESSION)
    pull_request.finish_campaign(at_head(1, broken))
    assert "check run `assay` of this commit" in pull_request.text
    with database.transaction() as session:
        for effect in session.query(Effect).where(Effect.kind == "check_run"):
            effect.url = "https://github.com/acme/graphs/runs/5"
    report = at_head(1, broken)
    with database.transaction() as session:
        again = replace(report, view=replace(report.view, campaign=1))
        comment = pull.draft_effects(session, again, config(), NOW)[1].draft
    assert comment is not None
    assert "](https://github.com/acme/graphs/runs/5)" in comment.payload["body"]


def test_a_comment_stays_below_githubs_limit_whatever_was_found() -> None:
    one = only(Classification.REGRESSION)
    many: list[Any] = [replace(one, signature=f"{n:016x}", title=f"{n} {'@`|[' * 60}") for n in range(3000)]
    report = of_pull(*many)
    previous = [PreviousFinding("x" * 5000, "y" * 100)] * 3000
    draft = draft_comment(
        report, report.with_classification(Classification.REGRESSION), previous, TouchedCode(()), ""
    )
    assert len(draft.payload["body"]) <= 60_000
    assert len(build_check_run(report, CheckRunOptions(pull=NUMBER))["output"]["text"]) <= 60_000
    assert "@`" not in draft.payload["body"].replace("`assay", "")


# What a pull request is told before there is anything to tell


def test_the_check_run_of_a_head_that_waits() -> None:
    row = Pull(
        target=sample_campaign.TARGET, number=NUMBER,
        head=sample_campaign.HEAD, base=sample_campaign.BASE, base_ref="main",
        head_repository="mallory/graphs", author="mallory", association="NONE", updated_at=NOW,
    )  # fmt: skip
    draft = pull.draft_awaiting_approval(
        sample_campaign.TARGET, row, "it comes from the fork mallory/graphs, and nobody has released it"
    )
    check_golden(
        "check_awaiting_approval.md",
        f"{draft.payload['output']['title']}\n\n{draft.payload['output']['summary']}",
    )
    row.base_ref = "`@octocat` <img src=x> --> ```"
    text = pull.draft_awaiting_approval(sample_campaign.TARGET, row, "x @octocat <script>").payload["output"][
        "summary"
    ]
    assert draft.payload["conclusion"] == "neutral"
    assert "x @octocat" not in text
    assert "<script>" not in text


def test_the_check_run_of_a_campaign_at_work() -> None:
    seen = CampaignProgress(
        campaign=12, target=sample_campaign.TARGET, stable_name=sample_campaign.TARGET, pull=NUMBER,
        head=sample_campaign.HEAD, base=sample_campaign.BASE, state=CampaignState.RUNNING, started_at=NOW,
        planned=1884, done=420, compared=3, counts={Verdict.PASS: 400, Verdict.CRASH: 12, Verdict.UNSUPPORTED:
        8}, failures=12, failing=[FailingCase("test_split | x", "Split", "RuntimeError: no `axis` @octocat",
        ""),
                 FailingCase("test_mod", "", "dies of SIGSEGV", "pass")],
        ranking=sample_campaign.RANKING,
        touched=[TouchedOperator("Split", "src/op/split.cpp, lines 5-9: split was changed")],
        remaining_s=95.0, budget_s=240.0,
        toolchains=[("head", "openvino 2026.4.1"), ("base", "openvino 2024.0.0")],
    )  # fmt: skip
    payload = progress_check.draft_check_run(seen).payload
    assert (payload["status"], payload.get("conclusion")) == ("in_progress", None)
    check_golden("check_progress.md", f"{payload['output']['title']}\n\n{payload['output']['summary']}")
    assert (
        check_runs.check_run_key(sample_campaign.TARGET, sample_campaign.HEAD, 12) == payload["external_id"]
    )
