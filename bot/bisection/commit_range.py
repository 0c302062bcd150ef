"""The commits of a compiler's repository between a good and a bad one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bot.bisection.release_probe import BisectionQuery
from bot.commit_files import CommitFiles, CommitMessage, TreeSource
from bot.errors import UsageError
from bot.toolchains import ToolchainSpec

#: GitHub's subjects of a squashed and of a merged pull request.
_PULL_REQUEST = re.compile(r"\(#(\d{1,10})\)$|^Merge pull request #(\d{1,10})\b")


class History(TreeSource, Protocol):
    """The commits of one repository (`LocalRepository`, `bot.github.mirrored_repository`)."""

    @property
    def target(self) -> str:
        """Its name on the server, "" for a folder."""
        ...

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


class RevisionHistory(History, Protocol):
    """The commits of one repository, also by the names of branches and tags."""

    def resolve(self, revision: str, /) -> str:
        """The commit id of a revision; raises UsageError if there is none."""
        ...


@dataclass(frozen=True)
class CommitRange:
    """Commits after `good` up to `bad`, on the first-parent line of `bad`."""

    good: str
    bad: str

    @classmethod
    def parse(cls, text: str, repository: RevisionHistory) -> CommitRange:
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


def files_of(repository: History, sha: str) -> CommitFiles:
    """The files of a commit, under the name that campaigns give the repository: toolchains are shared."""
    return CommitFiles(repository, repository.target, sha)


def merged_range(repository: History, sha: str) -> CommitRange | None:
    """The commits that a merge brought, from where its branch began; None for other commits."""
    parents = repository.parents(sha)
    if len(parents) < 2:
        return None
    begin = repository.merge_base(parents[0], parents[1])
    return CommitRange(begin, parents[1]) if begin else None


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
