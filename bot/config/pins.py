"""Finds the releases of a package that a repository's files pin.

Files are read leniently: they are written for pip, and unreadable lines are ignored. `bot.toolchains.release`
checks lines with the package's name strictly. The files are untrusted: every input yields pins or a
ConfigError, in time linear in its length.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bot.config.sections import exact_pin
from bot.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HASH = re.compile(r"\s--hash[= ]\S+")
_COMMENT = re.compile(r"(^|\s)#.*")
MAX_BYTES = 1 << 20  # as in `bot.github.repositories`
MAX_REQUIREMENT = 2_000  # characters; longer ones count as unreadable
MAX_KEY_PARTS = 100  # of a dotted key: tomllib takes quadratic time for it
#: Exceptions of packaging for hostile text: also for versions of 5,000 digits and for nested markers.
_PARSE_ERRORS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class Pin:
    """One requirement on a package.

    package   the name given to `find_pins`
    text      the requirement as written, its first 200 characters
    version   the release if it is pinned exactly, else None
    line      1-based; 0 if unknown (pyproject.toml)
    """

    package: str
    text: str
    version: str | None
    line: int


def find_pins(content: bytes, file: str, packages: Iterable[str]) -> list[Pin]:
    """The requirements in `file` on `packages` that apply to this machine, in order.

    A name that ends in .toml is read as a pyproject.toml, anything else as a requirements.txt.
    Raises ConfigError if the file is not readable.
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
    """The pin on a line that begins with the package's name; None if its marker excludes this machine."""
    unreadable = Pin(package, text[:200], None, line)  # it names the package, so it is not skipped
    if len(text) > MAX_REQUIREMENT:
        return unreadable
    try:
        requirement = Requirement(text)
        applies = requirement.marker is None or requirement.marker.evaluate()
        return Pin(package, text[:200], exact_pin(requirement), line) if applies else None
    except _PARSE_ERRORS:
        return unreadable


def _requirements(content: bytes, file: str) -> Iterator[tuple[int, str]]:
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{file} is longer than {MAX_BYTES} bytes; split it", key="toolchain.pin")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8 text; save it as UTF-8", key="toolchain.pin") from None
    return _from_pyproject(text, file) if file.endswith(".toml") else _from_lines(text)


def _from_lines(text: str) -> Iterator[tuple[int, str]]:
    parts: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):  # a last line may end in a backslash
        start = start if parts else number
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        requirement = _COMMENT.sub("", _HASH.sub("", " ".join([*parts, line]))).strip()
        parts = []
        if requirement and not requirement.startswith("-"):
            yield start, requirement


def _from_pyproject(text: str, file: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.partition("=")[0].count(".") > MAX_KEY_PARTS:
            why = f"line {number} of {file} has a key of more than {MAX_KEY_PARTS} parts"
            raise ConfigError(why, key="toolchain.pin")
    try:
        project = tomllib.loads(text).get("project", {})
    except _PARSE_ERRORS as error:
        raise ConfigError(f"{file} is not valid TOML: {error}", key="toolchain.pin") from None
    dependencies = project.get("dependencies", []) if isinstance(project, dict) else []
    for item in dependencies if isinstance(dependencies, list) else []:
        if isinstance(item, str):
            yield 0, item
