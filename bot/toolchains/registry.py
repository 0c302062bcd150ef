"""The interface of toolchains. A provisioner is a file here that `@provisioner(name)` registers."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bot.config import RepositoryConfig
from fuzzing.registry import Registry

ReadFile = Callable[[str], bytes | None]
OnProgress = Callable[[str], None]


@dataclass(frozen=True)
class ToolchainSpec:
    """A toolchain that is wanted, before it is made.

    requirements   what is installed, in pip's words, each pinned exactly or a bound the backend needs
    label          for people, such as "openvino 2024.0.0"
    python         the interpreter of an `existing` toolchain; "" for the one Assay runs on
    source         the file that asked for it, for error messages; no part of the identity
    overlay        (folder of the repository, id of its git tree) of what is laid over the wheel
    """

    provisioner: str
    backend: str
    requirements: tuple[str, ...]
    label: str
    python: str = ""
    source: str = field(default="", compare=False)
    overlay: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """64 hex digits that name this toolchain on this kind of machine for ever."""
        identity = {
            "provisioner": self.provisioner,
            "requirements": sorted(self.requirements),
            "interpreter": self.python,
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "platform": [platform.system(), platform.machine(), *platform.libc_ver()],
        } | ({"overlay": sorted(self.overlay)} if self.overlay else {})
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class ReadyToolchain:
    """A toolchain that runs.

    digest         names what was found in it; for a release, the spec's own
    python         path of its interpreter
    versions       package → version, and "python"
    requirements   what a stranger pip-installs to get the same
    """

    spec: ToolchainSpec
    digest: str
    python: str
    versions: dict[str, str]
    requirements: tuple[str, ...]


class Provisioner(Protocol):
    """Makes toolchains of one kind."""

    def resolve(self, config: RepositoryConfig, read: ReadFile, /) -> ToolchainSpec:
        """The toolchain of a configuration; raises ConfigError."""
        ...

    def provision(self, spec: ToolchainSpec, data_dir: Path, progress: OnProgress, /) -> ReadyToolchain:
        """Makes it, or finds it made; raises ProvisionError that says what to fix."""
        ...


_PROVISIONERS: Registry[Provisioner] = Registry("provisioner", "bot.toolchains")


def provisioner(name: str, *, configurable: bool) -> Callable[[type[Any]], type[Any]]:
    """Registers a Provisioner class; `configurable`: a repository's configuration may name it.

    `bot.config.names.provisioners` reads the keyword from the source.
    """
    del configurable

    def register(kind: type[Any]) -> type[Any]:
        _PROVISIONERS.add(kind(), name)
        return kind

    return register


def get(name: str) -> Provisioner:
    """The provisioner of this name; raises UnknownNameError that lists them if there is none."""
    return _PROVISIONERS.get(name)
