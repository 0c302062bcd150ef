"""The check runs of campaigns at work, brought up to date from rows alone.

What a check run says is read from the rows and posted into the outbox while the campaign's row is locked
against its end, so that nothing can follow the last word. A kill loses nothing but time: whatever was
posted is a row, and the next look says what has become true since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import structlog

from bot.campaigns.plans import ranking_of
from bot.campaigns.provenance import origin
from bot.campaigns.ranking import Ranking
from bot.campaigns.shards import Place, place_of
from bot.config import RepositoryConfig
from bot.errors import InfrastructureError
from bot.reports import underway
from bot.reports.underway import Failing, Touch, Underway
from bot.store import Database, Session, campaigns, now, outbox, outcomes, pulls, targets
from bot.store.models import Campaign, CampaignState, Side
from bot.store.outbox import Draft
from fuzzing.outcomes import Outcome, Verdict

#: A check run changes at most so often, but for a new step: GitHub takes 80 writes a minute of an App.
EVERY = timedelta(seconds=15)
#: GitHub itself gives up check runs that are unfinished for so long (REST API, checks: "stale").
STALE = timedelta(days=14)
#: How late the end of a campaign may be seen, clocks of several machines included.
RECENT = timedelta(minutes=10)
SHOWN = 10  # failing cases, and touched operators, that are listed

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Said:
    """When a check run was last changed, and at which step."""

    at: datetime
    step: str


class Checks:
    """Keeps the check runs of pull requests' campaigns true.

    corpus  where the cases lie
    """

    def __init__(
        self,
        database: Database,
        corpus: Path,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._database, self._corpus, self._clock = database, corpus, clock
        self._said: dict[int, _Said] = {}
        self._looked: datetime | None = None  # all that ended before has had its last word

    def look(self) -> int:
        """Brings up to date what is due; returns how many check runs that changed."""
        at = self._clock()
        since = self._looked - RECENT if self._looked is not None else at - STALE
        with self._database.reading() as session:
            present = {one.id: _step(one) for one in pulls.at_work(session)}
            over = [campaign.id for campaign in pulls.unsaid(session, since)]
        due = [one for one, step in present.items() if self._due(one, step, at)]
        changed = sum(self._revise(one, present[one], at) for one in due)
        self._said = {one: said for one, said in self._said.items() if one in present}
        finished = sum(self._finish(one, since) for one in over)
        self._looked = at
        return changed + finished

    def _due(self, campaign: int, step: str, at: datetime) -> bool:
        said = self._said.get(campaign)
        return said is None or said.step != step or at - said.at >= EVERY

    def _revise(self, campaign_id: int, step: str, at: datetime) -> bool:
        """Posts what is true now; False where the campaign has ended, which tells its own end."""
        with self._database.reading() as session:
            there = campaigns.find(session, campaign_id)
            if there is None:
                return False  # forgotten meanwhile
            seen = gather(session, there, self._corpus)
        draft = underway.draft(seen)
        with self._database.transaction(durable=False) as session:
            campaign = pulls.unended(session, campaign_id)
            if campaign is None or not campaign.config:
                return False
            self._post(session, campaign, draft)
        self._said[campaign_id] = _Said(at, step)
        return True

    def _finish(self, campaign_id: int, since: datetime) -> bool:
        """The last word on a campaign that ended without one: superseded, closed, nothing to test, a bug."""
        with self._database.transaction() as session:
            known = {campaign.id: campaign for campaign in pulls.unsaid(session, since)}
            campaign = known.get(campaign_id)
            if campaign is None:
                return False
            seen = gather(session, campaign, self._corpus)
            reason = campaign.reason or f"the campaign is {campaign.state}"
            self._post(session, campaign, underway.ended(seen, reason))
        return True

    def _post(self, session: Session, campaign: Campaign, draft: Draft) -> None:
        outbox.post(session, [draft], campaign_id=campaign.id, issues_per_day=0, at=self._clock())


def _step(campaign: Campaign) -> str:
    """Where a campaign is; when that changes, its check run changes at once. First results are a step too."""
    results = campaign.state == CampaignState.RUNNING.value and bool(campaign.clock.get(campaign.state))
    return f"{campaign.state}{' at work' * _begun(campaign)}{' with results' * results}"


def _begun(campaign: Campaign) -> bool:
    return bool(campaign.owner or campaign.clock or campaign.state != CampaignState.PLANNING.value)


def gather(session: Session, campaign: Campaign, corpus: Path) -> Underway:
    """A campaign as its rows stand."""
    seen = Underway.queued(
        campaign, targets.known_as(session, campaign.target), pulls.before(session, campaign)
    )
    state = CampaignState(campaign.state)
    if not _begun(campaign) and not state.ended:
        return seen
    seen = replace(
        seen,
        state=state,
        waiting=None,
        planned=campaigns.planned(session, campaign.id),
        ranking=ranking_of(campaign.plan),
        touched=tuple(_touched(ranking_of(campaign.plan or {}))),
    )
    if campaign.head_toolchain is None or not campaign.config:
        return seen
    config = RepositoryConfig.from_json(campaign.config)
    head, base = (place_of(session, campaign, config, side) for side in (Side.HEAD, Side.BASE))
    assert head is not None
    counts = outcomes.counts(session, campaign.id, head.key)
    done = sum(counts.values())
    return replace(
        seen,
        toolchains=tuple(_labels(session, head, base)),
        done=done,
        compared=0 if base is None else outcomes.ran(session, campaign.id, base.key),
        counts=counts,
        failing=tuple(islice(_failing(session, campaign, head, base, corpus), SHOWN)),
        failures=sum(cases for verdict, cases in counts.items() if verdict.accuses),
        left_s=_left(campaign, config.budget, done, seen.planned) if state is CampaignState.RUNNING else None,
    )


def _labels(session: Session, head: Place, base: Place | None) -> Iterator[tuple[str, str]]:
    for place in (head, base):
        if place is not None:
            yield place.side.value, campaigns.toolchain(session, place.key.toolchain).label


def _left(campaign: Campaign, budget: float, done: int, planned: int) -> float | None:
    """Seconds until the plan has run at this rate, and no more than the budget has left."""
    spent = campaigns.spent(campaign, CampaignState.RUNNING.value)
    if not done or spent <= 0:
        return None
    return max(0.0, min((planned - done) * spent / done, budget - spent))


def _failing(
    session: Session, campaign: Campaign, head: Place, base: Place | None, corpus: Path
) -> Iterator[Failing]:
    """What fails at head, in rank order; what passes at base first, for that is what people look for."""
    pairs = outcomes.pairs(session, campaign.id, head.key, None if base is None else base.key)
    later: list[Failing] = []
    for at_head, at_base in pairs:
        if not at_head.verdict.accuses:
            continue
        if at_base is None or at_base.verdict is Verdict.PASS:
            yield _one(corpus, at_head, at_base)
        elif len(later) < SHOWN:
            later.append(_one(corpus, at_head, at_base))
    yield from later


def _one(corpus: Path, at_head: Outcome, at_base: Outcome | None) -> Failing:
    base = "" if at_base is None else at_base.verdict.value.replace("_", " ")
    try:
        about = origin(corpus, at_head.case)
    except InfrastructureError:  # the step itself will say so; a check run at work need not
        return Failing(at_head.case[:16], "", at_head.summary, base)
    return Failing(about.test, about.operator, at_head.summary, base)


def _touched(ranking: Ranking | None) -> Iterator[Touch]:
    """What the ranking says the change touches, the surest first."""
    told = (one for one in (ranking.touched if ranking else ()) if "operator" in one)
    for one in islice(told, SHOWN):
        yield Touch(str(one["operator"]), str(one["why"]))
