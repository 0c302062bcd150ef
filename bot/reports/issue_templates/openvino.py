"""OpenVINO's form (.github/ISSUE_TEMPLATE/bug.yml)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.reports.issue_templates import IssueTemplate, register
from bot.reports.report import Group, Report

#: From the form's header.
LABELS = ("bug", "support_request")
#: Frontends as the form's list spells them.
FRAMEWORKS = {"onnx": "ONNX", "torch": "PyTorch", "keras": "Keras (TensorFlow 2)"}


def _fields(_report: Report, group: Group) -> Mapping[str, Any]:
    return {"framework": FRAMEWORKS.get(group.frontend, group.frontend)}


register(
    "openvino", IssueTemplate("issues/openvino.md.j2", "[Bug]: ", lambda _report, _group: LABELS, _fields)
)
