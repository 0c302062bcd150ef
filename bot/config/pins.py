"""Which releases of a package a repository's files ask for.

Files are read leniently: they are written for pip, and a line we cannot read says nothing about the
package we look for. What does name the package is judged strictly by `bot.toolchains.release`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from bot.config.sections import exact_pin
from bot.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HASH = re.compile(r"\s--hash[= ]\S+")
_COMMENT = re.compile(r"(^|\s)#.*")


@dataclass(frozen=True)
class Pin:
    """One line that names a package.

    package   as it was asked for, the canonical spelling
    text      the requirement as written, its first 200 characters
    version   the release if it is pinned exactly, else None
    line      1-based; 0 where unknown (pyproject.toml)
    """

    package: str
    text: str
    version: str | None
    line: int


def find_pins(content: bytes, file: str, packages: Iterable[str]) -> list[Pin]:
    """Every requirement in `file` on one of `packages` that applies to this machine, in order.

    A name that ends in .toml is read as a pyproject.toml, anything else as a requirements.txt.
    Raises ConfigError if the file cannot be read at all.
    """
    wanted = {canonicalize_name(package): package for package in packages}
    pins = []
    for line, text in _requirements(content, file):
        word = _NAME.match(text)
        package = wanted.get(canonicalize_name(word[0])) if word else None
        if package is not None:
            pin = _pin(package, text, line)
            pins += [pin] if pin else []
    return pins


def _pin(package: str, text: str, line: int) -> Pin | None:
    """The pin on a line that begins with the package's name; None if it does not hold here."""
    try:
        requirement = Requirement(text)
        applies = requirement.marker is None or requirement.marker.evaluate()
    except (InvalidRequirement, InvalidVersion, UndefinedComparison, UndefinedEnvironmentName):
        return Pin(package, text[:200], None, line)  # it names the package, so it cannot be passed over
    return Pin(package, text[:200], exact_pin(requirement), line) if applies else None


def _requirements(content: bytes, file: str) -> Iterator[tuple[int, str]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8 text; save it as UTF-8", key="toolchain.pin") from None
    return _from_pyproject(text, file) if file.endswith(".toml") else _from_lines(text)


def _from_lines(text: str) -> Iterator[tuple[int, str]]:
    pending, start = "", 0
    for number, line in enumerate([*text.splitlines(), ""], 1):  # a last line may end in a backslash
        start = start if pending else number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        requirement = _COMMENT.sub("", _HASH.sub("", pending + line)).strip()
        pending = ""
        if requirement and not requirement.startswith("-"):
            yield start, requirement


def _from_pyproject(text: str, file: str) -> Iterator[tuple[int, str]]:
    try:
        project = tomllib.loads(text).get("project", {})
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}", key="toolchain.pin") from None
    dependencies = project.get("dependencies", []) if isinstance(project, dict) else []
    for item in dependencies if isinstance(dependencies, list) else []:
        if isinstance(item, str):
            yield 0, item
