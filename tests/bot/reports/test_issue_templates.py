"""Issues in the form of each compiler's people, beside golden files; `ASSAY_GOLDEN=write` makes them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from bot.github.limits import BODY_BUDGET, MAX_TITLE, marker
from bot.reports import issue, renderer
from bot.reports.campaign_view import ToolchainView
from bot.reports.issue_templates import backends, template_for
from bot.reports.report import Group, Report
from bot.store.models import Classification
from tests.bot.reports import sample_campaign

GOLDEN = Path(__file__).parents[2] / "golden" / "reports"
SCRIPT = 'import onnx.parser\n\nmodel = onnx.parser.parse_model("…")\n'
#: The headings of each form, in the words of the repository that asks for them: what happens and how to
#: reproduce it first, the others folded.
HEADINGS = {
    "inductor": ("### 🐛 Describe the bug", "### Error logs", "### Versions"),
    "onnxruntime": (
        "### Describe the issue",
        "### To reproduce",
        "### Urgency",
        "### Platform",
        "### OS Version",
        "### ONNX Runtime Installation",
        "### ONNX Runtime Version or Commit ID",
        "### ONNX Runtime API",
        "### Architecture",
        "### Execution Provider",
    ),
    "openvino": (
        "### Issue description",
        "### Step-by-step reproduction",
        "### OpenVINO Version",
        "### Operating System",
        "### Device used for inference",
        "### Framework",
        "### Model used",
        "### Relevant log output",
        "### Issue submission checklist",
    ),
    "tensorrt": ("## Description", "## Steps To Reproduce", "## Environment", "## Relevant Files"),
    "tvm": (
        "### Expected behavior",
        "### Actual behavior",
        "### Environment",
        "### Steps to reproduce",
        "### Triage",
    ),
}


def made(backend: str, at: int = 2, **changes: object) -> tuple[Report, Group]:
    """The sample's findings as another compiler's, with a short reproducer."""
    report = sample_campaign.report()
    group = report.with_classification(Classification.REGRESSION)[at]
    head = group.example.head
    assert head is not None
    example = replace(group.example, head=replace(head, backend=backend))
    group = replace(group, example=example, script=SCRIPT, guarded="\nMODEL = b''\n", **changes)  # type: ignore[arg-type]
    tool = ToolchainView(
        f"{backend} 1.2.3", {backend: "1.2.3"}, (f"{backend}==1.2.3",), "3.11.7", "Linux x86_64"
    )
    view = replace(report.view, backend=backend, head_toolchain=tool)
    return replace(report, view=view), group


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("ASSAY_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"{path} differs; ASSAY_GOLDEN=write makes it anew"


def test_every_form_is_tested() -> None:
    assert backends() == tuple(HEADINGS)


@pytest.mark.parametrize("backend", [*HEADINGS, "iree"])
def test_forms(backend: str) -> None:
    report, group = made(backend)
    labels = ", ".join(issue.issue_labels(report, group))
    body = issue.issue_body(report, group)
    check_golden(f"issue_template-{backend}.md", f"{issue.issue_title(group)}\n\nLabels: {labels}\n\n{body}")


@pytest.mark.parametrize("backend", HEADINGS)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_no_form_leaves_out(backend: str, at: int) -> None:
    report, group = made(backend, at, program="Add(x, y)")
    body = issue.issue_body(report, group)
    lines = body.splitlines()
    places = [lines.index(heading) for heading in HEADINGS[backend]]
    assert places == sorted(places)
    assert lines[0].startswith("> **Machine-found**")
    assert SCRIPT.strip() in body
    assert "Add(x, y)" in body
    assert f"signature `{group.signature}`" in body
    assert "passes at `9d02be7716ac`" in body
    assert body.rstrip().endswith(marker(issue.issue_key(report.view.target, group.signature)))
    assert "ghp_0123456789" not in body


@pytest.mark.parametrize("backend", [*HEADINGS, "iree"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_issue_is_one_screen_before_its_details(backend: str, at: int) -> None:
    report, group = made(backend, at)
    script = "\n".join(f"line = {number}" for number in range(25))  # the longest that is usual
    body = issue.issue_body(report, replace(group, script=script))
    shown = [line for line in body.partition("<details>")[0].splitlines() if line.strip()]
    assert len(shown) <= 25 + 20, "the script, and what is around it"


@pytest.mark.parametrize("backend", HEADINGS)
def test_no_form_is_too_long(backend: str) -> None:
    report, group = made(backend, program="x" * 100_000)
    group = replace(group, script="y" * 200_000, title="z" * 500)
    assert len(issue.issue_body(report, group)) <= BODY_BUDGET
    assert len(issue.issue_title(group)) <= min(issue.MAX_TITLE, MAX_TITLE)


def test_the_label_for_fuzzers_needs_their_rules() -> None:
    report, group = made("inductor")
    assert "topic: fuzzer" in issue.issue_labels(report, group)
    assert "follows the rules for fuzzers" in issue.issue_body(report, group)
    other = replace(report, view=replace(report.view, config={"profile": "isra"}))
    assert "topic: fuzzer" not in issue.issue_labels(other, group)
    assert "follows the rules" not in issue.issue_body(other, group)
    crash, died = made("inductor", 0)
    assert "topic: fuzzer" in issue.issue_labels(crash, died)
    assert "follows the rules" not in issue.issue_body(crash, died)


def test_labels_of_the_repository_come_first() -> None:
    drafts = renderer.draft_effects(sample_campaign.report(), sample_campaign.config("auto"))
    labels = [draft.payload["labels"] for draft in drafts if draft.kind == "issue"]
    assert labels[0] == ["assay", "bug", "support_request"]


def test_polygraphy_reads_the_model_out_of_the_script() -> None:
    report, group = made("tensorrt")
    assert "polygraphy run model.onnx --trt --onnxrt" in issue.issue_body(report, group)
    assert "polygraphy" not in issue.issue_body(report, replace(group, frontend="torch"))


def test_others_have_the_plain_form() -> None:
    assert template_for("iree").template == "reports/issue.md.j2"
