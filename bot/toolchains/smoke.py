"""The smoke test of a toolchain: whether it compiles one plain model of each frontend and agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bot.runners import run_tool
from bot.toolchains.registry import ToolchainSpec
from fuzzing import backends


def smoke_test(spec: ToolchainSpec, python: Path) -> str:
    """Why the toolchain fails, with the compiler's own message; "" if it works, or if nothing can be tested.

    Raises RunnerError if that cannot be determined.
    """
    results: list[dict[str, Any]] = []
    arguments = ("--backend", spec.backend, "--python", str(python))
    kinds = [word for kind in testable_kinds(spec) for word in ("--kind", kind)]
    if kinds:
        run_tool("fuzzing.smoke_test", (*arguments, *kinds), results.append)
    failures = [
        f"the compiler fails on {one['test']}: {one['verdict']} in phase {one['phase']}: {one['message']}"
        for one in results
        if one["verdict"] != "pass"
    ]
    return "\n".join(failures)


def testable_kinds(spec: ToolchainSpec) -> list[str]:
    """The program kinds whose libraries are there: onnx's reference is in our own environment.

    None of a compiler for GPUs alone: toolchains may be made on a machine that has none.
    """
    installed = {canonicalize_name(Requirement(one).name) for one in spec.requirements}
    backend = backends.get(spec.backend)
    if "CPU" not in backend.devices:
        return []
    return [
        kind
        for kind in backend.kinds
        if kind == "OnnxModel"
        or set(map(canonicalize_name, backends.reference_packages(kind))) - {"numpy"} <= installed
    ]
