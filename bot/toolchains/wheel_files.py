"""Wheels that were built for one commit: their checks and their installation."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from bot.errors import BuildFailedError
from bot.toolchains.installer import Installer

#: Bounds of a wheel. torch's with CUDA, the largest, is 0.9 GB, 1.9 GB unpacked, and holds 13,000 files.
MAX_BYTES, MAX_UNPACKED_BYTES, MAX_ENTRIES = 4 << 30, 16 << 30, 100_000
_CHUNK = 1 << 20


def choose_wheel(wheels: list[Path], package: str) -> Path:
    """The one wheel of a package; raises BuildFailedError unless there is exactly one."""
    found = [path for path in wheels if _distribution(path) == canonicalize_name(package)]
    if len(found) != 1:
        names = ", ".join(sorted(path.name for path in wheels)[:10]) or "no wheel"
        raise BuildFailedError(f"the build must make one wheel of {package}; it made {names}")
    return found[0]


def check_wheel(path: Path) -> None:
    """Raises BuildFailedError: the file is no wheel, or would unpack to more than a wheel may."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_BYTES:
        raise BuildFailedError(f"{path.name} is no file of at most {MAX_BYTES >> 30} GiB")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise BuildFailedError(f"{path.name} is no wheel: {error}") from None
    check_entries(path.name, entries)


def check_entries(name: str, entries: list[zipfile.ZipInfo]) -> None:
    """Raises BuildFailedError: an archive unpacks to too much, or outside of its folder."""
    if len(entries) > MAX_ENTRIES or sum(one.file_size for one in entries) > MAX_UNPACKED_BYTES:
        raise BuildFailedError(
            f"{name} unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB or {MAX_ENTRIES:,} files"
        )
    for one in entries:
        if one.filename.startswith("/") or ".." in one.filename.split("/"):
            raise BuildFailedError(f"{name} holds {one.filename[:200]!r}, which is no path inside of it")


def install_wheel(folder: Path, wheel: Path, requirements: tuple[str, ...]) -> dict[str, Any]:
    """Makes an environment with a wheel and further requirements; returns the hashes of all."""
    check_wheel(wheel)
    installer = Installer(folder.parent)
    direct = f"{_distribution(wheel)} @ {wheel.absolute().as_uri()}"
    hashes = installer.install(installer.make_venv(folder), (direct, *requirements))
    return {"hashes": {**hashes, wheel.name: [f"sha256:{sha256_of(wheel)}"]}}


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file in hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _distribution(wheel: Path) -> str:
    try:
        return str(parse_wheel_filename(wheel.name)[0])
    except InvalidWheelFilename:
        return ""
