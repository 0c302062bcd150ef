"""Virtual environments with packages from the package index."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import uv


def venv_with(folder: Path, *packages: str) -> Path:
    """An environment with these packages, in the versions installed here, and their dependencies."""
    program = uv.find_uv_bin()
    python = folder / "bin" / "python"
    pinned = [f"{name}=={version(name)}" for name in packages]
    for command in (
        ["venv", "--quiet", "--python", sys.executable, folder],
        ["pip", "install", "--quiet", "--python", python, *pinned],
    ):
        subprocess.run([program, *map(str, command)], check=True, timeout=600)
    return python
