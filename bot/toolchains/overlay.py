"""The `overlay` provisioner: the wheel of the nearest release with a commit's Python sources laid over it.

Generated and native files of the wheel stay. What differs from the wheel is written, what the commit deleted
goes, all else is a hard link to the wheel's own environment, so that an overlay costs a second and few bytes.
Two commits with the same compiler sources are one toolchain and share all verdicts.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Protocol

from bot.config import RepositoryConfig
from bot.errors import ConfigError, ProvisionError, UsageError
from bot.toolchains import registry
from bot.toolchains.cache import make_once
from bot.toolchains.installer import Installer
from bot.toolchains.layouts import SourceLayout, recognize
from bot.toolchains.probe import compile_bytecode, probe
from bot.toolchains.registry import OnProgress, ReadFile, ReadyToolchain, ToolchainSpec, provisioner
from fuzzing import backends

_RECORD = "assay-toolchain.json"  # written last; a folder without it is not a toolchain
_ROOTS = "lib/python3*/site-packages"


class SourceFile(Protocol):
    """A file of a commit (`bot.github.local_repository.TreeFile`)."""

    @property
    def path(self) -> str:
        """Its path in the repository."""
        ...

    @property
    def executable(self) -> bool:
        """Whether it may be executed."""
        ...

    @property
    def blob(self) -> str:
        """The id of its content."""
        ...


class CommitSource(Protocol):
    """The repository that the sources come from (`bot.github.local_repository.LocalRepository`)."""

    def read(self, target: str, sha: str, path: str, /) -> bytes | None:
        """The content of a file at a commit; None if there is no such file."""
        ...

    def tree(self, sha: str, path: str, /) -> str:
        """The id of a folder's tree, "" if there is none."""
        ...

    def files(self, sha: str, path: str, /) -> Iterator[SourceFile]:
        """The regular files below a folder."""
        ...

    def blobs(self, ids: Sequence[str], /) -> Iterator[bytes]:
        """The contents of blobs, in order."""
        ...

    def tag(self, name: str, /) -> str:
        """The commit that a tag names, "" if there is none."""
        ...

    def newest_tags(self, sha: str, /) -> tuple[str, ...]:
        """The nearest tags that lead to a commit."""
        ...


class BrokenSourcesError(ProvisionError):
    """The wheel works, and with the commit's sources over it the compiler cannot be imported."""


@dataclass(frozen=True)
class SourceCommit:
    """One commit of a compiler's repository."""

    repository: CommitSource
    sha: str

    def read(self, path: str) -> bytes | None:
        """The content of a file; None if there is no such file."""
        return self.repository.read("", self.sha, path)


def find_layout(commit: SourceCommit) -> SourceLayout:
    """The layout of the commit's repository; raises UsageError if it is no known compiler's."""
    layout = recognize(lambda path: commit.read(path) is not None)
    if layout is None:
        raise UsageError(
            f"{commit.sha[:12]} is no commit of a known compiler's repository; "
            "bot/toolchains/layouts lists the files by which they are recognized"
        )
    return layout


def release_series(commit: SourceCommit, layout: SourceLayout) -> tuple[int, int]:
    """The release series (major, minor) that a commit develops; raises UsageError if nothing names it."""
    if layout.version_file:
        text = (commit.read(layout.version_file) or b"").decode(errors="replace")[:1000]
        found = layout.series_of(text, of_tag=False)
    else:
        tags = commit.repository.newest_tags(commit.sha)
        found = next(filter(None, (layout.series_of(tag, of_tag=True) for tag in tags)), None)
    if found is None:
        where = layout.version_file or "a git tag"
        raise UsageError(
            f"which release {commit.sha[:12]} is near is not known: {where} names none; "
            f"name the wheel, such as --release VERSION of {layout.package}"
        )
    return found


def nearest_wheels(installer: Installer, package: str, series: tuple[int, int]) -> tuple[str, ...]:
    """The newest wheels of a series, of the series before it and of the one after it, nearest first.

    Raises ProvisionError if there is none.
    """
    major, minor = series
    here, after = f"{major}.{minor}", f"{major}.{minor + 1}.dev0"
    bounds = (f">={here},<{after}", f"<{here}", f">={after},<{major}.{minor + 2}.dev0")
    found = (installer.highest_release(f"{package}{one}") for one in bounds)
    wheels = tuple(filter(None, found))
    if not wheels:
        raise ProvisionError(f"the package index has no wheel of {package}; name one with --release")
    return wheels


@provisioner("overlay", configurable=False)
class OverlayProvisioner:
    """Lays the sources of a commit over an installed wheel."""

    def __init__(self) -> None:
        self._sources: dict[ToolchainSpec, tuple[SourceCommit, SourceLayout]] = {}

    def resolve(self, config: RepositoryConfig, _read: ReadFile) -> ToolchainSpec:
        """Raises ConfigError: a spec is made by `spec`, which also needs the wheel."""
        raise ConfigError(
            f"{config.backend}: overlays are made by `assay run --repo`", key="toolchain.provisioner"
        )

    def spec(self, commit: SourceCommit, layout: SourceLayout, wheel: ToolchainSpec) -> ToolchainSpec:
        """The commit's sources over the toolchain `wheel`, which the `release` provisioner makes."""
        trees = tuple(
            (path, tree) for path in layout.paths if (tree := commit.repository.tree(commit.sha, path))
        )
        parts = "" if not layout.widest else f" ({', '.join(layout.paths)})"
        label = f"{layout.backend} {commit.sha[:12]}{parts} over {wheel.label}"
        made = replace(wheel, provisioner="overlay", label=label, overlay=trees)
        self._sources[made] = commit, layout
        return made

    def provision(self, spec: ToolchainSpec, data_dir: Path, progress: OnProgress) -> ReadyToolchain:
        """The overlaid environment, made now or found from before.

        Raises BrokenSourcesError if the compiler cannot be imported with the commit's sources.
        """
        wheel = replace(spec, provisioner="release", overlay=())
        ready = registry.get("release").provision(wheel, data_dir, progress)
        root = (data_dir / "toolchains").absolute()
        folder = root / spec.digest
        commit, layout = self._sources[spec]

        def build(partial: Path) -> None:
            progress(f"{spec.label}: laying the sources over the wheel")
            _link_environment(Path(ready.python).parents[1], partial)
            _lay_over(partial, commit, spec, layout)
            _check_import(partial, spec)
            (partial / _RECORD).write_text(json.dumps({"label": spec.label}), encoding="utf-8")

        made = make_once(folder, lambda place: (place / _RECORD).is_file(), build)
        progress(f"{spec.label}: {'made' if made else 'made before'}")
        versions = ready.versions | {"sources": commit.sha}
        return ReadyToolchain(spec, spec.digest, str(folder / "bin" / "python"), versions, ready.requirements)


def _link_environment(source: Path, target: Path) -> None:
    """A copy of a relocatable environment whose files are hard links; symbolic links stay what they are."""
    shutil.copytree(source, target, copy_function=_link, symlinks=True, dirs_exist_ok=True)
    (target / _RECORD).unlink(missing_ok=True)


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or too many links
        shutil.copy2(source, target, follow_symlinks=False)
    return target


def _lay_over(folder: Path, commit: SourceCommit, spec: ToolchainSpec, layout: SourceLayout) -> None:
    site = next(folder.glob(_ROOTS))
    released = _release_commit(commit, spec)
    for source, _ in spec.overlay:
        place = site / layout.paths[source]
        if not place.is_dir():
            raise ProvisionError(
                f"the wheel has no folder {layout.paths[source]}: it is too far from the commit"
            )
        files = list(commit.repository.files(commit.sha, source))
        names = [_relative(one.path, source) for one in files]
        for one in commit.repository.files(released, source) if released else ():
            if _relative(one.path, source) not in names:  # deleted since the release
                (place / _relative(one.path, source)).unlink(missing_ok=True)
        contents = commit.repository.blobs([one.blob for one in files])
        for name, file, content in zip(names, files, contents, strict=True):
            _write(place / name, content, executable=file.executable)


def _release_commit(commit: SourceCommit, spec: ToolchainSpec) -> str:
    """The commit of the wheel's release, "" if the repository has no such tag: then no file is deleted.

    A file of the wheel that the commit lacks may as well be made by the build; the release's own tree tells.
    """
    version = spec.requirements[0].partition("==")[2].partition(".post")[0]
    for tag in (f"v{version}", version):
        found = commit.repository.tag(tag)
        if found:
            return found
    return ""


def _relative(path: str, folder: str) -> str:
    return PurePosixPath(path).relative_to(folder).as_posix()


def _write(path: Path, content: bytes, *, executable: bool) -> None:
    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # never through the link: the wheel's own file stays as it is
    path.write_bytes(content)
    path.chmod(0o755 if executable else 0o644)


def _check_import(folder: Path, spec: ToolchainSpec) -> None:
    try:
        found = probe(folder / "bin" / "python", backends.get(spec.backend).import_name)
    except ProvisionError as error:
        raise BrokenSourcesError(f"{spec.label}: the compiler cannot be imported: {error}") from None
    compile_bytecode(folder, found.sources)


def overlay() -> OverlayProvisioner:
    """The registered provisioner."""
    found = registry.get("overlay")
    assert isinstance(found, OverlayProvisioner)
    return found
