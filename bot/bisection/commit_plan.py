"""A question about the commits of a range, and a plan of how one kind of toolchain answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bot.bisection.commit_range import CommitQuery, CommitRange, History, describe_commit, merged_range
from bot.bisection.release_probe import BisectionQuery
from bot.bisection.search import ResultKind, max_probed
from bot.commit_files import ReadFile
from bot.config import RepositoryConfig
from bot.toolchains import ToolchainSpec
from bot.toolchains.registry import OnProgress

#: As `toolchains.resolve` and `toolchains.provision`.
Resolve = Callable[[RepositoryConfig, ReadFile, Path], ToolchainSpec]
Provision = Callable[[ToolchainSpec, Path, OnProgress], object]
#: Bisects commits, oldest first; the result is that of `bot.bisection.report.result_to_json`.
Bisect = Callable[[CommitQuery, CommitRange, Sequence[str]], dict[str, Any]]


@dataclass(frozen=True)
class Plan:
    """Commits of a range, oldest first, and the toolchain of each.

    differ  in what they differ, for people
    facts   answer → what it says beyond the search
    """

    shas: Sequence[str]
    toolchain: Callable[[str], ToolchainSpec]
    differ: str
    facts: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda _answer: {}


@dataclass(frozen=True)
class CommitQuestion:
    """In which commit a case began to fail, or stopped failing."""

    repository: History
    query: BisectionQuery
    bisect: Bisect
    progress: OnProgress

    def search(self, between: CommitRange, plan: Plan) -> dict[str, Any]:
        """The result of `bisect`, with the commits that it names and the facts of the plan.

        No commit is tried beyond the search: each is a toolchain.
        """
        self.progress(
            f"{between}: {len(plan.shas)} commits differ in {plan.differ}, "
            f"at most {max_probed(len(plan.shas))} to try unless some are skipped"
        )
        known = {name: getattr(self.query, name) for name in BisectionQuery.__dataclass_fields__}
        query = CommitQuery(**known | {"further": 0}, toolchain=plan.toolchain)
        answer = self.bisect(query, between, plan.shas)
        answer |= plan.facts(answer)
        named = {
            key: describe_commit(self.repository.message(answer[key])) if answer[key] else None
            for key in ("release", "before")
        }
        return answer | {"commits": named}

    def within_merge(
        self, answer: dict[str, Any], search: Callable[[CommitRange], dict[str, Any]]
    ) -> dict[str, Any]:
        """The answer; of a merge that it names the commit that the merge brought, by a further search."""
        merge = str(answer["release"] or "")
        found = answer["kind"] == ResultKind.FOUND.value
        branch = merged_range(self.repository, merge) if found else None
        if branch is None or branch.good == branch.bad:
            return answer
        self.progress(f"{merge[:12]} is a merge: searching the commits that it brought")
        inner = search(branch)
        if inner["kind"] != ResultKind.FOUND.value:
            return answer  # the branch alone does not show it: the merge brought it
        inner["commits"]["release"]["merge"] = merge
        return inner


class Stage(Protocol):
    """One way to make the toolchains of a range's commits.

    `name` is that of its provisioners.
    """

    @property
    def name(self) -> str:
        """Its provisioners, for people."""
        ...

    def search(self, between: CommitRange, question: CommitQuestion) -> dict[str, Any]:
        """The answer for a range.

        Raises ConfigError or UsageError if this cannot make the bad end, ProvisionError if that does not
        work.
        """
        ...
