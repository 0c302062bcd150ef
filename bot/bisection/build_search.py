"""Searches commits that are toolchains each by itself: by `source`, `artifact` or `release`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot.bisection.commit_plan import CommitQuestion, Plan, Resolve
from bot.bisection.commit_range import CommitRange, History, files_of
from bot.bisection.commits import revisions
from bot.bisection.search import ResultKind
from bot.config import RepositoryConfig, ToolchainConfig
from bot.toolchains import ToolchainSpec


@dataclass(frozen=True)
class BuildStage:
    """Every commit made by the first of these provisioners that can make it, its neighbor perhaps by another.

    A commit that none can make is skipped, as is one whose CI has not made its wheel: nothing is waited for.
    """

    repository: History
    config: RepositoryConfig
    data_dir: Path
    resolve: Resolve
    provisioners: tuple[str, ...]

    @property
    def name(self) -> str:
        """As in `Stage`."""
        return ", ".join(self.provisioners)

    def search(self, between: CommitRange, question: CommitQuestion) -> dict[str, Any]:
        """As in `Stage`."""
        self._spec(between.bad)  # what is configured wrongly is no commit that cannot be made

        def within(part: CommitRange) -> dict[str, Any]:
            answer = question.search(part, self._plan(self._revisions(part)))
            return self._compare_alike(answer, question)

        return question.within_merge(within(between), within)

    def _plan(self, shas: Sequence[str]) -> Plan:
        return Plan(shas, self._spec, "what their toolchains are made of")

    def _spec(self, sha: str) -> ToolchainSpec:
        """The toolchain of a commit with its alternatives; raises ConfigError if there is none."""
        return self.resolve(self._config(), files_of(self.repository, sha), self.data_dir)

    def _config(self) -> RepositoryConfig:
        wanted = self.config.toolchain
        at_once = wanted.artifact.model_copy(update={"wait": 0.0})
        chosen = wanted.model_copy(update={"provisioner": list(self.provisioners), "artifact": at_once})
        return self.config.model_copy(update={"toolchain": chosen})

    def _revisions(self, between: CommitRange) -> list[str]:
        """The first commit, and those after it that change what a toolchain is made of; oldest first."""
        paths = _ingredients(self.config.toolchain, self.provisioners)
        shas = (between.good, *self.repository.commits("", between.good, between.bad, paths))

        def trees(sha: str) -> tuple[str, str]:
            return "\0".join(self.repository.tree("", sha, path) for path in paths or [""]), sha

        return [one.commit for one in revisions(shas, trees)]

    def _compare_alike(self, answer: dict[str, Any], question: CommitQuestion) -> dict[str, Any]:
        """The answer; where it names two commits that were made differently, the same once they were also
        compared as toolchains of one provisioner, or a doubtful one.
        """
        ends = [str(answer[key] or "") for key in ("before", "release")]
        ways = {way for way in (_provisioner(answer, sha) for sha in ends) if way}
        if len(ways) < 2:
            return answer
        way = max(ways, key=self.provisioners.index)  # those before it could not make one of the two
        question.progress(f"{ends[0][:12]} and {ends[1][:12]} were made differently: making both by {way}")
        alike = question.search(CommitRange(*ends), replace(self, provisioners=(way,))._plan(ends))
        same = alike["kind"] == ResultKind.FOUND.value
        return _with_rows(answer, alike) | ({"compared_by": way} if same else {"across_provisioners": True})


def _ingredients(toolchain: ToolchainConfig, provisioners: Sequence[str]) -> list[str]:
    """The paths that decide what these provisioners make of a commit; none for all of its files."""
    known = {"source": toolchain.build.sources, "release": [toolchain.pin]}
    paths = [known.get(name, []) for name in provisioners]
    return [path for listed in paths for path in listed] if all(paths) else []


def _provisioner(answer: Mapping[str, Any], sha: str) -> str:
    """What made the toolchain of a commit that was tried; "" if none was made."""
    rows = (row for row in answer["probed"] if row["release"] == sha)
    return next((str(row["provisioner"]) for row in rows), "")


def _with_rows(answer: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """An answer with the rows and the cost of a further search."""
    known = {(row["release"], row["toolchain"]) for row in answer["probed"]}
    rows = [row for row in more["probed"] if (row["release"], row["toolchain"]) not in known]
    cost = {name: count + more["cost"][name] for name, count in answer["cost"].items() if name != "probes"}
    return {**answer, "probed": [*answer["probed"], *rows], "cost": answer["cost"] | cost}
