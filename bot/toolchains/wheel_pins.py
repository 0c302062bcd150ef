"""The pin file of a wheel that nobody pins: the release, and the libraries beside it as installed here."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bot.config import RepositoryConfig
from bot.toolchains.existing import public_version
from bot.toolchains.release import exporters, reference_packages
from fuzzing import backends

#: A release that no backend treats in a way of its own.
NEWEST = "9999.0.0"


def pin_release(package: str, release: str) -> bytes:
    """A requirements.txt with the release, and the reference libraries at the versions installed here."""
    every = [backends.get(name) for name in backends.names()]
    names = {one for backend in every if backend.reference for one in backend.packages}
    names |= {one for backend in every for needed in backend.exporters.values() for one in needed}
    names -= {package, "numpy"}
    pins = [f"{package}=={release}"]
    for name in sorted(names):
        with suppress(PackageNotFoundError):
            pins.append(f"{name}=={public_version(version(name))}")
    return "\n".join(pins).encode()


def needed_beside(config: RepositoryConfig, package: str) -> tuple[str, ...]:
    """What a wheel of `package` made of a commit needs beside it: what the backend does, and the libraries of
    the cases at the versions installed here.
    """
    needed = {
        canonicalize_name(Requirement(item).name): item
        for item in backends.get(config.backend).requirements(NEWEST)
        if NEWEST not in item
    }
    for name in (*reference_packages(config), *exporters(config)):
        if name != "numpy":
            with suppress(PackageNotFoundError):
                needed[canonicalize_name(name)] = f"{name}=={public_version(version(name))}"
    needed.pop(canonicalize_name(package), None)
    return tuple(needed.values())
