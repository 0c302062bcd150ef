"""Searches the commit with a change; of a merge, the commit of the merged branch that brought it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bot.bisection.commit_range import CommitQuery, CommitRange, Sources, describe_commit
from bot.bisection.release_probe import BisectionQuery
from bot.bisection.search import ResultKind, max_probed
from bot.toolchains.registry import OnProgress

#: Bisects commits, oldest first; the result is that of `bot.bisection.report.result_to_json`.
Bisect = Callable[[CommitQuery, CommitRange, Sequence[str]], dict[str, Any]]


def search_commits(
    sources: Sources, between: CommitRange, query: BisectionQuery, bisect: Bisect, progress: OnProgress
) -> dict[str, Any]:
    """The result of `bisect`, with the commits that it names and the wheel that they were laid over."""
    answer = _search(sources, between, query, bisect, progress)
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


def _search(
    sources: Sources, between: CommitRange, query: BisectionQuery, bisect: Bisect, progress: OnProgress
) -> dict[str, Any]:
    differing = sources.revisions(between)
    shas = sources.usable(differing, progress)
    if left := len(differing) - len(shas):
        progress(f"{left} commits before {shas[0][:12]} do not work with this wheel: not searched")
    progress(
        f"{between}: {len(shas)} commits differ in the compiler's Python sources, "
        f"at most {max_probed(len(shas))} to try unless some are skipped"
    )
    if native := sources.out_of_reach(between):
        progress(f"{native} commits change compiler code that the toolchains leave out: not searched")
    answer = bisect(sources.query(query), between, shas)
    named = {
        key: describe_commit(sources.repository.message(answer[key])) if answer[key] else None
        for key in ("release", "before")
    }
    return answer | {"commits": named, "over": sources.like.label}
