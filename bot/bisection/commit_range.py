"""The commits of a compiler's repository between a good and a bad one, each with its toolchain.

Commits whose compiler sources are equal to those of the commit before are left out: nothing can tell them
apart. All toolchains are the sources over one wheel, so that two of them differ in nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from bot import toolchains
from bot.bisection.commits import revisions
from bot.bisection.release_probe import BisectionQuery
from bot.commit_files import CommitFiles, CommitMessage, ReadFile, TreeSource
from bot.config import RepositoryConfig
from bot.errors import BrokenSourcesError, UsageError
from bot.github.local_repository import LocalRepository
from bot.toolchains import ToolchainSpec
from bot.toolchains.overlay import find_layout
from bot.toolchains.registry import OnProgress

#: GitHub's subjects of a squashed and of a merged pull request.
_PULL_REQUEST = re.compile(r"\(#(\d{1,10})\)$|^Merge pull request #(\d{1,10})\b")


class History(TreeSource, Protocol):
    """The commits of one repository (`LocalRepository`, `bot.github.mirrored_repository`)."""

    def merge_base(self, one: str, other: str, /) -> str:
        """The commit at which two lines parted, "" if they have none in common."""
        ...

    def commits(self, target: str, base: str, head: str, paths: Sequence[str], /) -> Sequence[str]:
        """Commits after base up to head that change one of these paths; first parents only, oldest first."""
        ...

    def parents(self, sha: str, /) -> Sequence[str]:
        """All parents, the first one first."""
        ...

    def message(self, sha: str, /) -> CommitMessage:
        """Author and subject of a commit."""
        ...


#: As `toolchains.resolve` and `toolchains.provision`.
Resolve = Callable[[RepositoryConfig, ReadFile, Path], ToolchainSpec]
Provision = Callable[[ToolchainSpec, Path, OnProgress], object]


@dataclass(frozen=True)
class CommitRange:
    """Commits after `good` up to `bad`, on the first-parent line of `bad`."""

    good: str
    bad: str

    @classmethod
    def parse(cls, text: str, repository: LocalRepository) -> CommitRange:
        """Reads GOOD..BAD; raises UsageError as `starting`, or if a commit is missing."""
        good, dots, bad = text.partition("..")
        if not (good and dots and bad) or bad.startswith("."):
            raise UsageError(f"--commits {text}: write GOOD..BAD, such as v0.25.0..main")
        return cls.starting(repository, repository.resolve(good), repository.resolve(bad))

    @classmethod
    def starting(cls, repository: History, good: str, bad: str) -> CommitRange:
        """From `good`, or from where its branch parts from that of `bad`: a release's tag is on a branch.

        Raises UsageError if `bad` leads to `good`, or they have no commit in common.
        """
        begin = repository.merge_base(good, bad)
        if not begin or begin == bad:
            why = "is the order reversed?" if begin else "they have no commit in common"
            raise UsageError(f"--commits: {bad[:12]} does not come after {good[:12]}; {why}")
        return cls(begin, bad)

    def __str__(self) -> str:
        return f"{self.good[:12]}..{self.bad[:12]}"


@dataclass(frozen=True)
class CommitQuery(BisectionQuery):
    """The question of a bisection whose "releases" are commits.

    toolchain  the toolchain of each
    """

    toolchain: Callable[[str], ToolchainSpec] = field(kw_only=True)

    def spec(self, release: str) -> ToolchainSpec:
        """The toolchain of a commit."""
        return self.toolchain(release)


@dataclass(frozen=True)
class Sources:
    """How the commits of a repository become toolchains: all as `like` is made.

    data_dir  where digests of sources are cached
    """

    repository: History
    config: RepositoryConfig
    data_dir: Path
    like: ToolchainSpec
    resolve: Resolve = toolchains.resolve
    provision: Provision = toolchains.provision

    def spec(self, sha: str) -> ToolchainSpec:
        """The toolchain of a commit."""
        made = self.resolve(self._over_one_wheel, CommitFiles(self.repository, "", sha), self.data_dir)
        return replace(made.like(self.like), otherwise=None, label=f"{self.like.label}, {sha[:12]}")

    @property
    def _over_one_wheel(self) -> RepositoryConfig:
        """The configuration with the wheel of `like`: commits of other releases may be nearer to others."""
        wheel = self.like.requirements[0].partition("==")[2] if self.like.overlay else None
        chosen = self.config.toolchain.model_copy(update={"wheel": wheel})
        return self.config.model_copy(update={"toolchain": chosen})

    def revisions(self, between: CommitRange) -> list[str]:
        """The first commit, and those after it that change the compiler's sources; oldest first."""
        paths = [one.path for one in self.like.overlay]
        shas = (between.good, *self.repository.commits("", between.good, between.bad, paths))

        def trees(sha: str) -> tuple[str, str]:
            return "".join(self.repository.tree("", sha, path) for path in paths), sha

        return [one.commit for one in revisions(shas, trees)]

    def usable(self, shas: list[str], progress: OnProgress) -> list[str]:
        """Without the first commits, if they do not work with the wheel: those from the first that works.

        The last one works. Where commits work again and again not, the search skips them.
        """
        low, high = -1, len(shas) - 1
        middle = 0  # the first one, then the middle
        while high - low > 1:
            low, high = (low, middle) if self._works(shas[middle], progress) else (middle, high)
            middle = (low + high) // 2
        return shas[high:]

    def _works(self, sha: str, progress: OnProgress) -> bool:
        try:
            self.provision(self.spec(sha), self.data_dir, progress)
        except BrokenSourcesError:
            return False
        return True

    def out_of_reach(self, between: CommitRange) -> int:
        """How many commits change code of the compiler that the sources do not carry."""
        laid = {one.path for one in self.like.overlay}
        native = [path.rstrip("/") for path in self.like.unreachable if path not in laid]
        return len(self.repository.commits("", between.good, between.bad, native)) if native else 0

    def query(self, query: BisectionQuery) -> CommitQuery:
        """The same question about commits."""
        known = {name: getattr(query, name) for name in BisectionQuery.__dataclass_fields__}
        return CommitQuery(**known, toolchain=self.spec)

    def merged(self, sha: str) -> CommitRange | None:
        """The commits that a merge brought, from where its branch began; None for other commits."""
        parents = self.repository.parents(sha)
        if len(parents) < 2:
            return None
        begin = self.repository.merge_base(parents[0], parents[1])
        return CommitRange(begin, parents[1]) if begin else None


def choose_sources(
    repository: History,
    between: CommitRange,
    config: RepositoryConfig,
    data_dir: Path,
    progress: OnProgress,
    resolve: Resolve = toolchains.resolve,
    provision: Provision = toolchains.provision,
) -> Sources:
    """The widest folders and the nearest wheel with which both ends of a range work.

    Where nothing works for both, what works for the bad end: commits that it does not fit are skipped. Raises
    UsageError if the repository is another compiler's, ProvisionError if no wheel works.
    """
    bad = CommitFiles(repository, "", between.bad)
    layout = find_layout(bad)
    if layout.backend != config.backend:
        raise UsageError(f"--repo is a repository of {layout.backend}: use --backend {layout.backend}")
    wanted = config.toolchain.model_copy(update={"provisioner": ["overlay"]})
    config = config.model_copy(update={"toolchain": wanted})
    first = None
    for candidate in resolve(config, bad, data_dir).candidates():
        sources = Sources(repository, config, data_dir, candidate, resolve, provision)
        try:
            provision(sources.spec(between.bad), data_dir, progress)
            first = first or sources
            provision(sources.spec(between.good), data_dir, progress)
        except BrokenSourcesError as error:
            progress(f"{str(error).splitlines()[0]}: trying another")
        else:
            return sources
    if first is None:
        raise BrokenSourcesError(f"the sources of {between.bad[:12]} work with no wheel; see above")
    return first


def tagged_range(repository: History, answer: Mapping[str, Any]) -> CommitRange | None:
    """The commits between the two releases that a bisection named; None if it or the repository has none."""
    before, release = (release_commit(repository, str(answer[key] or "")) for key in ("before", "release"))
    return CommitRange.starting(repository, before, release) if before and release else None


def release_commit(repository: History, version: str) -> str:
    """The commit of a release's tag, "" if there is none."""
    plain = version.partition(".post")[0]
    tags = (repository.tag("", "", name) for name in (f"v{plain}", plain)) if plain else ()
    return next(filter(None, tags), "")


def describe_commit(message: CommitMessage) -> dict[str, Any]:
    """A commit as JSON: author, subject, and the number of its pull request, 0 if the subject has none."""
    match = _PULL_REQUEST.search(message.subject)
    number = int(match[1] or match[2]) if match else 0
    return {"sha": message.sha, "author": message.author, "subject": message.subject, "pull_request": number}
