"""Two commits of a repository as the head and the base of `assay run --repo`.

Their toolchains are made as the service makes them: by the provisioners of `.github/assay.yml`, or of a known
compiler's repository without one; of several, by the first that can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot import toolchains
from bot.commit_files import CommitFiles, ReadFile
from bot.config import RepositoryConfig, resolve_config
from bot.errors import BrokenSourcesError, BuildFailedError, ProvisionError, UsageError
from bot.github.local_repository import WORKTREE, LocalRepository
from bot.toolchains import ReadyToolchain, ToolchainSpec
from bot.toolchains.registry import OnProgress


@dataclass(frozen=True)
class CommitPair:
    """Head and base, each with the toolchain that is wanted for it; equal specs are equal compilers.

    out_of_reach  paths of the compiler that differ between the two and that the overlay does not carry
    passed_over   why earlier provisioners, or other wheels, were not taken for base
    """

    repository: LocalRepository
    head: str
    base: str
    specs: Mapping[str, ToolchainSpec]
    out_of_reach: Sequence[str]
    passed_over: Sequence[str]

    @property
    def same_compiler(self) -> bool:
        """Whether no case could distinguish head from base."""
        return self.specs[self.head].digest == self.specs[self.base].digest

    @property
    def equality(self) -> str:
        """What is the same about head's and base's toolchain, where they are one."""
        spec = self.specs[self.head]
        return "the compiler's Python code is the same" if spec.overlay else f"head and base are {spec.label}"

    def resolve(self, _config: RepositoryConfig, read: ReadFile) -> ToolchainSpec:
        """The toolchain of the commit whose files `read` gives."""
        assert isinstance(read, CommitFiles)
        return self.specs[read.sha]

    def head_failure(self, data_dir: Path, progress: OnProgress) -> str:
        """Makes head's toolchain; why its compiler cannot be imported or used, "" if it can.

        Raises ProvisionError if it cannot be made for another reason, such as a failed build.
        """
        try:
            toolchains.provision(self.specs[self.head], data_dir, progress)
        except BrokenSourcesError as error:
            return str(error)
        except BuildFailedError as error:
            raise BuildFailedError(f"nothing was tested: {error}") from None
        return ""

    def to_json(self) -> dict[str, Any]:
        """The commits' entry of `--json`."""
        return {
            "head": self.head,
            "base": self.base,
            "toolchains": [self.specs[sha].label for sha in (self.head, self.base)],
            "provisioners": [self.specs[sha].provisioner for sha in (self.head, self.base)],
            "passed_over": list(self.passed_over),
            "not_tested": list(self.out_of_reach),
        }


def read_commits(
    folder: Path,
    head: str,
    base: str,
    wheel: str,
    config: RepositoryConfig,
    data_dir: Path,
    progress: OnProgress,
) -> CommitPair:
    """The commits that the command line names. Base is head's parent, or HEAD for the working tree.

    wheel  the release under the sources, which are then an overlay; "" for what the configuration names

    Makes base's toolchain. Raises UsageError if a commit is missing or is not of the compiler that `config`
    names, ConfigError if no provisioner can make it, ProvisionError if base does not work: then nothing can
    be compared.
    """
    repository = LocalRepository(folder, data_dir / "objects")
    head_sha = repository.resolve(head or WORKTREE)
    base_sha = repository.resolve(base) if base else repository.parent(head_sha)
    head_files = CommitFiles(repository, "", head_sha)
    config = _with_provisioners(config, head_files, wheel)
    ready = _make(CommitFiles(repository, "", base_sha), config, data_dir, progress)
    head_spec = toolchains.resolve(config, head_files, data_dir).like(ready.spec)
    changed = repository.changed_files("", base_sha, head_sha)
    return CommitPair(
        repository,
        head_sha,
        base_sha,
        {head_sha: head_spec, base_sha: ready.spec},
        [path for path in changed if head_spec.is_out_of_reach(path)],
        ready.passed_over,
    )


def make_base(
    folder: Path, commit: str, config: RepositoryConfig, data_dir: Path, progress: OnProgress
) -> ReadyToolchain:
    """The toolchain of one commit, which something else is compared with. Raises as `read_commits` does."""
    repository = LocalRepository(folder, data_dir / "objects")
    files = CommitFiles(repository, "", repository.resolve(commit))
    return _make(files, _with_provisioners(config, files, ""), data_dir, progress)


def _with_provisioners(config: RepositoryConfig, commit: CommitFiles, wheel: str) -> RepositoryConfig:
    """The configuration with the toolchain that the commit's own one names, or with an overlay."""
    found = resolve_config(commit)
    if found is None:
        raise UsageError(
            "this is no known compiler's repository, and it pins none: write .github/assay.yml, `assay init`"
        )
    if found.backend != config.backend:
        raise UsageError(f"this is a repository of {found.backend}: use --backend {found.backend}")
    over = {"provisioner": ["overlay"], "wheel": wheel} if wheel else {}
    return config.model_copy(update={"toolchain": found.toolchain.model_copy(update=over)})


def _make(
    commit: CommitFiles, config: RepositoryConfig, data_dir: Path, progress: OnProgress
) -> ReadyToolchain:
    data_dir.mkdir(parents=True, exist_ok=True)
    progress("reading the sources")
    spec = toolchains.resolve(config, commit, data_dir)
    try:
        return toolchains.provision(spec, data_dir, progress)
    except BrokenSourcesError as error:
        raise ProvisionError(f"cannot compare: the base does not work\n{error}") from None
    except BuildFailedError as error:
        raise BuildFailedError(f"the base does not build, head was not tried: {error}") from None
