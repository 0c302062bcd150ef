"""Environments made from nothing but the `pip install` line of a script, one for each distinct line."""

from __future__ import annotations

import hashlib
import re
import shlex
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bot.errors import ProvisionError
from bot.toolchains.installer import Installer

#: In a short script its first line, in a guarded one a line of its docstring.
_PIP = re.compile(r"^\W*(pip install [^\n]+?)\W*$", re.MULTILINE)


class Environments:
    """Virtual environments below a folder, kept for later runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._refused: dict[str, str] = {}

    def python_for(self, script: str, *, pins: dict[str, str] | None = None) -> tuple[str, str]:
        """The interpreter of the environment that a script asks for, or "" and why there is none.

        pins  other versions by package, instead of the script's
        """
        found = _PIP.search(script)
        if found is None or "&&" in found[1]:
            return "", "no line that pip alone can follow"
        wanted = tuple(_pinned(word, pins or {}) for word in shlex.split(found[1])[2:])
        name = hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:16]
        if name not in self._refused and not (self._folder / name / "ready").exists():
            self._refused[name] = self._make(name, wanted)
        why = self._refused.get(name, "")
        return ("", why) if why else (str(self._folder / name / "bin" / "python"), "")

    def _make(self, name: str, wanted: tuple[str, ...]) -> str:
        installer = Installer(self._folder)
        try:
            python = installer.make_venv(self._folder / name)
            installer.install(python, wanted)
        except ProvisionError as error:
            return f"pip install {' '.join(wanted)}: {error}"
        (self._folder / name / "ready").write_text(" ".join(wanted), encoding="utf-8")
        return ""


def _pinned(word: str, pins: dict[str, str]) -> str:
    """The requirement with another pin; torch as the build installed here, which is smaller than PyPI's."""
    requirement = Requirement(word)
    name = canonicalize_name(requirement.name)
    if name in pins:
        return f"{requirement.name}=={pins[name]}"
    if name == "torch":
        here = metadata.version("torch")
        if requirement.specifier.contains(here.partition("+")[0]):
            return f"torch=={here}"
    return word
