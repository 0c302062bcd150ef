"""What people read, compared with golden files; `ASSAY_GOLDEN=write` makes them anew."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bot.campaigns.classify.classification import NO_BASE
from bot.campaigns.report.summary import ProgramText
from bot.github.limits import BODY_BUDGET, MAX_BODY, MAX_OUTPUT, MAX_TITLE, marker
from bot.reports import check_runs, issue, plan_summary, renderer
from bot.reports.campaign_view import FindingView, Tally
from bot.reports.report import Report, build_report
from bot.reports.sections import sections
from bot.store.models import Classification, Side
from fuzzing.outcomes import Evidence, Verdict
from tests.bot.reports import sample_campaign

GOLDEN = Path(__file__).parents[2] / "golden" / "reports"


@pytest.fixture(scope="module")
def report() -> Report:
    return sample_campaign.report()


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("ASSAY_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"{path} differs; ASSAY_GOLDEN=write makes it anew"


def test_report_md(report: Report) -> None:
    check_golden("report.md", renderer.markdown(report))


def test_report_html(report: Report) -> None:
    check_golden("report.html", renderer.html(report))


@pytest.mark.parametrize("at", [0, 1, 2])
def test_issues(report: Report, at: int) -> None:
    group = report.with_classification(Classification.REGRESSION)[at]
    check_golden(f"issue-{at}.md", f"{issue.issue_title(group)}\n\n{issue.issue_body(report, group)}")


def test_check_run(report: Report) -> None:
    check_golden(
        "check_run.json", json.dumps(check_runs.build_check_run(report), indent=1, ensure_ascii=False) + "\n"
    )


def test_json_tells_the_sources_and_the_order(report: Report) -> None:
    reported = renderer.as_json(report)
    assert [(one["source"], one["cases"], one["whole"], one["parts"]) for one in reported["sources"]] == [
        ("onnx-node-tests", 778, 1, 1),
        ("torch-opinfo", 100, 12, 16),
        ("keras-tests", 0, 0, 1),
    ]
    assert reported["ranking"] == sample_campaign.RANKING.to_json()
    assert json.loads(json.dumps(reported["ranking"])) == reported["ranking"]


def test_the_order_in_words() -> None:
    def reported(**fields: Any) -> str:
        return plan_summary.describe_ranking(replace(sample_campaign.RANKING, **fields))

    assert reported() == (
        "Cases ordered by strategy change, using 3 changed files (truncated); the "
        "history of 878 cases; the compiler's own tests (openvino.onnx)."
    )
    nothing: dict[str, Any] = {"change": None, "history": None, "suites": ()}
    assert reported(strategy="opera", **nothing) == "Cases ordered by strategy opera."
    assert "in the order of their sources because ranking failed: no disk" in reported(failed="no disk")
    assert plan_summary.describe_ranking(None) == ""


def test_what_a_source_still_lacks() -> None:
    states = [plan_summary.describe_source_state(account) for account in sample_campaign.SOURCES]
    assert states[0] == ""
    assert states[1] == "collected 12 of 16 parts, 1 more started; the next run continues"
    assert states[2].startswith("failed: keras-tests needs keras")


def test_without_a_base_a_failure_is_just_a_failure(report: Report) -> None:
    [example] = [
        group.example
        for group in report.with_classification(Classification.INCONCLUSIVE, Classification.FLAKY)
    ][:1]
    alone = replace(report.view, base="", base_toolchain=None, counts=report.view.counts)
    found = build_report(
        replace(
            alone,
            findings=[replace(example, classification=Classification.INCONCLUSIVE, reason=NO_BASE)],
        )
    )
    reported = renderer.as_json(found)
    assert reported["sections"] == {"failing": 1, "flaky": 0}
    assert re.fullmatch(r"1 kind of failure: 1 of [0-9,]+ cases fail", reported["headline"])
    shown = renderer.markdown(found).partition("### Failing: 1")[2].partition("###")[0]
    assert ("| test | operator | failed | case |\n" in shown, "base failed" in shown) == (True, False)
    assert "### Failing: 1" in check_runs.build_check_run(found)["output"]["text"]


def test_lost_support_is_told_and_not_filed(report: Report) -> None:
    [example] = [group.example for group in report.with_classification(Classification.REGRESSION)][:1]
    view = replace(report.view, findings=[replace(example, classification=Classification.SUPPORT_LOST)])
    found = build_report(view)
    assert renderer.as_json(found)["sections"]["support_lost"] == 1
    assert "No longer supported" in renderer.markdown(found)
    assert [draft.kind for draft in renderer.draft_effects(found, sample_campaign.config("auto"))] == [
        "check_run"
    ]


def test_untested_check_run_says_nothing_about_the_compiler() -> None:
    reason = "cannot install openvino==1.2.3: no such release; pin one that exists in requirements.txt"
    draft = check_runs.build_untested_check_run(
        sample_campaign.TARGET, sample_campaign.TARGET, sample_campaign.HEAD, 12, reason
    )
    assert draft.payload["conclusion"] == "neutral"
    check_golden("untested.json", json.dumps(draft.payload, indent=1, ensure_ascii=False) + "\n")


def test_check_run_of_a_commit_that_needs_its_native_code_accuses_nobody() -> None:
    draft = check_runs.build_untested_check_run(
        sample_campaign.TARGET, sample_campaign.TARGET, "a" * 40, 12, "src/relax.cc", "native", gate=True
    )
    assert draft.payload["conclusion"] == "neutral"
    output = draft.payload["output"]
    assert output["title"] == "Not tested: it needs a build of its native code"
    assert "`aaaaaaaaaaaa` over a wheel the compiler cannot be used, and they may need" in output["summary"]
    assert "infrastructure" not in output["summary"]


class Page(HTMLParser):
    """Collects what a page would load or run, and its ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        self.loads += [
            f"{tag} {name}" for name in given if name in ("src", "data", "poster") or name[:2] == "on"
        ]
        self.links += [given["href"] or ""] if "href" in given else []


def test_the_page_loads_nothing_and_runs_nothing(report: Report) -> None:
    text = renderer.html(report)
    page = Page(text)
    assert page.loads == []
    assert not {"script", "link", "iframe", "img", "object", "embed", "form", "base"} & set(page.tags)
    assert {link[1:] for link in page.links} <= page.ids
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert "@import" not in text


def test_hostile_text_does_not_become_markup() -> None:
    hostile = "<script>alert(1)</script> @octocat #1 `` ` \u202e"
    found = sample_campaign.findings()[0]
    assert found.head is not None
    evidence = Evidence(error=hostile, message=hostile, native=hostile, log=hostile, traceback=(hostile,))
    head = replace(found.head, summary=hostile, evidence=evidence)
    found = replace(found, test=hostile, operator=hostile, title=hostile, head=head)
    view = replace(
        sample_campaign.view(), findings=[found], ref=hostile, library=hostile, skipped={hostile: 1}
    )
    made = build_report(
        view, sample_campaign.made_cases.__getitem__, lambda ids: dict.fromkeys(ids, ProgramText(hostile))
    )
    assert "script" not in Page(renderer.html(made)).tags
    (group,) = made.groups
    for text in (
        renderer.markdown(made),
        issue.issue_body(made, group),
        check_runs.build_check_run(made)["output"]["text"],
    ):
        outside = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
        outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
        assert "<script" not in outside
        assert "@octocat" not in outside
        assert "\u202e" not in text
    assert "@octocat" not in issue.issue_title(group)


@pytest.mark.parametrize("size", [0, 1_000, 30_000, 100_000, 400_000])
def test_bodies_keep_to_the_limits_of_github(size: int) -> None:
    found = sample_campaign.findings()[0]
    assert found.head is not None
    evidence = Evidence("E" * 200, "`m`" * (size // 3), native="n" * size, log="l" * size)
    found = replace(found, head=replace(found.head, evidence=evidence), title="t" * size + "!")
    view = replace(sample_campaign.view(), findings=[found] * 300)
    made = build_report(
        view, sample_campaign.made_cases.__getitem__, lambda ids: dict.fromkeys(ids, ProgramText("p" * size))
    )
    (group,) = made.groups
    group = replace(group, script=group.script + "#" * size)
    body = issue.issue_body(made, group)
    assert len(body) <= BODY_BUDGET < MAX_BODY
    assert body.endswith(marker(issue.issue_key(sample_campaign.TARGET, group.signature)) + "\n")
    assert (f"reproducers/{group.filename}" in body) == (size >= 100_000)
    assert len(issue.issue_title(group)) <= MAX_TITLE
    output = check_runs.build_check_run(made)["output"]
    assert max(len(output["summary"]), len(output["text"])) <= MAX_OUTPUT
    assert len(output["title"]) <= MAX_TITLE


def test_half_a_secret_at_a_cut_is_no_leak() -> None:
    found = sample_campaign.findings()[0]
    assert found.head is not None
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "c2VjcmV0\n" * 400 + "-----END RSA PRIVATE KEY-----\nend"
    log = key + "x" * 10
    evidence = Evidence("E", "m" * 3_980 + " ghp_0123456789abcdefghijABCDEFGHIJ012345", log=log)
    found = replace(found, head=replace(found.head, evidence=evidence))
    made = build_report(
        replace(sample_campaign.view(), findings=[found]), sample_campaign.made_cases.__getitem__
    )
    body = issue.issue_body(made, made.groups[0])
    assert "c2VjcmV0" not in body
    assert "ghp_" not in body


def test_many_signatures_fit_into_a_check_run() -> None:
    found = sample_campaign.findings()[0]
    many = [replace(found, signature=f"{at:016x}", title=f"bug {at}") for at in range(400)]
    made = build_report(replace(sample_campaign.view(), findings=many))
    output = check_runs.build_check_run(made)["output"]
    assert len(output["text"]) <= MAX_OUTPUT
    assert "more groups; the full report has them" in output["text"]


def test_grouping_counts_everything_and_keeps_little() -> None:
    found = sample_campaign.findings()[0]
    stream = (replace(found, case=f"{at:064x}", test=f"t{at}", size=10_000 - at) for at in range(5_000))
    made = build_report(replace(sample_campaign.view(), findings=stream))
    (group,) = made.groups
    assert group.cases == made.cases(Classification.REGRESSION) == 5_000
    assert len(group.shown) == 200
    assert group.example.test == group.shown[0].test == "t4999"


def test_artifacts_are_complete_and_the_same_twice(report: Report, tmp_path: Path) -> None:
    files = renderer.write_artifacts(report, tmp_path)
    first = {path: path.read_bytes() for path in files}
    assert set(first) == {path for path in tmp_path.rglob("*") if path.is_file()}
    assert renderer.write_artifacts(report, tmp_path) == files
    assert first == {path: path.read_bytes() for path in files}
    reported = json.loads((tmp_path / "report.json").read_text())
    assert reported["sections"] == {"new": 6, "old": 4, "fixed": 2, "inconclusive": 1}
    assert reported["verdicts"]["head"] == {v.value: n for v, n in report.verdicts(Side.HEAD).items()}
    for group in reported["groups"]:
        assert group["reproducer"] is None or (tmp_path / group["reproducer"]).is_file()
    assert "ghp_" not in (tmp_path / "report.json").read_text()


def test_effects_are_a_check_run_and_an_issue_for_each_new_bug(report: Report) -> None:
    kinds = [
        (draft.kind, draft.hold) for draft in renderer.draft_effects(report, sample_campaign.config("auto"))
    ]
    assert kinds == [("check_run", ""), ("issue", ""), ("issue", ""), ("issue", "")]
    held = [draft.hold for draft in renderer.draft_effects(report, sample_campaign.config("held"))]
    assert held == ["", renderer.HELD_REASON, renderer.HELD_REASON, renderer.HELD_REASON]
    again = renderer.draft_effects(sample_campaign.report(), sample_campaign.config("auto"))
    assert again == renderer.draft_effects(report, sample_campaign.config("auto"))


def test_the_conclusion_is_success_only_if_nothing_is_open(report: Report) -> None:
    assert check_runs.conclusion(report) == "neutral"
    harmless = [
        f
        for f in sample_campaign.findings()
        if f.classification in (Classification.ALREADY_BROKEN, Classification.FIXED)
    ]
    clean = build_report(replace(sample_campaign.view(), findings=harmless))
    assert check_runs.conclusion(clean) == "success"
    assert clean.headline == "Nothing new in 738 cases; 4 already broken at base"
    alone = build_report(replace(sample_campaign.view(), base="", base_toolchain=None, findings=()))
    assert alone.headline == "Nothing fails in 738 cases", "without a base nothing is new or old"
    assert "base beside head" not in renderer.html(alone)
    nothing = build_report(replace(sample_campaign.view(), findings=(), counts=()))
    assert check_runs.conclusion(nothing) == "neutral"
    assert nothing.headline == "No cases were run"


def test_a_campaign_in_which_nothing_passes_accuses_nobody(report: Report) -> None:
    assert not report.nothing_passes
    counts = [one for one in sample_campaign.view().counts if one.verdict is not Verdict.PASS]
    head = [replace(one, cases=40) for one in counts if one.side is Side.HEAD]
    broken = build_report(replace(sample_campaign.view(), base="", base_toolchain=None, counts=tuple(head)))
    assert broken.nothing_passes
    assert broken.headline.startswith("Nothing passes, so no compiler is at fault: ")
    few = build_report(replace(sample_campaign.view(), counts=(replace(head[0], cases=3),)))
    assert not few.nothing_passes


def test_a_campaign_without_base_renders() -> None:
    alone = [
        replace(f, classification=Classification.INCONCLUSIVE, base=None, reason="there is no base commit")
        for f in sample_campaign.findings()
        if f.head
    ]
    counts = [row for row in sample_campaign.view().counts if row.side is Side.HEAD]
    made = build_report(
        replace(sample_campaign.view(), base="", base_toolchain=None, findings=alone, counts=counts)
    )
    assert "there is no base commit" in renderer.markdown(made)
    assert "was run at base" not in renderer.markdown(made)
    assert "Failures were repeated in fresh processes within the budget" in renderer.markdown(made)
    assert ">base<" not in renderer.html(made).partition("<svg")[2].partition("</svg>")[0]
    assert made.verdicts(Side.HEAD)[Verdict.CRASH] == 8


def test_what_was_not_repeated_is_not_said_to_fail_in_each_run() -> None:
    """The budget may end before a failure is repeated."""
    repeated, once, both = [
        replace(
            sample_campaign.findings()[0],
            classification=Classification.INCONCLUSIVE,
            base=None,
            signature=signature,
            reduced=None,
            head_runs=Tally(runs, runs),
        )
        for signature, runs in (("a" * 16, 3), ("b" * 16, 1), ("b" * 16, 3))
    ]

    def named(*found: FindingView) -> dict[str, list[str]]:
        made = build_report(replace(sample_campaign.view(), base="", base_toolchain=None, findings=found))
        assert ("### Not repeated: 1" in renderer.markdown(made)) is (once in found and both not in found)
        return {one.name: [group.signature for group in one.groups] for one in sections(made)}

    assert named(repeated, once) == {"failing": ["a" * 16], "unrepeated": ["b" * 16], "flaky": []}
    assert named(once, both) == {"failing": ["b" * 16], "flaky": []}
