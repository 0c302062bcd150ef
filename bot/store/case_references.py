"""Cases that rows refer to, so that nobody removes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from sqlalchemy import select

from bot.store.campaigns import CHUNK, Session
from bot.store.models import (
    Bug,
    Campaign,
    CampaignCase,
    CampaignState,
    Finding,
    Job,
    OutcomeRow,
    Proposal,
    Reduction,
    Repeat,
)
from fuzzing.outcomes import Verdict

_FAILURES = [verdict.value for verdict in Verdict if verdict.is_failure]
_UNFINISHED = [state.value for state in CampaignState if not state.ended]
_COLUMNS = (
    Bug.case_id,
    Finding.case_id,
    Finding.reduced,
    Repeat.case_id,
    Reduction.case_id,
    Reduction.reduced,
    Proposal.signature,  # of a test from a passing case, its id
)
_BODIES = (Bug.facts, Bug.traits, Job.arguments, Job.result, Proposal.proof)
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def referred_cases(session: Session, *, plans: bool) -> Iterator[str]:
    """Ids of cases of bugs, findings, reductions, proposals and jobs, and of those with a failing verdict.

    Streamed, with repetitions. Other texts of 64 hexadecimal digits may be among them.

    plans  whether the cases of campaigns that have not ended count, too
    """
    stream = {"yield_per": CHUNK}
    for column in _COLUMNS:
        yield from session.scalars(select(column).where(column != "").distinct(), execution_options=stream)
    failing = select(OutcomeRow.case_id).where(OutcomeRow.verdict.in_(_FAILURES)).distinct()
    yield from session.scalars(failing, execution_options=stream)
    for body in _BODIES:
        for content in session.scalars(select(body), execution_options=stream):
            yield from _ID.findall(json.dumps(content))
    if plans:
        planned = select(CampaignCase.case_id).join(Campaign, Campaign.id == CampaignCase.campaign_id)
        unfinished = planned.where(Campaign.state.in_(_UNFINISHED)).distinct()
        yield from session.scalars(unfinished, execution_options=stream)
