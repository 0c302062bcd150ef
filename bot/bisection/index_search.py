"""Searches commits by `index`: as several share one nightly wheel, the answer is those between two wheels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import Version

from bot.bisection.commit_plan import CommitQuestion, Plan, Resolve
from bot.bisection.commit_range import CommitRange, History, files_of
from bot.bisection.search import ResultKind
from bot.config import RepositoryConfig
from bot.errors import ConfigError
from bot.toolchains import ToolchainSpec
from bot.toolchains.index import named_commit

_PAIR = {ResultKind.FOUND.value, ResultKind.RANGE.value}


@dataclass(frozen=True)
class IndexStage:
    """The last wheel from before each commit."""

    repository: History
    config: RepositoryConfig
    data_dir: Path
    resolve: Resolve
    _specs: dict[str, ToolchainSpec | ConfigError] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As in `Stage`."""
        return "index"

    def search(self, between: CommitRange, question: CommitQuestion) -> dict[str, Any]:
        """As in `Stage`."""
        self._spec(between.bad)
        shas = (between.good, *self.repository.commits("", between.good, between.bad, ()))
        starts = _starts(shas, self._wheel)
        if not self._wheel(shas[0]) and starts[1:]:
            early = shas[: starts[1]]
            question.progress(
                f"{len(early)} commits, {early[0][:12]} to {early[-1][:12]}, are older than all wheels: "
                "not searched"
            )
            starts = starts[1:]
        plan = Plan(
            [shas[start] for start in starts],
            self._spec,
            "the last wheel before them",
            lambda answer: self._between_wheels(answer, shas, starts),
        )
        return question.search(between, plan)

    def _spec(self, sha: str) -> ToolchainSpec:
        if sha not in self._specs:
            chosen = self.config.toolchain.model_copy(update={"provisioner": ["index"]})
            config = self.config.model_copy(update={"toolchain": chosen})
            try:
                self._specs[sha] = self.resolve(config, files_of(self.repository, sha), self.data_dir)
            except ConfigError as error:
                self._specs[sha] = error
        found = self._specs[sha]
        if isinstance(found, ConfigError):
            raise found
        return found

    def _wheel(self, sha: str) -> str:
        """Names the wheel of a commit, "" if there is none from before it."""
        try:
            return self._spec(sha).digest
        except ConfigError:
            return ""

    def _between_wheels(
        self, answer: Mapping[str, Any], shas: Sequence[str], starts: Sequence[int]
    ) -> dict[str, Any]:
        """The commits that a change between two wheels may be, in place of the first ones that have these.

        A wheel that names a commit holds that one. Any other was made of a commit before the first that has
        it, and after the first that has the wheel before: a build does not take longer than the time between
        two.
        """
        if not (answer["before"] and answer["release"]):
            return {}
        good, bad = (starts.index(shas.index(answer[key])) for key in ("before", "release"))
        specs = [self._spec(answer[key]) for key in ("before", "release")]
        lower = starts[good] if _names_commit(specs[0]) else starts[good - 1] if good else 0
        upper = starts[bad] if _names_commit(specs[1]) else starts[bad] - 1
        if upper <= lower:  # all that is known is in which wheels it is
            lower, upper = starts[good], starts[bad]
        exact = upper - lower == 1 and all(map(_names_commit, specs))
        kind = ResultKind.RANGE.value if answer["kind"] in _PAIR and not exact else answer["kind"]
        return {
            "kind": kind,
            "before": shas[lower],
            "release": shas[upper],
            "between": list(shas[lower + 1 : upper]),
            "wheels": [spec.label for spec in specs],
        }


def _names_commit(spec: ToolchainSpec) -> bool:
    """Whether the version of a wheel names the commit that it was made of."""
    return bool(named_commit(Version(spec.requirements[0].partition("==")[2])))


def _starts(shas: Sequence[str], wheel: Callable[[str], str]) -> list[int]:
    """The places from which on commits have another wheel; those between two with one wheel have it, too."""

    def within(low: int, high: int) -> list[int]:
        if wheel(shas[low]) == wheel(shas[high]):
            return []
        middle = (low + high) // 2
        return [high] if middle == low else [*within(low, middle), *within(middle, high)]

    return [0, *within(0, len(shas) - 1)]
