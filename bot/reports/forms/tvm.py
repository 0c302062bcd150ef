"""TVM's form (.github/ISSUE_TEMPLATE/bug-report.md)."""

from __future__ import annotations

from bot.reports.forms import Form, register

#: As the form's header sets them.
LABELS = ("needs-triage", "type: bug")

register("tvm", Form("issues/tvm.md.j2", "[Bug] ", lambda _report, _group: LABELS))
