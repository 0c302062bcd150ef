"""ONNX Runtime's form (.github/ISSUE_TEMPLATE/08-general.yml)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.reports.issue_templates import IssueTemplate, register
from bot.reports.report import Group, Report

#: Platforms and devices as the form's lists spell them.
ARCHITECTURES = {"x86_64": "X64", "amd64": "X64", "i686": "X86", "aarch64": "ARM64", "arm64": "ARM64"}
PLATFORMS = {"linux": "Linux", "windows": "Windows", "darwin": "Mac"}
PROVIDERS = {"cpu": "Default CPU", "cuda": "CUDA", "gpu": "CUDA", "tensorrt": "TensorRT"}
UNKNOWN = "Other / Unknown"


def _fields(report: Report, _group: Group) -> Mapping[str, Any]:
    tool = report.view.head_toolchain
    system, _, machine = (tool.platform if tool else "").partition(" ")
    pinned = tool is not None and any(item.startswith("onnxruntime") for item in tool.requirements)
    device = report.view.device.partition(":")[0].lower()
    return {
        "system": PLATFORMS.get(system.lower(), UNKNOWN),
        "architecture": ARCHITECTURES.get(machine.lower(), UNKNOWN),
        "installation": "Released Package" if pinned else UNKNOWN,
        "provider": PROVIDERS.get(device, UNKNOWN),
    }


register("onnxruntime", IssueTemplate("issues/onnxruntime.md.j2", fields=_fields))
