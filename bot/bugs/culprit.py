"""Finds the commit that introduced a bug, between base and head of its campaign."""

from __future__ import annotations

from typing import Any

from bot.approval import NotApprovedError
from bot.bisection import commits
from bot.bugs import reproduction
from bot.bugs.reproduction import BugCase
from bot.errors import ProvisionError
from bot.jobs.job_context import JobContext
from bot.store import campaigns, findings
from fuzzing.outcomes import Outcome, Verdict


def find_culprit(job_context: JobContext, known: BugCase) -> dict[str, Any] | None:
    """The result of `bot.bisection.commits` for the commits from base to head.

    None if base shows the bug, the builds are not pinned releases, no commit between the two changes the
    build, or a commit between them may not run.
    """
    campaign = known.campaign
    with job_context.database.reading() as session:
        head = campaigns.toolchain(session, campaign.head_toolchain or "")
        is_regression = findings.is_regression(session, campaign.id, known.bug.id)
    if not is_regression or not campaign.base or head.provisioner != "release":
        return None
    try:
        found = reproduction.list_revisions(job_context, campaign)
    except NotApprovedError:  # of a fork's pull request only the head is approved
        return None
    if len(found) < 2:
        return None

    def run(commit: str, runs: int) -> list[Outcome] | None:
        try:
            place = reproduction.build_of_commit(job_context, campaign, commit)
            return reproduction.run_cases(job_context, known.config, place, [known.case], runs)[known.case]
        except ProvisionError as error:
            if error.transient:
                raise
            return None

    def word(outcome: Outcome) -> str:
        if reproduction.shows_bug(job_context, known, outcome):
            return "bad"
        if reproduction.may_show_bug(job_context, known, outcome):
            return "reworded"
        return "good" if outcome.verdict in (Verdict.PASS, Verdict.UNSUPPORTED) else "other"

    return commits.search(found, run, word)
