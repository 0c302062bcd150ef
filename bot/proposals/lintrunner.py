"""What a repository's `.lintrunner.toml` says: which linters see a file, and what no line may match.

PyTorch and ONNX Runtime run their linters through it (github.com/suo/lintrunner).
"""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.proposals.globs import fits
from bot.proposals.tree import Tree

_FILE = ".lintrunner.toml"
#: Codes of formatters of Python, in the configurations of PyTorch and ONNX Runtime of 2022 to 2026.
FORMATTERS = ("PYFMT", "UFMT", "BLACK", "BLACK-ISORT", "RUFF-FORMAT")
#: That of C++, in both.
CPP_FORMATTERS = ("CLANGFORMAT",)
_GREP = "grep_linter.py"
_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Lintrunner:
    """The linters, as the file lists them; none without the file."""

    linters: tuple[Mapping[str, Any], ...] = ()

    def runs(self, codes: Iterable[str], path: str) -> bool:
        """Whether one of these linters sees a file; always without a configuration."""
        wanted = set(codes)
        return not self.linters or any(one.get("code") in wanted and _sees(one, path) for one in self.linters)

    def forbidden(self, path: str) -> dict[str, str]:
        """Codes of the linters that search a file for a pattern, and their extended regular expressions."""
        found = {}
        for one in self.linters:
            words = [str(word) for word in one.get("command", ())]
            given = dict(word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word)
            greps = any(word.endswith(_GREP) for word in words) and "allowlist-pattern" not in given
            if greps and "pattern" in given and _sees(one, path):
                found[str(one.get("code", ""))] = given["pattern"]
        return found


def read_lintrunner(tree: Tree) -> Lintrunner:
    """The repository's configuration; none if it is invalid."""
    try:
        linters = tomllib.loads(tree.read(_FILE) or "").get("linter", [])
    except tomllib.TOMLDecodeError:
        return Lintrunner()
    return Lintrunner(tuple(one for one in linters if isinstance(one, dict)))


def check_lines(forbidden: Mapping[str, str], lines: Iterable[str]) -> str:
    """What the patterns find in lines, as a sentence; "" for no patterns that grep runs.

    Grep's engine takes linear time, so a pattern cannot hang us as one of Python's could.
    """
    text = "".join(f"{line}\n" for line in lines)
    found = {code: _matches(pattern, text) for code, pattern in forbidden.items()}
    ran = [code for code, result in found.items() if result is not None]
    if not ran:
        return ""
    new = [code for code in ran if found[code]]
    result = f"finds new: {', '.join(new)}" if new else "finds nothing new"
    return f"`lintrunner` ({', '.join(ran[:8])}{', …' if len(ran) > 8 else ''}) {result}"


def _matches(pattern: str, text: str) -> bool | None:
    """Whether a line matches; None if grep does not run with the pattern."""
    try:
        done = subprocess.run(
            ["grep", "-qE", "-e", pattern],
            input=text,
            text=True,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    return done.returncode == 0 if done.returncode in (0, 1) else None


def _sees(linter: Mapping[str, Any], path: str) -> bool:
    included, excluded = (linter.get(f"{one}_patterns", ()) for one in ("include", "exclude"))
    return fits(path, map(str, included)) and not fits(path, map(str, excluded))
