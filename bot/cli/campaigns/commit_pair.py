"""Two commits of a compiler's repository as the head and the base of `assay run --repo`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bot.commit_files import CommitFiles
from bot.config import RepositoryConfig
from bot.errors import ProvisionError, UsageError
from bot.github.local_repository import WORKTREE, LocalRepository
from bot.toolchains import ToolchainSpec, registry
from bot.toolchains.installer import Installer
from bot.toolchains.layouts import SourceLayout
from bot.toolchains.overlay import (
    BrokenSourcesError,
    SourceCommit,
    find_layout,
    nearest_wheels,
    overlay,
    release_series,
)
from bot.toolchains.registry import OnProgress, ReadFile

#: Makes the file that pins a package's release, as `assay run --release` does.
PinFile = Callable[[str, str, str], bytes | None]


@dataclass(frozen=True)
class CommitPair:
    """Head and base, each with the toolchain that is wanted for it; equal specs are equal compilers.

    out_of_reach  paths of the compiler that differ between the two and that the overlay does not carry
    """

    repository: LocalRepository
    layout: SourceLayout
    head: str
    base: str
    specs: Mapping[str, ToolchainSpec]
    out_of_reach: Sequence[str]

    @property
    def same_compiler(self) -> bool:
        """Whether no case could tell head from base."""
        return self.specs[self.head].digest == self.specs[self.base].digest

    def resolve(self, _config: RepositoryConfig, read: ReadFile) -> ToolchainSpec:
        """The toolchain of the commit whose files `read` gives."""
        assert isinstance(read, CommitFiles)
        return self.specs[read.sha]

    def head_failure(self, data_dir: Path, progress: OnProgress) -> str:
        """Makes head's toolchain; why its compiler cannot be imported, "" if it can."""
        try:
            overlay().provision(self.specs[self.head], data_dir, progress)
        except BrokenSourcesError as error:
            return str(error)
        return ""

    def to_json(self) -> dict[str, Any]:
        """What `--json` says of the commits."""
        return {
            "head": self.head,
            "base": self.base,
            "toolchains": [self.specs[sha].label for sha in (self.head, self.base)],
            "not_tested": list(self.out_of_reach),
        }


def read_commits(
    folder: Path,
    head: str,
    base: str,
    wheel: str,
    config: RepositoryConfig,
    data_dir: Path,
    pins: PinFile,
    progress: OnProgress,
) -> CommitPair:
    """The commits that the command line names. Base is head's parent, or HEAD for the working tree.

    wheel  the release under the sources; "" for the nearest one with which base's sources can be imported

    Makes base's toolchain. Raises UsageError if a commit is missing or is not of the compiler that `config`
    names, ProvisionError if base's sources work with no wheel: then nothing can be compared.
    """
    repository = LocalRepository(folder, data_dir / "objects")
    head_sha = repository.resolve(head or WORKTREE)
    base_sha = repository.resolve(base) if base else repository.parent(head_sha)
    commit = SourceCommit(repository, base_sha)
    layout = find_layout(commit)
    if layout.backend != config.backend:
        raise UsageError(f"{folder} is a repository of {layout.backend}: use --backend {layout.backend}")
    data_dir.mkdir(parents=True, exist_ok=True)
    series = None if wheel else release_series(commit, layout)
    wheels = nearest_wheels(Installer(data_dir), layout.package, series) if series else (wheel,)
    released = [registry.get("release").resolve(config, partial(pins, layout.package, one)) for one in wheels]
    candidates = [
        (variant, wheel_spec, overlay().spec(commit, variant, wheel_spec))
        for variant in layout.variants()
        for wheel_spec in released
    ]
    layout, under, base_spec = _first_working(candidates, data_dir, progress)
    head_spec = overlay().spec(SourceCommit(repository, head_sha), layout, under)
    changed = repository.changed_paths(base_sha, head_sha)
    out_of_reach = [path for path in changed if layout.is_out_of_reach(path)]
    return CommitPair(
        repository, layout, head_sha, base_sha, {head_sha: head_spec, base_sha: base_spec}, out_of_reach
    )


def _first_working(
    candidates: Sequence[tuple[SourceLayout, ToolchainSpec, ToolchainSpec]],
    data_dir: Path,
    progress: OnProgress,
) -> tuple[SourceLayout, ToolchainSpec, ToolchainSpec]:
    """The first (layout, wheel, overlay) whose compiler can be imported."""
    failures = []
    for candidate in candidates:
        spec = candidate[-1]
        try:
            overlay().provision(spec, data_dir, progress)
        except BrokenSourcesError as error:
            progress(f"{spec.label}: does not work, trying another")
            failures.append(str(error))
        else:
            return candidate
    raise ProvisionError("cannot compare: the base's sources work with no wheel\n" + "\n".join(failures))
