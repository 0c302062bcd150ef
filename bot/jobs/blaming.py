"""Which commit of the branch brought a bug, as far as its campaign's base and head let that be asked."""

from __future__ import annotations

from typing import Any

from bot.bisection import commits
from bot.errors import ProvisionError
from bot.jobs import running
from bot.jobs.doing import Doing
from bot.jobs.running import Known
from bot.store import campaigns, findings
from fuzzing.outcomes import Outcome, Verdict


def brought(doing: Doing, known: Known) -> dict[str, Any] | None:
    """What `bot.bisection.commits` says of the commits between base and head.

    None where base was not free of it, the builds are not releases that the repository pins, or no commit
    between the two changes what is built.
    """
    campaign = known.campaign
    with doing.database.reading() as session:
        head = campaigns.toolchain(session, campaign.head_toolchain or "")
        regressed = findings.regressed(session, campaign.id, known.bug.id)
    if not regressed or not campaign.base or head.provisioner != "release":
        return None
    found = running.commits(doing, campaign)
    if len(found) < 2:
        return None

    def run(commit: str, runs: int) -> list[Outcome] | None:
        try:
            place = running.at_commit(doing, campaign, commit)
            return running.run(doing, known.config, place, [known.case], runs)[known.case]
        except ProvisionError as error:
            if error.passing:
                raise
            return None

    def word(outcome: Outcome) -> str:
        if running.same(doing, known, outcome):
            return "bad"
        if running.akin(doing, known, outcome):
            return "kin"
        return "good" if outcome.verdict in (Verdict.PASS, Verdict.UNSUPPORTED) else "other"

    return commits.search(found, run, word)
