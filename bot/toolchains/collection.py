"""What lies in the cache of toolchains, and its garbage collection."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.atomic_folders import move_aside
from bot.errors import UsageError
from bot.file_lock import unless_locked
from bot.toolchains.build_trees import BUILDS, remove_unused_trees
from bot.toolchains.commit_toolchain import FAILURES, RECORD
from bot.toolchains.uses import Use, unless_held, uses
from fuzzing.file_trees import remove_tree

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class CachedToolchain:
    """A folder of the cache.

    record   how it was made: `label`, `requirements`, `overlay`, `commit`, `hashes`; of a failure, how it was
             tried
    failure  why it does not work, "" if it does
    made     seconds since the epoch
    size     bytes on disk; a file with several links counts in part for each
    uses     the last ones, oldest first
    held     whether a process uses it now
    """

    folder: Path
    record: dict[str, Any]
    failure: str
    made: float
    size: int
    uses: tuple[Use, ...]
    held: bool

    @property
    def label(self) -> str:
        """For people: its wheel and the first commit that it was made for."""
        label = str(self.record.get("label") or self.failure.partition("\n")[0] or "incomplete")
        commit = str(self.record.get("commit") or "")[:12]
        return label if commit in label else f"{label}, {commit}"

    @property
    def used(self) -> float:
        """When it was last used, or made."""
        return max([self.made, *(one.at for one in self.uses)])

    def to_json(self) -> dict[str, Any]:
        """Its entry of `--json`."""
        return {
            "digest": self.folder.name,
            "label": self.label,
            "record": self.record,
            "failure": self.failure,
            "made": self.made,
            "used": self.used,
            "bytes": self.size,
            "uses": [{"at": one.at, "by": one.by} for one in self.uses],
            "in_use": self.held,
        }


def toolchains(root: Path) -> list[CachedToolchain]:
    """All of the cache, the last used one first."""
    folders = [path for path in root.glob("*") if _DIGEST.fullmatch(path.name) and path.is_dir()]
    return sorted(filter(None, map(_read, folders)), key=lambda one: -one.used)


def find(root: Path, digest: str) -> CachedToolchain:
    """The toolchain whose digest begins so; raises UsageError unless there is exactly one."""
    found = [path for path in root.glob(f"{digest}*") if _DIGEST.fullmatch(path.name) and path.is_dir()]
    one = _read(found[0]) if len(found) == 1 else None
    if one is None:
        how_many = f"{len(found)} toolchains begin" if len(found) > 1 else "no toolchain begins"
        raise UsageError(f"{how_many} with {digest!r}; `assay toolchains list` shows them")
    return one


def collect(
    root: Path,
    max_bytes: int | None,
    max_age_s: float | None,
    *,
    dry_run: bool,
    keep: Collection[str] = (),
) -> Iterator[CachedToolchain]:
    """Removes toolchains not used for so long, and the least recently used ones beyond a size; yields them.

    Those that a process uses stay, and the digests `keep`. Build trees not used for so long go too, and what
    makers that died left. What is being made is not waited for: a build takes up to hours.
    """
    now, total = time.time(), 0
    for one in toolchains(root):
        too_old = max_age_s is not None and now - one.used > max_age_s
        too_many = max_bytes is not None and total + one.size > max_bytes
        if one.held or one.folder.name in keep or not (too_old or too_many):
            total += one.size
        elif dry_run or _remove(one.folder):
            yield one
    if not dry_run:
        _remove_leftovers(root)
        if max_age_s is not None:
            remove_unused_trees(root / BUILDS, now - max_age_s)


def _remove(folder: Path) -> bool:
    """Whether it was removed; not if a process uses it by now."""
    lock = folder.with_name(f"{folder.name}.lock")
    with unless_held(folder) as unused, unless_locked(lock) as unlocked:
        if not (unused and unlocked and folder.exists()):
            return False
        # First: after a kill no upload of this one may stand for that which is made next.
        folder.with_name(f"{folder.name}.archive").unlink(missing_ok=True)
        remove_tree(move_aside(folder))
        folder.with_name(f"{folder.name}.used").write_text("", encoding="utf-8")
    return True


def _remove_leftovers(root: Path) -> None:
    for partial in root.glob("*.partial-*"):
        digest = partial.name.partition(".")[0]
        with unless_locked(root / f"{digest}.lock") as unlocked:  # its maker holds the lock, unless it died
            if unlocked and partial.exists():
                remove_tree(partial)


def _read(folder: Path) -> CachedToolchain | None:
    """None if another process removes it meanwhile."""
    try:
        return _read_folder(folder)
    except FileNotFoundError:
        return None


def _read_folder(folder: Path) -> CachedToolchain:
    record = folder / RECORD
    failure = next((folder / name for name in FAILURES if (folder / name).is_file()), None)
    kept = record if record.is_file() else failure or folder
    with unless_held(folder) as free:
        held = not free
    return CachedToolchain(
        folder,
        json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {},
        failure.read_text(encoding="utf-8") if failure else "",
        kept.stat().st_mtime,
        _size(folder),
        tuple(uses(folder)),
        held,
    )


def _size(folder: Path) -> int:
    """Bytes on disk below a folder; st_blocks counts 512 bytes each (stat(2))."""
    total = 0.0
    for path, _, names in os.walk(folder):
        for name in names:
            stat = os.lstat(os.path.join(path, name))  # noqa: PTH118 - a Path for each of 30,000 files is slow
            total += stat.st_blocks * 512 / stat.st_nlink
    return int(total)
