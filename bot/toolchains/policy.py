"""Which toolchains a service makes: the packages that may be asked for, and the isolation that foreign code
needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bot import toolchains
from bot.config import RepositoryConfig
from bot.errors import ConfigError, ProvisionError
from bot.isolation import Isolation, machine_isolation
from bot.toolchains.registry import OnProgress, ReadFile, ReadyToolchain, ToolchainSpec
from bot.toolchains.wheel_pins import NEWEST
from fuzzing import backends


@dataclass(frozen=True)
class ToolchainPolicy:
    """What the operator allows.

    isolation  lowest level for code that is no public release of a known compiler (isolation.LEVELS)
    packages   values of `toolchain.package` allowed beside the backend's own packages
    urls       beginnings of the addresses that wheels may come from
    data_dir   holds caches; None for none
    """

    isolation: str
    packages: Collection[str] = ()
    measure: Callable[[], Isolation] = machine_isolation
    data_dir: Path | None = None
    urls: Collection[str] = ()

    def resolve(self, config: RepositoryConfig, read: ReadFile) -> ToolchainSpec:
        """As `toolchains.resolve`; raises ConfigError too where a package or an address is not allowed."""
        package = config.toolchain.package
        allowed = _own_packages(config.backend) | {canonicalize_name(name) for name in self.packages}
        if package is not None and canonicalize_name(package) not in allowed:
            raise ConfigError(
                f"this service does not install {package!r} for {config.backend}; leave the key out to test "
                f"{backends.get(config.backend).package}, or ask the operator to add the package to "
                "ASSAY_TOOLCHAIN_PACKAGES",
                key="toolchain.package",
            )
        for key, url in (("index", config.toolchain.index), ("artifact.url", config.toolchain.artifact.url)):
            if url and not any(url == one or url.startswith(f"{one}/") for one in self.urls):
                raise ConfigError(
                    f"this service does not fetch from {url}; ask the operator to add the address to "
                    "ASSAY_TOOLCHAIN_URLS",
                    key=f"toolchain.{key}",
                )
        return toolchains.resolve(config, read, self.data_dir)

    def provision(self, spec: ToolchainSpec, data_dir: Path, progress: OnProgress) -> ReadyToolchain:
        """As `toolchains.provision`; raises ProvisionError too where the isolation is too low for the
        toolchain.
        """
        for candidate in spec.candidates():
            self.check_isolation(candidate)
        return toolchains.provision(spec, data_dir, progress)

    def check_isolation(self, spec: ToolchainSpec) -> None:
        """Raises ProvisionError: the toolchain is foreign code, and this machine isolates it too little."""
        foreign = foreign_packages(spec)
        if not foreign:
            return
        found = self.measure()
        if not found.suffices(self.isolation):
            what = (
                f"the packages {', '.join(foreign)} of {spec.label} are"
                if foreign != [""]
                else f"{spec.label} is"
            )
            raise ProvisionError(
                f"{what} not run here: isolation {self.isolation!r} is required for code that is no public "
                f"release of a known compiler, and this machine allows {found.level!r}. The operator can see "
                "with `assay doctor` how to get a better level, or lower ASSAY_ISOLATION"
            )


def foreign_packages(spec: ToolchainSpec) -> list[str]:
    """The packages of a toolchain that are no public release of a compiler or library that Assay knows.

    [""] for a toolchain that is not made of releases at all.
    """
    if spec.provisioner != "release":
        return [""]
    adapter = backends.get(spec.backend)
    known = _own_packages(spec.backend) | {_name(item) for item in adapter.requirements(NEWEST)}
    for kind in adapter.kinds:
        known |= {canonicalize_name(name) for name in backends.reference_packages(kind)}
    return sorted({_name(item) for item in spec.requirements} - known)


def _own_packages(backend: str) -> set[str]:
    adapter = backends.get(backend)
    return {canonicalize_name(name) for name in (adapter.package, *adapter.packages)}


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)
