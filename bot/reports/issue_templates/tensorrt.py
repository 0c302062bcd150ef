"""TensorRT's form (.github/ISSUE_TEMPLATE/bug_report.md), with the command of Polygraphy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.reports.issue_templates import IssueTemplate, register
from bot.reports.report import Group, Report


def _fields(_report: Report, group: Group) -> Mapping[str, Any]:
    """`polygraphy` reads a file, while the script has the model in a variable."""
    if group.frontend != "onnx" or not group.script:
        return {"polygraphy": ""}
    write = f"open('model.onnx', 'wb').write(runpy.run_path('{group.filename}')['MODEL'])"
    if group.guarded:
        return {"polygraphy": 'onnx.save(model, "model.onnx")  # in the script above\n' + _POLYGRAPHY}
    return {"polygraphy": f'python -c "import runpy; {write}"\n{_POLYGRAPHY}'}


_POLYGRAPHY = "polygraphy run model.onnx --trt --onnxrt"

register("tensorrt", IssueTemplate("issues/tensorrt.md.j2", fields=_fields))
