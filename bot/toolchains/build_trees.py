"""The folders in which commits are built, and what a build finds of the ones before it.

ROOT/<family>/work        the commit that is built now; its path stays, as build tools record it
ROOT/<family>/building    names that commit, where its build cannot write
ROOT/<family>/<commit>/   a tree as its build left it, and its wheel
ROOT/<family>/lock        held while one is built

A family is everything built by the same commands. A build goes on from the tree of an ancestor, never from
another branch's: what a pull request leaves behind, in the tree or in the compiler cache, reaches only the
commits that contain the pull request. Of a build that was killed only the compiler cache is kept, for the
same commit: files of the tree may be half-written, and ccache writes whole ones.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot import processes
from bot.atomic_folders import move_aside
from bot.commit_files import CommitFiles, TreeFile
from bot.errors import ProvisionError
from bot.file_lock import file_lock, unless_locked
from bot.toolchains.source_digests import checked_files, source_of
from fuzzing.file_trees import discard_tree, remove_tree

BUILDS = "builds"  # the folder of all families, in the cache of toolchains
#: Bounds of a commit. pytorch/pytorch has 21,000 files of 250 MB without its submodules.
MAX_FILES, MAX_BYTES = 200_000, 4 << 30
#: Trees kept of a family: those of a base, of its pull request, and of one more.
_KEPT = 3
_HISTORY = 1_000  # ancestors that are looked at for a tree
_FILES, _HOME, _WHEELS, _MANIFEST = "files", "home", "wheels", "assay-files.json"
_CCACHE, _BUILDING = "ccache", "building"
_READ_AT_ONCE = 64 << 20  # bytes
_COPY_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class BuildTree:
    """A folder with a commit's files.

    files     the commit's, and what builds made of them
    home      for caches of tools, kept with the files
    ancestor  the commit from whose tree it goes on, "" for none
    """

    folder: Path
    ancestor: str = ""

    @property
    def files(self) -> Path:
        """Where the commands run."""
        return self.folder / _FILES

    @property
    def home(self) -> Path:
        """The commands' home folder."""
        return self.folder / _HOME

    @property
    def compiler_cache(self) -> Path:
        """The folder of ccache."""
        return self.home / _CCACHE


#: Runs the commands in a tree; returns the wheel that they made.
Build = Callable[[BuildTree], Path]


@contextmanager
def built_wheel(family: Path, commit: CommitFiles, build: Build) -> Iterator[Path]:
    """The wheel of a commit, built now or found; it stays there for the block.

    Raises what `build` raises, of which nothing stays.
    """
    family.mkdir(parents=True, exist_ok=True)
    kept = family / commit.sha
    with file_lock(family / "lock"):
        for stale in family.glob("*.partial-*"):
            remove_tree(stale)
        if not kept.exists():
            tree = _prepare(family, commit)
            wheel = build(tree)
            _keep(tree, wheel, kept)
            _remove_old(family, kept)
        os.utime(kept)
        yield next((kept / _WHEELS).iterdir())


def remove_unused_trees(root: Path, before: float) -> None:
    """Removes the trees that were last used before a time, in seconds since the epoch.

    Those of a family of which one is built now stay.
    """
    for family in root.glob("*"):
        if not (family / "lock").is_file():
            continue
        with unless_locked(family / "lock") as unlocked:
            for tree in [path for path in family.iterdir() if unlocked and path.is_dir()]:
                if tree.stat().st_mtime < before:
                    remove_tree(move_aside(tree))


def _prepare(family: Path, commit: CommitFiles) -> BuildTree:
    """The work folder with the commit's files over the tree of its nearest ancestor that is kept."""
    work = family / "work"
    files = checked_files(commit, "", max_files=MAX_FILES, max_bytes=MAX_BYTES)
    history = source_of(commit).history(commit.target, commit.sha, _HISTORY)
    ancestor = next((one.sha for one in history if (family / one.sha).is_dir()), "")
    cache = _cache_of_killed(family, commit)
    remove_tree(work)  # a build that was killed may have left anything there
    (family / _BUILDING).write_text(commit.sha, encoding="utf-8")
    if ancestor:
        os.utime(family / ancestor)  # used: a bisection comes back to it
        _copy(family / ancestor, work)
        discard_tree(work / _WHEELS)
    tree = BuildTree(work, ancestor)
    for folder in (tree.files, tree.home / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    if cache:  # it began as a copy of the ancestor's
        remove_tree(tree.compiler_cache)
        cache.rename(tree.compiler_cache)
    _write_files(commit, tree, files)
    return tree


def _cache_of_killed(family: Path, commit: CommitFiles) -> Path | None:
    """The compiler cache that a killed build of this commit left, moved out of the work folder."""
    building, left = family / _BUILDING, BuildTree(family / "work").compiler_cache
    if not building.is_file() or building.read_text(encoding="utf-8") != commit.sha:
        return None
    plain = _has_plain_parents(family / "work", f"{_HOME}/{_CCACHE}") and not left.is_symlink()
    if not plain or not left.is_dir():
        return None
    return left.rename(family / f"{_CCACHE}.partial-{os.getpid()}")


def _keep(tree: BuildTree, wheel: Path, kept: Path) -> None:
    """Keeps the tree and its wheel; whole or not at all."""
    (tree.folder / _WHEELS).mkdir()
    shutil.copyfile(wheel, tree.folder / _WHEELS / wheel.name, follow_symlinks=False)
    partial = kept.with_name(f"{kept.name}.partial-{os.getpid()}")
    _copy(tree.folder, partial)
    partial.rename(kept)


def _remove_old(family: Path, newest: Path) -> None:
    kept = [path for path in family.iterdir() if path.is_dir() and path.name != "work" and path != newest]
    for old in sorted(kept, key=lambda path: path.stat().st_mtime, reverse=True)[_KEPT - 1 :]:
        remove_tree(move_aside(old))


def _copy(source: Path, target: Path) -> None:
    """Copies a tree with its times, which build tools go by; links are copied, not followed."""
    command = ["cp", "--archive", "--reflink=auto", "--no-target-directory", str(source), str(target)]
    env = processes.filtered_environment("PATH")
    done = processes.run(command, env=env, cwd=Path("/"), timeout=_COPY_TIMEOUT_S)
    if done.returncode:
        raise ProvisionError(f"cannot copy a build tree: {processes.tail(done.stderr, lines=2)}")


def _write_files(commit: CommitFiles, tree: BuildTree, files: Sequence[TreeFile]) -> None:
    """Makes the files those of the commit; equal ones keep their times, so that only the others are built."""
    manifest = tree.folder / _MANIFEST
    before: list[str] = json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else []
    names = {one.path for one in files}
    for gone in set(before) - names:
        if _has_plain_parents(tree.files, gone):
            (tree.files / gone).unlink(missing_ok=True)
    changed = [one for one in files if not _is_equal(tree.files, one)]
    for chunk in _chunks(changed):
        contents = source_of(commit).blobs(commit.target, commit.sha, [one.blob for one in chunk])
        for one, content in zip(chunk, contents, strict=True):
            _write(tree.files, one, content)
    manifest.unlink(missing_ok=True)
    manifest.write_text(json.dumps(sorted(names)), encoding="utf-8")


def _chunks(files: Sequence[TreeFile]) -> Iterator[list[TreeFile]]:
    chunk: list[TreeFile] = []
    size = 0
    for one in files:
        if chunk and size + one.size > _READ_AT_ONCE:
            yield chunk
            chunk, size = [], 0
        chunk.append(one)
        size += one.size
    if chunk:
        yield chunk


def _has_plain_parents(root: Path, name: str) -> bool:
    """Whether all folders above a file are folders, and no links that an earlier build left."""
    return not any((root / parent).is_symlink() for parent in Path(name).parents)


def _is_equal(root: Path, file: TreeFile) -> bool:
    """Whether a file has the commit's content: git's id is that of a header and the content."""
    path = root / file.path
    if not _has_plain_parents(root, file.path) or path.is_symlink() or not path.is_file():
        return False
    if path.stat().st_size != file.size or os.access(path, os.X_OK) != file.executable:
        return False
    algorithm = "sha1" if len(file.blob) == 40 else "sha256"
    content = path.read_bytes()
    return hashlib.new(algorithm, b"blob %d\0" % len(content) + content).hexdigest() == file.blob


def _write(root: Path, file: TreeFile, content: bytes) -> None:
    """Writes a file inside of the tree, whatever an earlier build left in its place."""
    for parent in [*Path(file.path).parents][-2::-1]:
        folder = root / parent
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink(missing_ok=True)
            folder.mkdir()
    path = root / file.path
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    path.chmod(0o755 if file.executable else 0o644)
