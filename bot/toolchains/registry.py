"""What a toolchain is, and who makes one.

A provisioner is one file of this folder; `@provisioner(name)` registers it (law 4).
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol

from bot.errors import UsageError

if TYPE_CHECKING:
    from bot.config import RepositoryConfig

Read = Callable[[str], bytes | None]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Spec:
    """A toolchain that is wanted, before it is made.

    requirements   what is installed, in pip's words, each pinned exactly or a bound the backend needs
    label          for people, such as "openvino 2024.0.0"
    python         the interpreter of an `existing` toolchain; "" for the one Assay runs on
    source         the file that asked for it, for error messages; no part of the identity
    """

    provisioner: str
    backend: str
    requirements: tuple[str, ...]
    label: str
    python: str = ""
    source: str = field(default="", compare=False)

    @property
    def digest(self) -> str:
        """64 hex digits that name this toolchain on this kind of machine for ever."""
        identity = {
            "provisioner": self.provisioner,
            "requirements": sorted(self.requirements),
            "interpreter": self.python,
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "platform": [platform.system(), platform.machine(), *platform.libc_ver()],
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Ready:
    """A toolchain that runs.

    digest         names what was found in it; for a release, the spec's own
    python         path of its interpreter
    versions       package → version, and "python"
    requirements   what a stranger pip-installs to get the same
    """

    spec: Spec
    digest: str
    python: str
    versions: dict[str, str]
    requirements: tuple[str, ...]


class Provisioner(Protocol):
    """Makes toolchains of one kind."""

    def resolve(self, config: RepositoryConfig, read: Read, /) -> Spec:
        """What a configuration asks for; raises ConfigError if it cannot be told."""
        ...

    def provision(self, spec: Spec, data_dir: Path, progress: Progress, /) -> Ready:
        """Makes it, or finds it made; raises ProvisionError that says what to fix."""
        ...


@dataclass(frozen=True)
class _Entry:
    provisioner: Provisioner
    offered: bool


_REGISTERED: dict[str, _Entry] = {}


def provisioner(name: str, *, offered: bool) -> Callable[[type[Any]], type[Any]]:
    """Registers a Provisioner class; `offered` says whether a repository's configuration may name it."""

    def register(kind: type[Any]) -> type[Any]:
        _REGISTERED[name] = _Entry(kind(), offered)
        return kind

    return register


def get(name: str) -> Provisioner:
    """The provisioner of this name; raises UsageError if there is none."""
    _load()
    if name not in _REGISTERED:
        raise UsageError(f"{name!r} is no provisioner; there are: {', '.join(sorted(_REGISTERED))}")
    return _REGISTERED[name].provisioner


def offered() -> tuple[str, ...]:
    """The names a repository's configuration may use."""
    _load()
    return tuple(sorted(name for name, entry in _REGISTERED.items() if entry.offered))


def _load() -> None:
    package = import_module("bot.toolchains")
    for module in iter_modules(package.__path__):
        import_module(f"bot.toolchains.{module.name}")
