"""The `overlay` provisioner: the wheel of the nearest release with a commit's Python sources laid over it.

Generated and native files of the wheel stay. What differs from the wheel is written, what the commit deleted
goes, all else is a hard link to the wheel's own environment, so that an overlay costs a second and few bytes.
Two commits with the same compiler sources are one toolchain and share all verdicts.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
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
from bot.toolchains.probe import probe
from bot.toolchains.registry import OnProgress, ReadFile, ReadyToolchain, ToolchainSpec, provisioner
from fuzzing import backends

_RECORD = "assay-toolchain.json"  # written last; a folder without it is not a toolchain
_ROOTS = "lib/python3*/site-packages"


class SourceFile(Protocol):
    """A file of a commit (`bot.github.local_repository.TreeFile`)."""

    path: str
    executable: bool
    blob: str


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
class CommitReader:
    """The files of one commit, as provisioners read them: call it with a path."""

    repository: CommitSource
    target: str
    sha: str

    def __call__(self, path: str) -> bytes | None:
        """The content of a file; None if it is not there."""
        return self.repository.read(self.target, self.sha, path)


def find_layout(reader: CommitReader) -> SourceLayout:
    """The layout of the commit's repository; raises UsageError if it is no known compiler's."""
    layout = recognize(lambda path: reader(path) is not None)
    if layout is None:
        raise UsageError(
            f"{reader.sha[:12]} is no commit of a known compiler's repository; "
            "bot/toolchains/layouts lists the files by which they are recognized"
        )
    return layout


def release_series(reader: CommitReader, layout: SourceLayout) -> tuple[int, int]:
    """The release series (major, minor) that a commit develops; raises UsageError if nothing names it."""
    if layout.version_file:
        text = (reader(layout.version_file) or b"").decode(errors="replace")[:1000]
        found = layout.series_of(text, of_tag=False)
    else:
        tags = reader.repository.newest_tags(reader.sha)
        found = next(filter(None, (layout.series_of(tag, of_tag=True) for tag in tags)), None)
    if found is None:
        where = layout.version_file or "a git tag"
        raise UsageError(
            f"which release {reader.sha[:12]} is near is not known: {where} names none; "
            f"name the wheel, such as --release VERSION of {layout.package}"
        )
    return found


def nearest_wheel(installer: Installer, package: str, series: tuple[int, int]) -> str:
    """The newest wheel of a series, else of the series before, else of the one after.

    Raises ProvisionError if there is none.
    """
    major, minor = series
    here, after = f"{major}.{minor}", f"{major}.{minor + 1}.dev0"
    for bounds in (f">={here},<{after}", f"<{here}", f">={here}"):
        found = installer.highest_release(Path(sys.executable), f"{package}{bounds}")
        if found is not None:
            return found
    raise ProvisionError(f"the package index has no wheel of {package}; name one with --release")


@provisioner("overlay", configurable=False)
class OverlayProvisioner:
    """Lays the sources of a commit over an installed wheel."""

    def __init__(self) -> None:
        self._readers: dict[tuple[tuple[str, str], ...], CommitReader] = {}

    def resolve(self, config: RepositoryConfig, _read: ReadFile) -> ToolchainSpec:
        """Raises ConfigError: a spec is made by `spec`, which also needs the wheel."""
        raise ConfigError(
            f"{config.backend}: overlays are made by `assay run --repo`", key="toolchain.provisioner"
        )

    def spec(self, reader: CommitReader, layout: SourceLayout, wheel: ToolchainSpec) -> ToolchainSpec:
        """The commit's sources over the toolchain `wheel`, which the `release` provisioner makes."""
        trees = tuple(
            (path, tree) for path in layout.paths if (tree := reader.repository.tree(reader.sha, path))
        )
        self._readers[trees] = reader
        label = f"{layout.backend} {reader.sha[:12]} over {wheel.label}"
        return replace(wheel, provisioner="overlay", label=label, overlay=trees)

    def provision(self, spec: ToolchainSpec, data_dir: Path, progress: OnProgress) -> ReadyToolchain:
        """The overlaid environment, made now or found from before.

        Raises BrokenSourcesError if the compiler cannot be imported with the commit's sources.
        """
        wheel = replace(spec, provisioner="release", overlay=())
        ready = registry.get("release").provision(wheel, data_dir, progress)
        root = (data_dir / "toolchains").absolute()
        folder = root / spec.digest
        reader = self._readers[spec.overlay]

        def build(partial: Path) -> None:
            progress(f"{spec.label}: laying the sources over the wheel")
            _link_environment(Path(ready.python).parents[1], partial)
            _lay_over(partial, reader, spec, find_layout(reader))
            _check_import(partial, spec)
            (partial / _RECORD).write_text(json.dumps({"label": spec.label}), encoding="utf-8")

        made = make_once(folder, lambda place: (place / _RECORD).is_file(), build)
        progress(f"{spec.label}: {'made' if made else 'made before'}")
        versions = ready.versions | {"sources": reader.sha}
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


def _lay_over(folder: Path, reader: CommitReader, spec: ToolchainSpec, layout: SourceLayout) -> None:
    site = next(folder.glob(_ROOTS))
    released = _release_commit(reader, spec)
    for source, _ in spec.overlay:
        place = site / layout.paths[source]
        if not place.is_dir():
            raise ProvisionError(
                f"the wheel has no folder {layout.paths[source]}: it is too far from the commit"
            )
        files = list(reader.repository.files(reader.sha, source))
        names = [_relative(one.path, source) for one in files]
        for one in reader.repository.files(released, source) if released else ():
            if _relative(one.path, source) not in names:  # deleted since the release
                (place / _relative(one.path, source)).unlink(missing_ok=True)
        contents = reader.repository.blobs([one.blob for one in files])
        for name, file, content in zip(names, files, contents, strict=True):
            _write(place / name, content, executable=file.executable)


def _release_commit(reader: CommitReader, spec: ToolchainSpec) -> str:
    """The commit of the wheel's release, "" if the repository has no such tag: then no file is deleted.

    A file of the wheel that the commit lacks may as well be made by the build; the release's own tree tells.
    """
    version = spec.requirements[0].partition("==")[2].partition(".post")[0]
    for tag in (f"v{version}", version):
        found = reader.repository.tag(tag)
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
        probe(folder / "bin" / "python", backends.get(spec.backend).import_name)
    except ProvisionError as error:
        raise BrokenSourcesError(f"{spec.label}: the compiler cannot be imported: {error}") from None


def overlay() -> OverlayProvisioner:
    """The registered provisioner."""
    found = registry.get("overlay")
    assert isinstance(found, OverlayProvisioner)
    return found
