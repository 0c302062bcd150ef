"""The pin file of a wheel that nobody pins: the release, and the libraries beside it as installed here."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from bot.config import RepositoryConfig
from bot.toolchains.existing import public_version
from bot.toolchains.release import reference_packages
from fuzzing import backends


def pin_release(package: str, release: str) -> bytes:
    """A requirements.txt with the release, and the reference libraries at the versions installed here."""
    references = [backends.get(name) for name in backends.names() if backends.get(name).reference]
    names = {one for reference in references for one in reference.packages} - {package, "numpy"}
    pins = [f"{package}=={release}"]
    for name in sorted(names):
        with suppress(PackageNotFoundError):
            pins.append(f"{name}=={public_version(version(name))}")
    return "\n".join(pins).encode()


def reference_pins(config: RepositoryConfig, package: str) -> tuple[str, ...]:
    """The reference libraries that the cases of a configuration need, at the versions installed here."""
    pins = []
    for name in reference_packages(config):
        if name not in (package, "numpy"):
            with suppress(PackageNotFoundError):
                pins.append(f"{name}=={public_version(version(name))}")
    return tuple(pins)
