"""The releases of a package that the index offers for this interpreter."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bot.errors import UsageError
from bot.toolchains.installer import uv_environment

CACHE_TTL_S = 24 * 3600.0  # listing takes half a second for each release

_RANGE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*):(.+?)\.\.(.+)")
_EXAMPLE = "write PACKAGE:OLDEST..NEWEST, such as openvino:2023.0..2026.4"


class Index(Protocol):
    """Lists releases: `bot.toolchains.installer.Installer`."""

    def lowest_release(self, python: Path, requirement: str, /) -> str | None:
        """The lowest release that satisfies a requirement, pre-releases included if it names one; None if
        none does.
        """
        ...


@dataclass(frozen=True)
class Range:
    """Releases of a package between two bounds, inclusive.

    A bound covers all releases that begin with it: up to 2026.4 includes its patches. A bound that is a
    pre-release, such as a nightly build, stands for itself, and then pre-releases are in the range.
    """

    package: str
    oldest: str
    newest: str

    def __str__(self) -> str:
        return f"{self.package}:{self.oldest}..{self.newest}"

    @classmethod
    def parse(cls, text: str) -> Range:
        """Parses PACKAGE:OLDEST..NEWEST; raises UsageError."""
        match = _RANGE.fullmatch(text)
        if match is None:
            raise UsageError(f"{text!r} is no range of releases; {_EXAMPLE}")
        package, oldest, newest = match.groups()
        bounds = [_parse_bound(bound, text) for bound in (oldest, newest)]
        exact = any(one.is_prerelease for one in bounds)
        if bounds[0] > bounds[1] if exact else _begins_after(*bounds):
            raise UsageError(f"{text!r} begins after its end; {_EXAMPLE}")
        return cls(canonicalize_name(package), oldest, newest)

    @property
    def pre_releases(self) -> bool:
        """Whether pre-releases are in it."""
        return any(Version(bound).is_prerelease for bound in (self.oldest, self.newest))

    @property
    def end(self) -> str:
        """What versions satisfy that are not beyond the range: <2026.5 for 2026.4."""
        if Version(self.newest).is_prerelease:
            return f"<={self.newest}"
        *front, last = Version(self.newest).release
        return "<" + ".".join(map(str, (*front, last + 1))) + (".dev0" if self.pre_releases else "")


def _parse_bound(text: str, whole: str) -> Version:
    try:
        version = Version(text)
    except InvalidVersion:
        raise UsageError(f"{text!r} in {whole!r} is no version; {_EXAMPLE}") from None
    plain = ".".join(map(str, version.release))
    if str(version) != plain and (version.is_postrelease or version.local):
        raise UsageError(f"{text!r} in {whole!r} is no release but a build of one; {_EXAMPLE}")
    return version


def _begins_after(oldest: Version, newest: Version) -> bool:
    prefix = oldest.release[: len(newest.release)]
    return oldest.release > newest.release and prefix != newest.release


def releases(wanted: Range, index: Index, cache: Path) -> tuple[str, ...]:
    """The releases in a range, oldest first, without withdrawn ones.

    Each is asked for as the lowest above the previous one; the list is cached in `cache` for a day. Raises
    UsageError: there are none; ProvisionError: the index does not answer.
    """
    file = cache / f"{wanted.package}-{_key(wanted)}.json"
    known = _read_cache(file)
    if known is None:
        known = _query_index(wanted, index)
        if not known:
            raise UsageError(
                f"there is no release in {wanted} that can be installed for this interpreter, "
                f"Python {sys.version_info.major}.{sys.version_info.minor}; name other bounds"
            )
        _write_cache(file, {"range": str(wanted), "asked": time.time(), "releases": known})
    return tuple(known)


def _query_index(wanted: Range, index: Index) -> list[str]:
    found: list[str] = []
    lower = f">={wanted.oldest}"
    while release := index.lowest_release(Path(sys.executable), f"{wanted.package}{lower},{wanted.end}"):
        found.append(release)
        lower = f">={release},!={release}"  # ">" would leave out its post-releases
    return found


def _key(wanted: Range) -> str:
    """Digest of what the list depends on: range, interpreter, indexes."""
    indexes = sorted(item for item in uv_environment().items() if item[0].startswith("UV_"))
    text = json.dumps([str(wanted), sys.version, sys.platform, indexes])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read_cache(file: Path) -> list[str] | None:
    """The list cached within the last day; None otherwise, also if the clock was set back."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        fresh = 0 <= time.time() - record["asked"] < CACHE_TTL_S
        return [str(release) for release in record["releases"]] if fresh else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_cache(file: Path, record: dict[str, object]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".part-{os.getpid()}")
    part.write_text(json.dumps(record), encoding="utf-8")
    part.replace(file)
