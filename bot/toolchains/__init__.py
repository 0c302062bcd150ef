"""Toolchains: provisioners and their cache."""

from __future__ import annotations

from pathlib import Path

from bot.config import RepositoryConfig
from bot.toolchains import registry
from bot.toolchains.registry import OnProgress, ReadFile, ReadyToolchain, ToolchainSpec

__all__ = ["ReadyToolchain", "ToolchainSpec", "provision", "resolve"]


def resolve(config: RepositoryConfig, read: ReadFile) -> ToolchainSpec:
    """The toolchain of a configuration at one commit.

    `read` gives the content of a file at that commit, None if missing. Raises ConfigError that says what to
    write where.
    """
    return registry.get(config.toolchain.provisioner).resolve(config, read)


def provision(spec: ToolchainSpec, data_dir: Path, progress: OnProgress) -> ReadyToolchain:
    """Makes a toolchain, or finds it in the cache; `progress` gets a line at each step.

    Safe for several threads and processes. Raises ProvisionError that says what to fix.
    """
    return registry.get(spec.provisioner).provision(spec, data_dir, progress)
