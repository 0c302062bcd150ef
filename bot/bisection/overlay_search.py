"""Searches commits by `overlay`: over the wheel of the last one first, then over an older one, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.bisection.commit_plan import CommitQuestion, Plan, Provision, Resolve
from bot.bisection.commit_range import CommitRange, History
from bot.bisection.commit_sources import Needs, Reach, Sources, list_sources, over_two_wheels
from bot.bisection.search import ResultKind
from bot.config import RepositoryConfig
from bot.toolchains.registry import OnProgress
from bot.toolchains.unreachable_sources import needed_names


@dataclass(frozen=True)
class OverlayStage:
    """The commits' Python sources over one wheel, or over two.

    The commits that work over the wheel of the last one are searched first, and older ones over an older
    wheel only if the change lies before them.
    """

    repository: History
    config: RepositoryConfig
    data_dir: Path
    resolve: Resolve
    provision: Provision
    needs: Needs = needed_names

    @property
    def name(self) -> str:
        """As in `Stage`."""
        return "overlay"

    def search(self, between: CommitRange, question: CommitQuestion) -> dict[str, Any]:
        """As in `Stage`; the answer names the wheel that the commits were laid over."""
        choices = list_sources(
            self.repository,
            between,
            self.config,
            self.data_dir,
            question.progress,
            self.resolve,
            self.provision,
            self.needs,
        )
        sources, answer = _search_choices(choices, between, question)
        return question.within_merge(answer, lambda branch: _search(sources, branch, question))


def _search_choices(
    choices: Iterable[Sources], between: CommitRange, question: CommitQuestion
) -> tuple[Sources, dict[str, Any]]:
    """The answer, and the sources that gave it."""
    tried = []
    for one in choices:
        answer = _search(one, between, question, more=not one.complete)
        if one.complete or _is_final(answer, fixed_by=question.query.fixed_by):
            return one, answer
        tried.append(one)
    question.progress("the change lies before these commits: looking for those that work over an older wheel")
    chosen = over_two_wheels(tried, between, question.progress)
    return chosen, _search(chosen, between, question)


def _is_final(answer: Mapping[str, Any], *, fixed_by: bool) -> bool:
    """Whether older commits would not change an answer: a change was found, the last commit answers the
    question alone, or the time is over.
    """
    last_decides = ResultKind.HORIZON if fixed_by else ResultKind.NEVER
    final = {kind.value for kind in (ResultKind.FOUND, ResultKind.RANGE, ResultKind.ERROR, last_decides)}
    return answer["kind"] in final or bool(answer.get("untried"))


def _search(
    sources: Sources, between: CommitRange, question: CommitQuestion, *, more: bool = False
) -> dict[str, Any]:
    """The answer over these sources. more: commits that they leave out may be searched over others."""
    return question.search(between, _plan(sources, between, question.progress, more=more))


def _plan(sources: Sources, between: CommitRange, progress: OnProgress, *, more: bool) -> Plan:
    reach = sources.reach(sources.revisions(between), progress, presumed=more)
    why = "likely need what this wheel lacks: left for later" if more else "work with no wheel: not searched"
    for left_out in filter(None, (reach.before, reach.between)):
        ends = " to ".join(dict.fromkeys(left_out[at][:12] for at in (0, -1)))
        progress(f"{len(left_out)} commits, {ends}, {why}")
    if native := sources.out_of_reach(between):
        progress(f"{native} commits change compiler code that the toolchains leave out: not searched")
    older = frozenset(reach.older)
    return Plan(
        reach.usable,
        lambda sha: sources.spec(sha, older=sha in older),
        "the compiler's Python sources",
        lambda answer: {"over": _wheels(sources, reach)} | _across_wheels(answer, reach),
    )


def _wheels(sources: Sources, reach: Reach) -> str:
    if not (reach.older and sources.older):
        return sources.like.label
    return f"{sources.like.label}; up to {reach.older[-1][:12]}: {sources.older.label}"


def _across_wheels(answer: Mapping[str, Any], reach: Reach) -> dict[str, Any]:
    """What changes in an answer that names commits over different wheels: it may be the wheels, or a commit
    between those two.
    """
    last = reach.older[-1:]
    if not last or (answer["before"], answer["release"]) != (last[0], reach.newer[0]):
        return {}
    return {"kind": ResultKind.RANGE.value, "between": list(reach.between), "across_wheels": True}
