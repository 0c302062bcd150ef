"""The smoke test of a toolchain: whether it compiles one plain model of each frontend and agrees.

What its models import has bytecode from then on: frontends, and torch, whose import takes three times as long
without.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bot.errors import CheckUnfinishedError
from bot.runners import run_tool
from bot.toolchains.probe import compile_bytecode
from bot.toolchains.registry import ToolchainSpec
from fuzzing import backends
from fuzzing.exhausted_resources import exhausted_resource
from fuzzing.outcomes import Verdict

#: Verdicts that a machine without time or memory gives. INVALID: our own reference does not run.
_OF_MACHINE = frozenset({one.value for one in (Verdict.HANG, Verdict.OUT_OF_MEMORY, Verdict.INVALID)})


def smoke_test(spec: ToolchainSpec, python: Path) -> str:
    """Why the toolchain fails, with the compiler's own message; "" if it works, or if nothing can be tested.

    Compiles what the models have imported of the toolchain's folder.

    Raises RunnerError if that cannot be determined; and CheckUnfinishedError if the compiler is only slow or
    short of memory, as on a busy machine. A case that hangs was run twice, in fresh processes.
    """
    results: list[dict[str, Any]] = []
    arguments = ("--backend", spec.backend, "--python", str(python))
    kinds = [word for kind in testable_kinds(spec) for word in ("--kind", kind)]
    if kinds:
        run_tool("fuzzing.smoke_test", (*arguments, *kinds), results.append)
    sources = [path for one in results for path in one.get("sources", ())]
    failures = [one for one in results if one.get("verdict", "pass") != "pass"]
    why = "\n".join(map(_describe, failures))
    if failures and all(map(_may_be_the_machine, failures)):
        raise CheckUnfinishedError(f"{spec.label}: whether the compiler works is not known: {why}")
    folder = python.parents[1]
    uncompiled = [path for path in sources if _lacks_bytecode(path, folder)]
    if uncompiled and not failures:
        compile_bytecode(folder, uncompiled)
    return why


def _lacks_bytecode(source: object, folder: Path) -> bool:
    """Whether it is a Python file below the folder, without bytecode; a compiler may name anything."""
    if not isinstance(source, str) or not source.startswith(f"{folder}/"):
        return False
    try:
        return Path(source).is_file() and not Path(cache_from_source(source)).exists()
    except (ValueError, OSError):
        return False


def _describe(result: Mapping[str, Any]) -> str:
    where = f"{result['verdict']} in phase {result['phase']}"
    return f"the compiler fails on {result['test']}: {where}: {result['message']}"


def _may_be_the_machine(result: Mapping[str, Any]) -> bool:
    return result["verdict"] in _OF_MACHINE or bool(exhausted_resource(result["message"]))


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
