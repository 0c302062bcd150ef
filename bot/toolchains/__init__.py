"""Toolchains: provisioners and their cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bot.config import RepositoryConfig
from bot.errors import BrokenSourcesError, ConfigError, ProvisionError
from bot.toolchains import registry
from bot.toolchains.registry import OnProgress, ReadFile, ReadyToolchain, ToolchainSpec

__all__ = ["ReadyToolchain", "ToolchainSpec", "provision", "resolve"]


def resolve(config: RepositoryConfig, read: ReadFile, data_dir: Path | None = None) -> ToolchainSpec:
    """The toolchain of a configuration at one commit: of the first provisioner that can make it.

    `read` gives the content of a file at that commit, None if missing; `overlay` needs a `CommitFiles`.
    `data_dir` holds caches. Raises ConfigError that says what to write where.
    """
    found: list[ToolchainSpec] = []
    passed_over: list[str] = []
    failure: ConfigError | None = None
    for name in config.toolchain.provisioner:
        try:
            spec = registry.get(name).resolve(config, read, data_dir)
        except ConfigError as error:
            passed_over.append(f"{name} cannot make it: {error}")
            failure = error
        else:
            found.append(replace(spec, passed_over=tuple(passed_over)))
    if found:
        return registry.link(found)
    if len(passed_over) > 1:
        raise ConfigError("no provisioner can make this commit\n" + "\n".join(passed_over))
    assert failure is not None
    raise failure


def provision(spec: ToolchainSpec, data_dir: Path, progress: OnProgress) -> ReadyToolchain:
    """Makes a toolchain or its first alternative that can be made, or finds it in the cache.

    `progress` gets a line at each step. Safe for several threads and processes. Raises ProvisionError that
    says what to fix; at once where a retry may succeed.
    """
    failures: list[ProvisionError] = []
    candidates = list(spec.candidates())
    for candidate in candidates:
        try:
            ready = registry.get(candidate.provisioner).provision(candidate, data_dir, progress)
        except ProvisionError as error:
            if error.transient or len(candidates) == 1:
                raise
            progress(f"{candidate.label}: does not work, trying another")
            failures.append(error)
        else:
            return replace(ready, passed_over=(*candidate.passed_over, *map(_summarize, failures)))
    broken = all(isinstance(one, BrokenSourcesError) for one in failures)
    kind = BrokenSourcesError if broken else ProvisionError
    failure = kind("no toolchain of this commit works:\n" + "\n".join(map(str, failures)))
    failure.causes = tuple(failures)
    raise failure


def _summarize(failure: ProvisionError) -> str:
    """What was tried, and the error at the end of the traceback."""
    first, *others = str(failure).splitlines()
    return f"{first} {others[-1].strip()}" if others else first
