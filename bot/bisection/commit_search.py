"""Searches the commit with a change; of a merge, the commit of the merged branch that brought it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bot.bisection.commit_range import CommitQuery, CommitRange, describe_commit
from bot.bisection.commit_sources import Reach, Sources, over_two_wheels
from bot.bisection.release_probe import BisectionQuery
from bot.bisection.search import ResultKind, max_probed
from bot.toolchains.registry import OnProgress

#: Bisects commits, oldest first; the result is that of `bot.bisection.report.result_to_json`.
Bisect = Callable[[CommitQuery, CommitRange, Sequence[str]], dict[str, Any]]


def search_commits(
    choices: Iterable[Sources],
    between: CommitRange,
    query: BisectionQuery,
    bisect: Bisect,
    progress: OnProgress,
) -> dict[str, Any]:
    """The result of `bisect`, with the commits that it names and the wheel that they were laid over.

    `choices` are those of `list_sources`. The commits that work over the wheel of the last one are searched
    first, and older ones over an older wheel only if the change lies before them.
    """
    sources, answer = _search_choices(choices, between, query, bisect, progress)
    merge = str(answer["release"] or "")
    branch = sources.merged(merge) if answer["kind"] == ResultKind.FOUND.value else None
    if branch is None or branch.good == branch.bad:
        return answer
    progress(f"{merge[:12]} is a merge: searching the commits that it brought")
    inner = _search(sources, branch, query, bisect, progress)
    if inner["kind"] != ResultKind.FOUND.value:
        return answer  # the branch alone does not show it: the merge brought it
    inner["commits"]["release"]["merge"] = merge
    return inner


def _search_choices(
    choices: Iterable[Sources],
    between: CommitRange,
    query: BisectionQuery,
    bisect: Bisect,
    progress: OnProgress,
) -> tuple[Sources, dict[str, Any]]:
    """The answer, and the sources that gave it."""
    tried = []
    for one in choices:
        answer = _search(one, between, query, bisect, progress, more=not one.complete)
        if one.complete or _is_final(answer, fixed_by=query.fixed_by):
            return one, answer
        tried.append(one)
    progress("the change lies before these commits: looking for those that work over an older wheel")
    chosen = over_two_wheels(tried, between, progress)
    return chosen, _search(chosen, between, query, bisect, progress)


def _is_final(answer: Mapping[str, Any], *, fixed_by: bool) -> bool:
    """Whether older commits would not change an answer: a change was found, the last commit answers the
    question alone, or the time is over.
    """
    last_decides = ResultKind.HORIZON if fixed_by else ResultKind.NEVER
    final = {kind.value for kind in (ResultKind.FOUND, ResultKind.RANGE, ResultKind.ERROR, last_decides)}
    return answer["kind"] in final or bool(answer.get("untried"))


def _search(
    sources: Sources,
    between: CommitRange,
    query: BisectionQuery,
    bisect: Bisect,
    progress: OnProgress,
    *,
    more: bool = False,
) -> dict[str, Any]:
    """The answer over these sources. more: commits that they leave out may be searched over others."""
    reach = sources.reach(sources.revisions(between), progress, presumed=more)
    shas = reach.usable
    why = "likely need what this wheel lacks: left for later" if more else "work with no wheel: not searched"
    for left_out in filter(None, (reach.before, reach.between)):
        ends = " to ".join(dict.fromkeys(left_out[at][:12] for at in (0, -1)))
        progress(f"{len(left_out)} commits, {ends}, {why}")
    progress(
        f"{between}: {len(shas)} commits differ in the compiler's Python sources, "
        f"at most {max_probed(len(shas))} to try unless some are skipped"
    )
    if native := sources.out_of_reach(between):
        progress(f"{native} commits change compiler code that the toolchains leave out: not searched")
    answer = bisect(sources.query(query, reach), between, shas)
    named = {
        key: describe_commit(sources.repository.message(answer[key])) if answer[key] else None
        for key in ("release", "before")
    }
    return answer | {"commits": named, "over": _wheels(sources, reach)} | _across_wheels(answer, reach)


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
