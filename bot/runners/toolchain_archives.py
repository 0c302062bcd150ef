"""Toolchains for machines that do not share our disk: archives in the object store.

    {ASSAY_ARTIFACTS_URL}/toolchains/DIGEST-SHA256.tar.gz

The service uploads a toolchain before the first part of a shard that needs it. A machine without its
interpreter fetches it, checks the SHA-256 that came with the part, and keeps it for later parts. A toolchain
is a relocatable environment: only its links to an interpreter are the machine's own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tarfile
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from bot.atomic_folders import make_once
from bot.errors import RunnerError
from bot.file_lock import file_lock
from bot.object_store import ObjectStore
from fuzzing.errors import UsageError
from fuzzing.file_trees import remove_tree

#: Seconds for which a machine keeps a toolchain that no part uses: as long as the service keeps data sets.
KEPT_S = 30 * 86_400.0
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
#: The fastest level: half the size of the files in a third of the time that the default takes.
_LEVEL = 1
_PYVENV = "pyvenv.cfg"


@dataclass(frozen=True)
class ToolchainArchive:
    """Where a machine gets a toolchain.

    url     of the archive
    sha256  of its bytes
    python  version of the interpreter that it was made for, such as "3.11"
    """

    url: str
    sha256: str
    python: str

    def to_json(self) -> dict[str, str]:
        """The archive as it is sent to a machine."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Any) -> ToolchainArchive:
        """The archive that was sent; raises UsageError for anything else."""
        valid = isinstance(found, dict) and all(isinstance(text, str) for text in found.values())
        if not valid or found.keys() != {"url", "sha256", "python"} or not _SHA256.fullmatch(found["sha256"]):
            raise UsageError("the description of a toolchain's archive is malformed")
        return cls(**found)


class ToolchainArchives:
    """The archives of the toolchains of a data folder, below the store at `url`."""

    def __init__(self, url: str, data_dir: Path) -> None:
        self._store = ObjectStore(f"{url.rstrip('/')}/toolchains")
        self._root = (data_dir / "toolchains").absolute()

    def publish(self, python: str) -> ToolchainArchive | None:
        """The archive of the toolchain with this interpreter, uploaded unless it is there.

        None for an interpreter that is no toolchain of the data folder: machines need it at the same path.
        Raises InfrastructureError if the store does not work.
        """
        folder = Path(python).parent.parent
        if folder.parent != self._root or not _DIGEST.fullmatch(folder.name):
            return None
        with file_lock(folder.with_name(f"{folder.name}.archive.lock")):
            record = folder.with_name(f"{folder.name}.archive")
            if record.is_file():
                kept = ToolchainArchive.from_json(json.loads(record.read_text(encoding="utf-8")))
                with self._store.connected("look for a toolchain in") as filesystem:
                    if filesystem.exists(kept.url):
                        return kept
            made = self._upload(folder)
            record.write_text(json.dumps(made.to_json()), encoding="utf-8")
            return made

    def _upload(self, folder: Path) -> ToolchainArchive:
        with tempfile.TemporaryDirectory(prefix="archive-", dir=self._root) as temporary:
            file = Path(temporary) / "toolchain.tar.gz"
            with tarfile.open(file, "w:gz", compresslevel=_LEVEL) as archive:
                archive.add(folder, ".", filter=lambda member: None if _leads_out(member) else member)
            with file.open("rb") as content:
                sha256 = hashlib.file_digest(content, "sha256").hexdigest()
            url = f"{self._store.url}/{folder.name}-{sha256[:16]}.tar.gz"
            with self._store.connected("upload a toolchain to") as filesystem:
                filesystem.put_file(str(file), url)
        return ToolchainArchive(url, sha256, _python_version(folder))


def fetch_toolchain(archive: ToolchainArchive) -> Path:
    """The interpreter of the toolchain on this machine, fetched unless an earlier part did.

    Raises RunnerError if the archive is not what the service uploaded, or needs another Python;
    InfrastructureError if the store does not work.
    """
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if archive.python != here:
        raise RunnerError(
            f"the toolchain needs Python {archive.python}, and Assay runs on {here} here; install Assay for "
            f"Python {archive.python} on this machine"
        )
    root = user_cache_path("assay") / "toolchains"
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = root / archive.sha256

    def unpack(partial: Path) -> None:
        file = partial.with_name(f"{partial.name}.tar.gz")
        try:
            _download(archive, file)
            with tarfile.open(file) as content:
                content.extractall(partial, filter="data")
        except tarfile.TarError as error:
            raise RunnerError(f"the toolchain's archive {archive.url} cannot be unpacked: {error}") from None
        finally:
            file.unlink(missing_ok=True)
        _link_interpreter(partial)

    make_once(folder, lambda made: (made / "bin" / "python").exists(), unpack)
    os.utime(folder)
    _remove_unused(root)
    return folder / "bin" / "python"


def _leads_out(member: tarfile.TarInfo) -> bool:
    """Whether a member is a link to the interpreter or to another one that is; machines make their own."""
    return member.issym() and (member.linkname.startswith("/") or member.name.startswith("./bin/python"))


def _python_version(folder: Path) -> str:
    """MAJOR.MINOR of an environment, which names its folder of packages."""
    [packages] = (folder / "lib").glob("python3.*")
    return packages.name.removeprefix("python")


def _download(archive: ToolchainArchive, file: Path) -> None:
    store = ObjectStore(archive.url.rpartition("/")[0])
    with store.connected("fetch a toolchain from") as filesystem:
        filesystem.get_file(archive.url, str(file))
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != archive.sha256:
        raise RunnerError(
            f"{archive.url} has the SHA-256 {found}, not {archive.sha256}; delete the object, and the "
            "service uploads the toolchain again"
        )


def _link_interpreter(folder: Path) -> None:
    """Points an environment to the interpreter that this process was made from."""
    base = Path(os.path.realpath(sys.executable))
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "python").symlink_to(base)
    for name in ("python3", f"python{_python_version(folder)}"):
        (folder / "bin" / name).symlink_to("python")
    settings = (folder / _PYVENV).read_text(encoding="utf-8").splitlines()
    others = [line for line in settings if line.partition("=")[0].strip() != "home"]
    (folder / _PYVENV).write_text("\n".join([f"home = {base.parent}", *others, ""]), encoding="utf-8")


def _remove_unused(root: Path) -> None:
    """Removes toolchains that no part has used for long."""
    for folder in root.iterdir():
        if _SHA256.fullmatch(folder.name) and time.time() - folder.stat().st_mtime > KEPT_S:
            with file_lock(folder.with_name(f"{folder.name}.lock")):
                remove_tree(folder)
