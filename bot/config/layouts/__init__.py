"""Where the Python sources of a compiler's repository lie in its wheel: one TOML file for each compiler.

A repository is recognized by a file in it, not by its name, so that forks work.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class SourceLayout:
    """How commits of one compiler's repository are laid over its wheel, and how they are tested.

    marker        a file that only this repository has
    paths         folder of the repository → folder in site-packages
    fallback      the part of `paths` to try where all of it works over no wheel
    native        paths of the repository that only a build can change; a prefix, or a file
    widest        folders of the layout that this one is the fallback of, and its own
    tag           a regular expression whose group 1 is the release series (`0.26`) in a git tag, "" for none
    complete      whether the folders hold no file that a build makes: none of the wheel stays
    version_file  a file that names the release series, "" for none
    version       a regular expression whose group 1 is the series in it
    frontend      the frontend whose cases test it by default, "" for whatever the sources need
    budget        time that one campaign of it runs tests by default, such as 4m
    """

    backend: str
    package: str
    marker: str
    paths: dict[str, str]
    native: tuple[str, ...]
    tag: str = ""
    complete: bool = False
    version_file: str = ""
    version: str = r"(\d+\.\d+)"
    frontend: str = ""
    budget: str = "5m"
    fallback: dict[str, str] = field(default_factory=dict)
    widest: tuple[str, ...] = ()

    def variants(self) -> tuple[SourceLayout, ...]:
        """The layout itself and, where there is one, that of the fallback; the widest first."""
        return (
            (self, replace(self, paths=self.fallback, fallback={}, widest=tuple(self.paths)))
            if self.fallback
            else (self,)
        )

    def unreachable(self) -> tuple[str, ...]:
        """Prefixes of the compiler's own files; the overlay carries those below `paths` alone."""
        return (*self.native, *self.widest)

    def series_of(self, text: str, *, of_tag: bool) -> tuple[int, int] | None:
        """The (major, minor) that a tag or the version file names, None if it names none."""
        match = re.search(self.tag if of_tag else self.version, text)
        if not match:
            return None
        major, minor = match[1].split(".")
        return int(major), int(minor)


@cache
def layouts() -> tuple[SourceLayout, ...]:
    """All layouts, sorted by backend."""
    found = (tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(_FOLDER.glob("*.toml")))
    return tuple(SourceLayout(**one | {"native": tuple(one["native"])}) for one in found)


def recognize(has_file: Callable[[str], bool]) -> SourceLayout | None:
    """The layout of the repository that has certain files; None if it is no known compiler's."""
    return next((one for one in layouts() if has_file(one.marker)), None)
