"""In place of the smoke test, for compilers that take none of its models."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bot.toolchains.registry import ToolchainSpec
from fuzzing import backends


def import_alone(spec: ToolchainSpec, python: Path) -> str:
    """Why the compiler cannot be imported; "" if it can."""
    command = [str(python), "-c", f"import {backends.get(spec.backend).import_name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"the compiler fails: {done.stderr}"
