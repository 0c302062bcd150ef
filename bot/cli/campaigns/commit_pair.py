"""Two commits of a repository as the head and the base of `assay run --repo`.

Their toolchains are made as the service makes them: by the provisioners of `.github/assay.yml`, or of a known
compiler's repository without one; of several, by the first that can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot import toolchains
from bot.campaigns.classify.out_of_reach import explain_by_unreachable
from bot.cli.common.repositories import Repository
from bot.commit_files import CommitFiles, ReadFile
from bot.config import RepositoryConfig, resolve_config
from bot.errors import BrokenSourcesError, BuildFailedError, ProvisionError, UsageError
from bot.toolchains import ReadyToolchain, ToolchainSpec
from bot.toolchains.registry import OnProgress
from bot.toolchains.unreachable_sources import read_unreachable_sources


@dataclass(frozen=True)
class CommitPair:
    """Head and base, each with the toolchain that is wanted for it; equal specs are equal compilers.

    out_of_reach  paths of the compiler that differ between the two and that the overlay does not carry
    passed_over   why earlier provisioners, or other wheels, were not taken for base
    """

    repository: Repository
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

        Raises ProvisionError if it cannot be made for another reason, such as a failed build, or may need
        native code that its toolchain lacks.
        """
        try:
            toolchains.provision(self.specs[self.head], data_dir, progress)
        except BrokenSourcesError as error:
            if self.out_of_reach:
                why = "head's sources do not work with the wheel's native code, which head changes as well"
                raise ProvisionError(f"nothing was tested: {why}\n{error}") from None
            unreachable = read_unreachable_sources(self.specs[self.head], self.base)
            if why := explain_by_unreachable(str(error), "", unreachable):
                raise ProvisionError(f"nothing was tested: {why}\n{error}") from None
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


@dataclass(frozen=True)
class Selection:
    """What is tested, as the command line names it; None and nothing for what it does not name."""

    backend: str | None
    frontend: str | None
    sources: tuple[str, ...]
    device: str | None
    options: dict[str, str]

    def completed_from(self, own: RepositoryConfig, *, other_cases: bool) -> Selection:
        """The same with a repository's configuration for what is not named.

        other_cases  whether the cases are of no source; then its frontend and sources do not count

        Raises UsageError if the repository is of another compiler.
        """
        if self.backend not in (None, own.backend):
            raise UsageError(f"this is a repository of {own.backend}: use --backend {own.backend}")
        chosen = self if other_cases or self.frontend or self.sources else self._with_sources(own)
        return replace(
            chosen,
            backend=own.backend,
            device=self.device or own.device,
            options=own.options | self.options,
        )

    def _with_sources(self, own: RepositoryConfig) -> Selection:
        return replace(self, frontend=own.frontend, sources=tuple(own.sources))


def read_config(repository: Repository, head: str) -> RepositoryConfig:
    """What a repository says about its tests at a commit: its `.github/assay.yml`, else the default.

    Raises UsageError if it has neither, or no such commit.
    """
    found = resolve_config(CommitFiles(repository, "", repository.resolve(head or repository.newest)))
    if found is None:
        raise UsageError(
            "this is no known compiler's repository, and it pins none: write .github/assay.yml, `assay init`"
        )
    return found


def read_commits(
    repository: Repository,
    head: str,
    base: str,
    wheel: str,
    config: RepositoryConfig,
    own: RepositoryConfig,
    data_dir: Path,
    progress: OnProgress,
) -> CommitPair:
    """The commits that the command line names. Base is by default head's parent, HEAD for the working tree.

    For a pull request of GitHub (`refs/pull/N/head`) it is where that left the default branch.

    own    the repository's own configuration, which says how its commits become toolchains
    wheel  the release under the sources, which are then an overlay; "" for what the configuration names

    Makes base's toolchain, unless head's is the same. Raises UsageError if a commit is missing, ConfigError
    if no provisioner can make it, ProvisionError if base does not work: then nothing can be compared.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    head_sha = repository.resolve(head or repository.newest)
    base_sha = repository.resolve(base) if base else _default_base(repository, head, head_sha)
    config = _with_provisioners(config, own, wheel)
    progress("reading the sources")
    base_spec, head_spec = (
        toolchains.resolve(config, CommitFiles(repository, "", sha), data_dir) for sha in (base_sha, head_sha)
    )
    passed_over = base_spec.passed_over
    if head_spec != base_spec:  # else there is nothing to compare, and nothing is made
        ready = _make(base_spec, data_dir, progress)
        head_spec, base_spec, passed_over = head_spec.like(ready.spec), ready.spec, ready.passed_over
    changed = repository.changed_files("", base_sha, head_sha)
    return CommitPair(
        repository,
        head_sha,
        base_sha,
        {head_sha: head_spec, base_sha: base_spec},
        [path for path in changed if head_spec.is_out_of_reach(path)],
        passed_over,
    )


def _default_base(repository: Repository, head: str, sha: str) -> str:
    if head.startswith("refs/pull/"):
        return repository.merge_base(repository.resolve("HEAD"), sha) or repository.parent(sha)
    return repository.parent(sha)


def make_base(
    repository: Repository,
    commit: str,
    config: RepositoryConfig,
    own: RepositoryConfig,
    data_dir: Path,
    progress: OnProgress,
) -> ReadyToolchain:
    """The toolchain of one commit, which something else is compared with. Raises as `read_commits` does."""
    data_dir.mkdir(parents=True, exist_ok=True)
    files = CommitFiles(repository, "", repository.resolve(commit))
    progress("reading the sources")
    return _make(toolchains.resolve(_with_provisioners(config, own, ""), files, data_dir), data_dir, progress)


def _with_provisioners(config: RepositoryConfig, own: RepositoryConfig, wheel: str) -> RepositoryConfig:
    """The configuration with the toolchain of the repository's own one, or with an overlay over a wheel."""
    over = {"provisioner": ["overlay"], "wheel": wheel} if wheel else {}
    return config.model_copy(update={"toolchain": own.toolchain.model_copy(update=over)})


def _make(spec: ToolchainSpec, data_dir: Path, progress: OnProgress) -> ReadyToolchain:
    try:
        return toolchains.provision(spec, data_dir, progress)
    except BrokenSourcesError as error:
        raise ProvisionError(f"cannot compare: the base does not work\n{error}") from None
    except BuildFailedError as error:
        raise BuildFailedError(f"the base does not build, head was not tried: {error}") from None
