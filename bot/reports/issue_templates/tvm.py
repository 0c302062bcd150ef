"""TVM's form (.github/ISSUE_TEMPLATE/bug-report.md)."""

from __future__ import annotations

from bot.reports.issue_templates import IssueTemplate, register

#: From the form's header.
LABELS = ("needs-triage", "type: bug")

register("tvm", IssueTemplate("issues/tvm.md.j2", "[Bug] ", lambda _report, _group: LABELS))
