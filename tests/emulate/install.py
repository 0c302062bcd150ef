"""Installs the emulator that `tests/bot/github/test_emulate.py` asks as a second witness.

    python tests/emulate/install.py

npm's package `emulate` is pinned: its `latest` is another program. It goes into the user's cache folder, and
takes 11 MB; Node 20 or newer must be there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from platformdirs import user_cache_path

VERSION = "0.12.2"


def folder() -> Path:
    """Where it is installed, or would be."""
    return user_cache_path("assay") / f"emulate-{VERSION}"


def lacking() -> str:
    """Why the emulator cannot be asked; "" if it can."""
    if shutil.which("node") is None:
        return "there is no Node: install version 20 or newer"
    if not (folder() / "node_modules" / "emulate" / "package.json").is_file():
        return "the emulator is not installed: run python tests/emulate/install.py"
    return ""


def main() -> None:
    """Installs it, without running anything that it brings."""
    if shutil.which("npm") is None:
        sys.exit("npm is missing; it comes with Node")
    folder().mkdir(parents=True, exist_ok=True)
    options = ("--no-audit", "--no-fund", "--no-save", "--ignore-scripts")
    subprocess.run(["npm", "install", f"emulate@{VERSION}", *options, "--prefix", folder()], check=True)
    print(f"emulate {VERSION} is in {folder()}")


if __name__ == "__main__":
    main()
