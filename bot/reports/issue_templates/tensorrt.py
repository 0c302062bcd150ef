"""TensorRT's form (.github/ISSUE_TEMPLATE/bug_report.md), with the command of its own comparing tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.reports.issue_templates import IssueTemplate, register
from bot.reports.report import Group, Report


def _fields(_report: Report, group: Group) -> Mapping[str, Any]:
    """`polygraphy` reads files: the reproducer has the model's bytes under the name MODEL."""
    if group.frontend != "onnx" or "\nMODEL = " not in group.script:
        return {"polygraphy": ""}
    write = f"open('model.onnx', 'wb').write(runpy.run_path('{group.filename}')['MODEL'])"
    return {
        "polygraphy": f'python -c "import runpy; {write}"\npolygraphy run model.onnx --trt --onnxrt',
    }


register("tensorrt", IssueTemplate("issues/tensorrt.md.j2", fields=_fields))
