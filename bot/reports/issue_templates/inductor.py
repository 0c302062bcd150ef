"""PyTorch's form for torch.compile (.github/ISSUE_TEMPLATE/pt2-bug-report.yml), and its rules for fuzzers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.reports.issue_templates import IssueTemplate, register
from bot.reports.report import Group, Report
from fuzzing.oracles.tolerance_profiles import DEFAULT
from fuzzing.outcomes import Verdict

#: The label that the form's rules for fuzzers require.
LABEL = "topic: fuzzer"


def follows_fuzzer_rules(report: Report, group: Group) -> bool:
    """Whether the finding follows the form's rules: default tolerances and a float64 run as reference."""
    if str(report.view.config.get("profile", DEFAULT)) != DEFAULT or group.example.head is None:
        return False
    return all(one.compiled_error is not None for one in group.example.head.evidence.mismatches)


def _labels(report: Report, group: Group) -> tuple[str, ...]:
    return ("oncall: pt2", LABEL) if follows_fuzzer_rules(report, group) else ("oncall: pt2",)


def _fields(report: Report, group: Group) -> Mapping[str, Any]:
    head = group.example.head
    is_wrong_result = head is not None and head.verdict is Verdict.WRONG_RESULT
    return {"follows_rules": is_wrong_result and follows_fuzzer_rules(report, group)}


register("inductor", IssueTemplate("issues/inductor.md.j2", "", _labels, _fields))
