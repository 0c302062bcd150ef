"""The `index` provisioner: the last wheel of a commit's line that an index of nightly builds has.

A wheel whose version names a commit, as in 2.14.0.dev20261101+gitabc1234, is that commit's or one before it;
of others the date counts, that of the version or that of the upload. A change newer than the wheel is not in
it: commits between two wheels are one toolchain, and nothing tells them apart.
"""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from packaging.version import Version

from bot.commit_files import Ancestor, CommitFiles, ReadFile
from bot.config import RepositoryConfig
from bot.config.sections import ToolchainConfig
from bot.errors import ConfigError
from bot.toolchains import registry
from bot.toolchains.commit_toolchain import make_checked, ready
from bot.toolchains.installer import Installer
from bot.toolchains.registry import OnProgress, ReadyToolchain, ToolchainSpec, provisioner
from bot.toolchains.simple_index import IndexedWheel, list_wheels
from bot.toolchains.source_digests import source_of
from bot.toolchains.wheel_pins import pin_release
from fuzzing import backends

#: Commits that are looked at for one that a wheel names; the busiest compiler has 100 a day.
_HISTORY = 2_000
_COMMIT_ID = re.compile(r"^(?:git|g)?([0-9a-f]{7,40})$")
_DATE = re.compile(r"^(20\d{6})")
_KEY = "toolchain.index"
#: Seconds for which a list of wheels holds: a bisection asks for the wheels of many commits.
_ANSWER_HOLDS_S = 60.0
_listed: dict[tuple[str, str], tuple[float, list[IndexedWheel]]] = {}
#: The field of a spec's origin that holds the address of the index.
ORIGIN = "index"


@provisioner("index", configurable=True)
class IndexProvisioner:
    """Installs a nightly or pre-release wheel."""

    def resolve(
        self, config: RepositoryConfig, read: ReadFile, _data_dir: Path | None = None
    ) -> ToolchainSpec:
        """The newest wheel that is not newer than the commit; raises ConfigError if there is none."""
        index = config.toolchain.index
        if not index:
            raise ConfigError("no index is named", key=_KEY)
        if not isinstance(read, CommitFiles):
            raise ConfigError("a wheel before a commit needs a git repository", key=_KEY)
        package = config.toolchain.package or backends.get(config.backend).package
        version, choice = find_nightly(index, package, read)
        pinned = config.model_copy(
            update={"toolchain": ToolchainConfig(extra=config.toolchain.extra, package=package)}
        )
        released = registry.get("release").resolve(pinned, lambda _: pin_release(package, version))
        return replace(
            released,
            provisioner="index",
            label=f"{package} {version}",
            source="",
            origin=((ORIGIN, index),),
            choice=choice,
            commit=read,
        )

    def provision(self, spec: ToolchainSpec, data_dir: Path, progress: OnProgress) -> ReadyToolchain:
        """The environment of the wheel; raises BrokenSourcesError if the compiler in it cannot be used."""
        index = dict(spec.origin)[ORIGIN]

        def fill(partial: Path) -> dict[str, Any]:
            installer = Installer(partial.parent, index)
            progress(f"{spec.label}: installing {' '.join(spec.requirements)}")
            return {"hashes": installer.install(installer.make_venv(partial), spec.requirements)}

        made = ready(spec, make_checked(spec, data_dir, progress, fill))
        return replace(made, requirements=(f"--extra-index-url={index}", *made.requirements))


def find_nightly(index: str, package: str, commit: CommitFiles) -> tuple[str, str]:
    """The version of the newest wheel of an index that is not newer than a commit, and why it is that one.

    Raises ConfigError if there is none, IndexUnreachableError if the index does not answer.
    """
    wheels = _wheels(index, package)
    history = source_of(commit).history(commit.target, commit.sha, _HISTORY)
    version, why = last_before(wheels, history, index)
    return str(version), f"the last wheel of {index} that holds no more than {commit.sha[:12]}: {why}"


def _wheels(index: str, package: str) -> list[IndexedWheel]:
    at, wheels = _listed.get((index, package), (-_ANSWER_HOLDS_S, []))
    if time.monotonic() - at >= _ANSWER_HOLDS_S:
        wheels = list_wheels(index, package, platform.python_version())
        _listed[index, package] = time.monotonic(), wheels
    return wheels


def last_before(
    wheels: Sequence[IndexedWheel], history: Sequence[Ancestor], index: str = ""
) -> tuple[Version, str]:
    """The version of the last wheel that does not hold more than the first commit of a history, and why.

    Raises ConfigError if all are newer, or name neither a commit nor a date.
    """
    named = [(found, one.version) for one in wheels if (found := named_commit(one.version))]
    for ancestor in history:
        hits = [version for found, version in named if ancestor.sha.startswith(found)]
        if hits:
            return max(hits), f"its version names {ancestor.sha[:12]}"
    dated = [(_made(one), one.version) for one in wheels if not named_commit(one.version)]
    before = [(at, version) for at, version in dated if at is not None and at <= history[0].at]
    if not before:
        raise ConfigError(
            f"{index} has no wheel from before {history[0].sha[:12]}: of {len(wheels)} that fit here, "
            f"{len(named)} name other commits and {len(dated)} are newer, or of an unknown date",
            key=_KEY,
        )
    # By version: a patch of an older series, or an old nightly, may be uploaded after what is newer.
    at, version = max(before, key=lambda one: one[1])
    return version, f"it is of {_utc(at)} or before, the commit of {_utc(history[0].at)}"


def named_commit(version: Version) -> str:
    """The beginning of the commit id that a version names, "" if it names none."""
    found = (_COMMIT_ID.match(part) for part in (version.local or "").split("."))
    return next((match[1] for match in found if match), "")


def _utc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _made(wheel: IndexedWheel) -> float | None:
    """When the wheel was made at the latest: uploaded, or the end of the day that its version names."""
    match = _DATE.match(str(wheel.version.dev or ""))
    if match:
        try:
            day = datetime.strptime(match[1], "%Y%m%d").replace(tzinfo=UTC)
        except ValueError:
            return wheel.at
        return wheel.at or (day + timedelta(days=1)).timestamp()
    return wheel.at
