"""OpenVINO's form (.github/ISSUE_TEMPLATE/bug.yml)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.reports.issue_templates import IssueTemplate, register
from bot.reports.report import Group, Report

#: As the form's header sets them.
LABELS = ("bug", "support_request")
#: Our frontends, as the form's list of frameworks spells them.
FRAMEWORKS = {"onnx": "ONNX", "torch": "PyTorch", "keras": "Keras (TensorFlow 2)"}


def _fields(_report: Report, group: Group) -> Mapping[str, Any]:
    return {"framework": FRAMEWORKS.get(group.frontend, group.frontend)}


register(
    "openvino", IssueTemplate("issues/openvino.md.j2", "[Bug]: ", lambda _report, _group: LABELS, _fields)
)
