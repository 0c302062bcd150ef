"""The interface of toolchains. A provisioner is a file here that `@provisioner(name)` registers."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from bot.commit_files import CommitFiles, ReadFile
from bot.config import RepositoryConfig, ToolchainConfig
from fuzzing.registry import Registry

__all__ = [
    "Folder",
    "OnProgress",
    "Provisioner",
    "ReadFile",
    "ReadyToolchain",
    "ToolchainSpec",
    "get",
    "link",
    "provisioner",
]

OnProgress = Callable[[str], None]


@dataclass(frozen=True)
class Folder:
    """A folder of a commit that is laid over a wheel.

    path     in the repository
    place    in site-packages
    content  digest of its Python code, layout and comments aside, and of its other files
    whole    whether no file of the wheel stays in it
    """

    path: str
    place: str
    content: str
    whole: bool = False


@dataclass(frozen=True)
class ToolchainSpec:
    """A toolchain that is wanted, before it is made.

    requirements   what is installed, in pip's words, each pinned exactly or a bound the backend needs
    label          for people, such as "openvino 2024.0.0"
    python         the interpreter of an `existing` toolchain; "" for the one Assay runs on
    source         the file that asked for it, for error messages; no part of the identity
    overlay        what of a commit is laid over the wheel
    origin         where the wheel comes from, if from no release: fields and their values
    commit         where sources are read from; no part of the identity
    choice         why this wheel is taken, of several that an index has; no part of the identity
    config         how the wheel is made of the commit; no part of the identity
    unreachable    prefixes of the compiler's own files that the overlay does not carry
    otherwise      what is made where this cannot be made
    passed_over    why earlier provisioners cannot make this commit
    """

    provisioner: str
    backend: str
    requirements: tuple[str, ...]
    label: str
    python: str = ""
    source: str = field(default="", compare=False)
    overlay: tuple[Folder, ...] = ()
    origin: tuple[tuple[str, str], ...] = ()
    choice: str = field(default="", compare=False)
    config: ToolchainConfig | None = field(default=None, compare=False, repr=False)
    commit: CommitFiles | None = field(default=None, compare=False, repr=False)
    unreachable: tuple[str, ...] = field(default=(), compare=False, repr=False)
    otherwise: ToolchainSpec | None = field(default=None, compare=False, repr=False)
    passed_over: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def candidates(self) -> Iterator[ToolchainSpec]:
        """The spec and its alternatives in order, each alone."""
        spec: ToolchainSpec | None = self
        while spec is not None:
            yield replace(spec, otherwise=None)
            spec = spec.otherwise

    def like(self, other: ToolchainSpec) -> ToolchainSpec:
        """The candidate that is made as `other` is: the same folders over the same wheel, or by the same
        provisioner; else all of them.

        Two commits can be compared only so. Of two with different wheels the wheel of `other` is taken.
        """
        if other.commit is None:
            return self
        candidates = list(self.candidates())
        equal = next((one for one in candidates if one._recipe == other._recipe), None)
        if equal is not None or not other.overlay:
            return equal or self
        laid = next((one for one in candidates if one._places == other._places), None)
        if laid is None:
            return self
        return replace(
            laid,
            requirements=other.requirements,
            label=other.label,
            origin=other.origin,
            choice=other.choice,
        )

    def is_out_of_reach(self, path: str) -> bool:
        """Whether a file of the repository is the compiler's, and the overlay does not carry it."""
        laid = any(path.startswith(f"{one.path}/") for one in self.overlay)
        return path.startswith(self.unreachable) and not laid

    @property
    def predates(self) -> str:
        """Why two commits with this toolchain are not thereby equal, "" if they are.

        A wheel of an index holds no more than base, so that what changed after it is in neither.
        """
        if not self.choice or self.overlay:
            return ""
        return f"{self.label} is the last wheel from before base, and from before head as well"

    @property
    def _recipe(self) -> tuple[object, ...]:
        if not self.overlay:
            return (self.provisioner,)
        return self.provisioner, sorted(self.requirements), self._places

    @property
    def _places(self) -> tuple[tuple[str, str], ...]:
        return tuple((one.path, one.place) for one in self.overlay)

    @property
    def digest(self) -> str:
        """64 hex digits that name this toolchain on this kind of machine for ever."""
        identity = {
            "provisioner": self.provisioner,
            "requirements": sorted(self.requirements),
            "interpreter": self.python,
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "platform": [platform.system(), platform.machine(), *platform.libc_ver()],
        } | self._commit_identity()
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    def _commit_identity(self) -> dict[str, object]:
        laid = sorted((one.path, one.place, one.content) for one in self.overlay)
        parts = {"overlay": laid, "origin": dict(self.origin)}
        return {name: value for name, value in parts.items() if value}


@dataclass(frozen=True)
class ReadyToolchain:
    """A toolchain that runs.

    digest         names what was found in it; for a release, the spec's own
    python         path of its interpreter
    versions       package → version, and "python"
    requirements   what a stranger pip-installs to get the same
    passed_over    why earlier provisioners, or earlier candidates of this one, cannot make it
    """

    spec: ToolchainSpec
    digest: str
    python: str
    versions: dict[str, str]
    requirements: tuple[str, ...]
    passed_over: tuple[str, ...] = ()
    sources: str = ""  # as `bot.reports.campaign_view.InstalledToolchain` has it


class Provisioner(Protocol):
    """Makes toolchains of one kind."""

    def resolve(
        self, config: RepositoryConfig, read: ReadFile, data_dir: Path | None = None, /
    ) -> ToolchainSpec:
        """The toolchain of a configuration; raises ConfigError if this cannot make the commit."""
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


def link(specs: Sequence[ToolchainSpec]) -> ToolchainSpec:
    """One spec of several, each to be made if those before it cannot be."""
    flat = [one for spec in specs for one in spec.candidates()]
    linked = flat[-1]
    for one in reversed(flat[:-1]):
        linked = replace(one, otherwise=linked)
    return linked
