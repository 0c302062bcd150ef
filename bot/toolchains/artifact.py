"""The `artifact` provisioner: installs the wheel that the repository's own CI built for a commit.

It is an artifact of a workflow of GitHub Actions, or lies at an address that holds the commit's id. While CI
still builds, the campaign waits; what is not there in time is left to the next provisioner.
"""

from __future__ import annotations

import fnmatch
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from bot.commit_files import CiArtifact, CiSource, CommitFiles, ReadFile
from bot.config import RepositoryConfig
from bot.config.sections import ArtifactConfig
from bot.downloads import download
from bot.errors import BuildFailedError, BuildPendingError, ConfigError, ProvisionError, RefusalError
from bot.toolchains.commit_toolchain import make_checked, ready
from bot.toolchains.registry import OnProgress, ReadyToolchain, ToolchainSpec, provisioner
from bot.toolchains.wheel_files import (
    MAX_BYTES,
    check_entries,
    choose_wheel,
    install_wheel,
    sha256_of,
)
from bot.toolchains.wheel_pins import needed_beside
from fuzzing import backends

#: Seconds between two looks at CI; a build of a compiler takes some 20 minutes at least.
POLL_S = 60.0
_KEY = "toolchain.artifact"


class _NotBuiltError(ProvisionError):
    """CI ended without the wheel; a new run may make it, so that this is not kept."""


@provisioner("artifact", configurable=True)
class ArtifactProvisioner:
    """Downloads and installs a wheel of CI."""

    def resolve(
        self, config: RepositoryConfig, read: ReadFile, _data_dir: Path | None = None
    ) -> ToolchainSpec:
        """The wheel of the commit, built or not; raises ConfigError if its place is not configured."""
        wanted = config.toolchain.artifact
        if not (wanted.workflow or wanted.url):
            raise ConfigError("name the workflow that builds wheels, or an address", key=f"{_KEY}.workflow")
        if not isinstance(read, CommitFiles):
            raise ConfigError("a wheel of a commit needs a git repository", key="toolchain.provisioner")
        if not wanted.url and _ci(read) is None:
            raise ConfigError("workflows cannot be read without access to GitHub", key=f"{_KEY}.workflow")
        package = config.toolchain.package or backends.get(config.backend).package
        where = wanted.url or f"{read.target} {wanted.workflow} {wanted.name}"
        return ToolchainSpec(
            provisioner="artifact",
            backend=config.backend,
            requirements=(*needed_beside(config, package), *config.toolchain.extra),
            label=f"{package} that CI built of {read.sha[:12]}",
            origin=(("package", package), ("from", where), ("wheel", wanted.wheel), ("commit", read.sha)),
            commit=read,
            config=config.toolchain,
        )

    def provision(self, spec: ToolchainSpec, data_dir: Path, progress: OnProgress) -> ReadyToolchain:
        """The environment with the wheel.

        Raises BuildPendingError while CI builds, ProvisionError if it did not in time, BuildFailedError if it
        failed, BrokenSourcesError if the compiler that it built cannot be used.
        """
        folder = (data_dir / "toolchains").absolute() / spec.digest
        package = dict(spec.origin)["package"]

        def fill(partial: Path) -> dict[str, Any]:
            with _downloaded(spec, folder, package, progress) as (wheel, url):
                return install_wheel(partial, wheel, spec.requirements) | {"url": url}

        try:
            made = make_checked(spec, data_dir, progress, fill)
        except _NotBuiltError as error:
            raise BuildFailedError(str(error)) from None
        folder.with_name(f"{folder.name}.awaited").unlink(missing_ok=True)
        assert spec.config is not None
        url = spec.config.artifact.url
        return ready(spec, made, *([f"{package} @ {_address(url, spec)}"] if url else []))


def _ci(commit: CommitFiles) -> CiSource | None:
    found: CiSource | None = getattr(commit.repositories, "ci", None)
    return found


@contextmanager
def _downloaded(
    spec: ToolchainSpec, folder: Path, package: str, progress: OnProgress
) -> Iterator[tuple[Path, str]]:
    """The wheel in a temporary folder, and where it is from."""
    assert spec.config is not None
    assert spec.commit is not None
    wanted, commit = spec.config.artifact, spec.commit
    with tempfile.TemporaryDirectory(prefix="assay-artifact-") as place:
        if wanted.url:
            url = _address(wanted.url, spec)
            wheel = Path(place) / PurePosixPath(unquote(urlsplit(url).path)).name
            progress(f"{spec.label}: downloading {url}")
            try:
                download(url, wheel, MAX_BYTES)
            except RefusalError as error:
                _wait(folder, wanted, f"{error}")
        else:
            artifact, url = _find_artifact(spec, folder, wanted)
            progress(f"{spec.label}: downloading {artifact.name} of {url}")
            wheel = _unpack(_fetch(commit, artifact, Path(place)), wanted.wheel, package)
        yield choose_wheel([wheel], package), url


def _address(url: str, spec: ToolchainSpec) -> str:
    assert spec.commit is not None
    return url.replace("{sha}", spec.commit.sha)


def _find_artifact(spec: ToolchainSpec, folder: Path, wanted: ArtifactConfig) -> tuple[CiArtifact, str]:
    commit = spec.commit
    assert commit is not None
    ci, workflow = _ci(commit), str(wanted.workflow)
    assert ci is not None
    run = ci.workflow_run(commit.target, commit.sha, workflow)
    if run is None or not run.finished:
        what = f"{run.url} has not ended" if run else f"{workflow} has no run of {commit.sha[:12]}"
        _wait(folder, wanted, what)
    assert run is not None
    named = [one for one in run.artifacts if fnmatch.fnmatchcase(one.name, wanted.name)]
    if not named:
        names = ", ".join(one.name for one in run.artifacts[:10]) or "none"
        ended = "failed" if run.failed else "ended"
        raise _NotBuiltError(f"{run.url} {ended} without an artifact {wanted.name}; its artifacts: {names}")
    return max(named, key=lambda one: one.id), run.url


def _wait(folder: Path, wanted: ArtifactConfig, what: str) -> None:
    """Raises BuildPendingError, or ProvisionError once it was waited for long enough, restarts included.

    Where nothing is to be waited for, no time begins, which would be over when another waits.
    """
    if not wanted.wait:
        raise ProvisionError(what)
    since = folder.with_name(f"{folder.name}.awaited")
    if not since.exists():
        since.touch()
    if time.time() - since.stat().st_mtime < wanted.wait:
        raise BuildPendingError(f"waiting for CI: {what}", POLL_S)
    raise ProvisionError(f"{what}, after {wanted.wait:g} s; see toolchain.artifact.wait")


def _fetch(commit: CommitFiles, artifact: CiArtifact, place: Path) -> Path:
    """The archive; raises ProvisionError if it is too large or not of the digest that GitHub lists."""
    if artifact.size > MAX_BYTES:
        raise ProvisionError(f"{artifact.name} is larger than {MAX_BYTES >> 30} GiB")
    archive, ci = place / "artifact.zip", _ci(commit)
    assert ci is not None
    ci.download_artifact(commit.target, artifact.id, archive, MAX_BYTES)
    if artifact.sha256 and sha256_of(archive) != artifact.sha256:
        raise ProvisionError(f"{artifact.name} arrived with another hash than GitHub's {artifact.sha256}")
    return archive


def _unpack(archive: Path, pattern: str, package: str) -> Path:
    """The wheel in an archive; raises _NotBuiltError if it holds none or not one, or is no archive."""
    try:
        with zipfile.ZipFile(archive) as opened:
            check_entries(archive.name, opened.infolist())
            names = [
                one.filename
                for one in opened.infolist()
                if fnmatch.fnmatchcase(PurePosixPath(one.filename).name, pattern)
            ]
            wheel = choose_wheel([archive.with_name(PurePosixPath(name).name) for name in names], package)
            name = next(name for name in names if PurePosixPath(name).name == wheel.name)
            with opened.open(name) as source, wheel.open("wb") as target:
                shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, BuildFailedError) as error:
        raise _NotBuiltError(f"the artifact cannot be used: {error}") from None
    return wheel
