"""What a search for the change behind a bug tries, in order.

For a compiler's own repository: the commits from base to head if the campaign found a regression; else the
releases, then the commits between the two that they name. For a repository that pins a compiler: releases.
"""

from __future__ import annotations

from typing import Any

from bot.approval import NotApprovedError
from bot.bisection.report import is_doubtful
from bot.bisection.search import ResultKind
from bot.bugs.release_bisection import ReleaseBisection, is_of_commits
from bot.errors import ConfigError, ProvisionError
from bot.store import campaigns, findings


def find_introduction(search: ReleaseBisection) -> dict[str, Any]:
    """The commit that brought the bug, or the release; in the form of `bot.bisection.report`."""
    if not _is_own_repository(search):
        return search.find_first_bad()
    known = search.known
    with search.job_context.database.reading() as session:
        is_regression = findings.is_regression(session, known.campaign.id, known.bug.id)
    if is_regression and known.campaign.base:
        found = _find_commit(search, None, fixed_by=False)
        if found is not None and _names_commits(found):
            return found
    return _refine(search, search.find_first_bad(), fixed_by=False)


def _names_commits(answer: dict[str, Any]) -> bool:
    """Whether an answer names the commit, or the two between which it is, as between nightly wheels."""
    certain = {ResultKind.FOUND.value, ResultKind.RANGE.value}
    return answer["kind"] in certain and not is_doubtful(answer)


def find_fix(search: ReleaseBisection) -> dict[str, Any]:
    """The commit that fixed the bug, or the release."""
    answer = search.find_first_fixed()
    return _refine(search, answer, fixed_by=True) if _is_own_repository(search) else answer


def _refine(search: ReleaseBisection, answer: dict[str, Any], *, fixed_by: bool) -> dict[str, Any]:
    found = _find_commit(search, answer, fixed_by=fixed_by)
    useful = found is not None and found["release"] and found["before"]
    return {**found, "releases_answer": answer} if found is not None and useful else answer


def _find_commit(
    search: ReleaseBisection, since: dict[str, Any] | None, *, fixed_by: bool
) -> dict[str, Any] | None:
    try:
        return search.find_commit(since, fixed_by=fixed_by)
    except NotApprovedError:  # of a fork's pull request only the head is approved
        return None
    except (ConfigError, ProvisionError) as error:
        if isinstance(error, ProvisionError) and error.transient:
            raise
        search.job_context.progress(0, 0, f"no commit can be searched: {error}")
        return None


def _is_own_repository(search: ReleaseBisection) -> bool:
    with search.job_context.database.reading() as session:
        digest = search.known.campaign.head_toolchain or ""
        return is_of_commits(campaigns.toolchain(session, digest).provisioner)
