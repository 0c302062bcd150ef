"""clang-format with the repository's own configuration, for tests that are shown as C++."""

from __future__ import annotations

import subprocess
import sysconfig
import tempfile
from pathlib import Path, PurePosixPath

from bot.proposals.tree import Tree

#: The configuration's names, in clang-format's order (clang.llvm.org/docs/ClangFormat).
_FILES = (".clang-format", "_clang-format")
_TIMEOUT_S = 60.0


def read_clang_format(tree: Tree, path: str) -> str | None:
    """The configuration in force for a file: the nearest; None without one."""
    for folder in PurePosixPath(path).parents:
        for name in _FILES:
            if (text := tree.read(str(folder / name))) is not None:
                return text
    return None


def format_cpp(text: str, configuration: str) -> str | None:
    """The text as clang-format writes it; None if it does not run, as with settings that it does not know."""
    program = Path(sysconfig.get_path("scripts"), "clang-format")
    with tempfile.TemporaryDirectory(prefix="assay-format-") as folder:
        Path(folder, _FILES[0]).write_text(configuration, encoding="utf-8")
        try:
            done = subprocess.run(
                [program, "--style=file", "--assume-filename=test.cc"],
                input=text,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    return done.stdout if not done.returncode else None
