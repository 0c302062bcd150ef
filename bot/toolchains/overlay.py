"""The `overlay` provisioner: the wheel of the nearest release with a commit's Python sources laid over it.

Where an index of nightly builds is configured, its last wheel from before the commit is tried first.

Generated and native files of the wheel stay. What differs from the wheel is written, what the commit deleted
goes, all else is a hard link to the wheel's own environment, so that an overlay costs a second and few bytes.
Two commits whose compiler sources differ in layout and comments alone are one toolchain and share all
verdicts. An overlay counts as made once it passes a smoke test (`fuzzing.smoke_test`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from bot.commit_files import CommitFiles, ReadFile
from bot.config import RepositoryConfig
from bot.config.layouts import SourceLayout, recognize
from bot.config.sections import ToolchainConfig
from bot.errors import BrokenSourcesError, ConfigError, ProvisionError
from bot.toolchains import registry
from bot.toolchains.commit_toolchain import RECORD, make_checked
from bot.toolchains.index import ORIGIN, find_nightly
from bot.toolchains.installer import Installer
from bot.toolchains.probe import compile_bytecode
from bot.toolchains.registry import Folder, OnProgress, ReadyToolchain, ToolchainSpec, provisioner
from bot.toolchains.source_digests import checked_files, folder_digest, source_of
from bot.toolchains.unreachable_sources import release_commit
from bot.toolchains.wheel_pins import pin_release
from fuzzing.file_trees import remove_tree

_ROOTS = "lib/python3*/site-packages"
_DIGESTS = "source-digests.txt"
#: Seconds for which the answer of the package index holds: releases of a compiler are months apart.
_ANSWER_HOLDS_S = 3600.0
_KEY = "toolchain.provisioner"


def find_layout(commit: CommitFiles) -> SourceLayout:
    """The layout of the commit's repository; raises ConfigError if it is no known compiler's."""
    layout = recognize(lambda path: commit(path) is not None)
    if layout is None:
        raise ConfigError(
            f"{commit.sha[:12]} is no commit of a known compiler's repository; "
            "bot/config/layouts lists the files by which they are recognized",
            key=_KEY,
        )
    return layout


def release_series(commit: CommitFiles, layout: SourceLayout) -> tuple[int, int]:
    """The release series (major, minor) that a commit develops; raises ConfigError if nothing names it."""
    source = source_of(commit)
    tags = source.tags(commit.target, commit.sha, layout.tag) if layout.tag else ()
    found = {tag: series for tag in tags if (series := layout.series_of(tag, of_tag=True))}
    if found:
        newest = max(found.values())
        # A release is cut from the line of development, some commits after the tag of the next series.
        near = (tag for tag, series in found.items() if series >= (newest[0], newest[1] - 1))
        own = (tag for tag in near if source.tag(commit.target, commit.sha, tag) == commit.sha)
        return next((found[tag] for tag in own if _is_release(tag)), newest)
    text = (commit(layout.version_file) or b"").decode(errors="replace") if layout.version_file else ""
    series = layout.series_of(text, of_tag=False)
    if series is None:
        where = " or ".join(filter(None, ("a git tag" if layout.tag else "", layout.version_file)))
        raise ConfigError(
            f"which release {commit.sha[:12]} is near is not known: {where} names none; "
            f"name a VERSION of {layout.package}",
            key="toolchain.wheel",
        )
    return series


def _is_release(tag: str) -> bool:
    """Whether a tag names a release, not `v0.27.dev0` or a candidate."""
    try:
        return not Version(tag).is_prerelease
    except InvalidVersion:
        return False


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
        raise ProvisionError(f"the package index has no wheel of {package}; name one as toolchain.wheel")
    return wheels


@provisioner("overlay", configurable=True)
class OverlayProvisioner:
    """Lays the sources of a commit over an installed wheel."""

    def __init__(self) -> None:
        self._wheels: dict[tuple[str, tuple[int, int]], tuple[float, tuple[str, ...]]] = {}

    def resolve(
        self, config: RepositoryConfig, read: ReadFile, data_dir: Path | None = None
    ) -> ToolchainSpec:
        """The whole package over the nearest wheel, else its frontends alone, else the same over the next
        wheel; raises ConfigError.

        Runs nothing of the commit.
        """
        if not isinstance(read, CommitFiles):
            raise ConfigError("overlays need a git repository", key=_KEY)
        layout = find_layout(read)
        if layout.backend != config.backend:
            raise ConfigError(
                f"it is {config.backend}, and this is {layout.backend}'s repository", key="backend"
            )
        wheels = self._find_wheels(config.toolchain, read, layout)
        cache = data_dir / "toolchains" / _DIGESTS if data_dir else None
        variants = []
        for variant in layout.variants():
            folders = tuple(
                Folder(path, place, content, whole=variant.complete)
                for path, place in variant.paths.items()
                if (content := folder_digest(read, path, cache))
            )
            if not folders:
                raise ConfigError(f"{read.sha[:12]} has none of {', '.join(variant.paths)}", key=_KEY)
            variants.append((variant, folders))
        # All that is tried of one wheel comes before the next one: a wheel of another time costs an
        # installation, and less of the commit works with it.
        specs = [
            _spec(config, read, variant, one, folders) for one in wheels for variant, folders in variants
        ]
        return registry.link(specs)

    def provision(self, spec: ToolchainSpec, data_dir: Path, progress: OnProgress) -> ReadyToolchain:
        """The overlaid environment, made now or found from before; failures are found from before, too.

        Raises BrokenSourcesError if the compiler cannot be imported or used with the commit's sources.
        """
        maker = "index" if spec.origin else "release"
        wheel = replace(spec, provisioner=maker, label=_wheel_label(spec), overlay=())
        ready = registry.get(maker).provision(wheel, data_dir, progress)
        released = Path(ready.python).parents[1]

        def fill(partial: Path) -> dict[str, Any]:
            progress(f"{spec.label}: laying the sources over the wheel")
            _link_environment(released, partial)
            written = _lay_over(partial, spec)
            compile_bytecode(
                partial, [str(path) for path in written if _has_bytecode(released, partial, path)]
            )
            return {"versions": dict(ready.versions)}

        python = str(make_checked(spec, data_dir, progress, fill) / "bin" / "python")
        return ReadyToolchain(spec, spec.digest, python, ready.versions, ready.requirements)

    def _find_wheels(
        self, toolchain: ToolchainConfig, commit: CommitFiles, layout: SourceLayout
    ) -> list[_Wheel]:
        """The wheels to try, in order; raises ConfigError if none is known."""
        if toolchain.wheel:
            return [_Wheel(layout.package, toolchain.wheel)]
        nightly = list[_Wheel]()
        if toolchain.index:
            package = toolchain.package or layout.package
            with suppress(ConfigError):  # the index has none from before the commit
                version, choice = find_nightly(toolchain.index, package, commit)
                nightly = [_Wheel(package, version, toolchain.index, choice)]
        try:
            releases = self._nearest(layout.package, release_series(commit, layout))
        except (ConfigError, ProvisionError):
            if nightly:
                return nightly
            raise
        return [*nightly, *(_Wheel(layout.package, one) for one in releases)]

    def _nearest(self, package: str, series: tuple[int, int]) -> tuple[str, ...]:
        at, wheels = self._wheels.get((package, series), (-_ANSWER_HOLDS_S, ()))
        if time.monotonic() - at >= _ANSWER_HOLDS_S:
            wheels = nearest_wheels(Installer(Path(tempfile.gettempdir())), package, series)
            self._wheels[package, series] = time.monotonic(), wheels
        return wheels


@dataclass(frozen=True)
class _Wheel:
    """What sources are laid over: a release, or a wheel of an index and why it is that one."""

    package: str
    version: str
    index: str = ""
    choice: str = ""


def _spec(
    config: RepositoryConfig,
    commit: CommitFiles,
    layout: SourceLayout,
    wheel: _Wheel,
    folders: tuple[Folder, ...],
) -> ToolchainSpec:
    package = wheel.package if wheel.package != layout.package else None
    only = ToolchainConfig(extra=config.toolchain.extra, package=package)
    pinned = config.model_copy(update={"toolchain": only})
    released = registry.get("release").resolve(pinned, lambda _: pin_release(wheel.package, wheel.version))
    what = folders[0].path if len(folders) == 1 else f"{len(folders)} folders"
    return replace(
        released,
        provisioner="overlay",
        label=f"{released.label} with {what} of the commit",
        source="",
        origin=((ORIGIN, wheel.index),) if wheel.index else (),
        choice=wheel.choice,
        overlay=folders,
        commit=commit,
        unreachable=layout.unreachable(),
    )


def _wheel_label(spec: ToolchainSpec) -> str:
    return spec.requirements[0].replace("==", " ")


def _link_environment(source: Path, target: Path) -> None:
    """A copy of a relocatable environment whose files are hard links; symbolic links stay what they are."""
    shutil.copytree(source, target, copy_function=_link, symlinks=True, dirs_exist_ok=True)
    (target / RECORD).unlink(missing_ok=True)


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or too many links
        shutil.copy2(source, target, follow_symlinks=False)
    return target


def _lay_over(folder: Path, spec: ToolchainSpec) -> list[Path]:
    """Puts the commit's files in their places; returns the files that it wrote."""
    written: list[Path] = []
    commit = spec.commit
    assert commit is not None
    site = next(folder.glob(_ROOTS))
    # A file of the wheel that the commit lacks may as well be made by the build; the release's tree decides.
    released = release_commit(spec)
    for one in spec.overlay:
        place = site / one.place
        if not place.is_dir():
            raise BrokenSourcesError(
                f"{spec.label}: the wheel has no folder {one.place}: it is too far from the commit"
            )
        files = checked_files(commit, one.path)
        names = [file.path.removeprefix(f"{one.path}/") for file in files]
        before = checked_files(replace(commit, sha=released), one.path) if released else ()
        for gone in {file.path.removeprefix(f"{one.path}/") for file in before} - set(names):
            (place / gone).unlink(missing_ok=True)  # deleted since the release
        if one.whole:
            remove_tree(place)  # links: the wheel's own environment keeps the files
        contents = source_of(commit).blobs(commit.target, commit.sha, [file.blob for file in files])
        for name, file, content in zip(names, files, contents, strict=True):
            if _write(place / name, content, executable=file.executable):
                written.append(place / name)
    return written


def _has_bytecode(released: Path, folder: Path, source: Path) -> bool:
    """Whether a file is one that importing the released compiler loads, or is in its place."""
    place = released / source.relative_to(folder).parent / "__pycache__"
    return source.suffix == ".py" and any(place.glob(f"{source.stem}.*.pyc"))


def _write(path: Path, content: bytes, *, executable: bool) -> bool:
    """Whether the file was written: not if it is as it should be."""
    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # never through the link: the wheel's own file stays as it is
    path.write_bytes(content)
    path.chmod(0o755 if executable else 0o644)
    for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        stale.unlink()
    return True
