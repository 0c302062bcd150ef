"""Updates the check runs of unfinished campaigns from their rows.

An update is posted into the outbox while the campaign's row is locked against its end, so no update can
follow the final one. After a kill, the next update continues from the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import structlog

from bot.campaigns.plan.planner import read_ranking
from bot.campaigns.plan.ranking import Ranking
from bot.campaigns.provenance import origin
from bot.campaigns.run.confirmation import confirmed_regressions
from bot.campaigns.run.shards import Environment, find_environment
from bot.config import RepositoryConfig
from bot.errors import InfrastructureError
from bot.reports import progress_check
from bot.reports.progress_check import CampaignProgress, FailingCase, TouchedOperator
from bot.store import Database, Session, campaigns, now, outbox, outcomes, pulls, targets
from bot.store.models import Campaign, CampaignState, Side
from bot.store.outbox import EffectDraft
from fuzzing.outcomes import Outcome, Verdict

#: The shortest time between updates of one step: GitHub takes 80 writes a minute from an App.
UPDATE_INTERVAL = timedelta(seconds=15)
#: GitHub marks check runs that are unfinished for so long as stale (REST API, checks).
GITHUB_STALE_AFTER = timedelta(days=14)
#: The longest delay until the end of a campaign is seen, clock differences included.
MAX_END_DELAY = timedelta(minutes=10)
MAX_LISTED = 10  # failing cases, and touched operators

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _LastUpdate:
    """The time and the step of a check run's last update."""

    at: datetime
    step: str


class CheckRunUpdater:
    """Updates the check runs of pull requests; `corpus` is the folder of the cases."""

    def __init__(
        self,
        database: Database,
        corpus: Path,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._database, self._corpus, self._clock = database, corpus, clock
        self._last_updates: dict[int, _LastUpdate] = {}
        self._last_run: datetime | None = None  # campaigns that ended before have their final update

    def update_due(self) -> int:
        """Updates what is due; returns the number of changed check runs."""
        at = self._clock()
        since = self._last_run - MAX_END_DELAY if self._last_run is not None else at - GITHUB_STALE_AFTER
        with self._database.reading() as session:
            present = {one.id: _describe_step(session, one) for one in pulls.unfinished_campaigns(session)}
            over = [campaign.id for campaign in pulls.ended_with_open_check_run(session, since)]
        due = [one for one, step in present.items() if self._is_due(one, step, at)]
        changed = sum(self._update(one, present[one], at) for one in due)
        self._last_updates = {one: last for one, last in self._last_updates.items() if one in present}
        finished = sum(self._finish(one, since) for one in over)
        self._last_run = at
        return changed + finished

    def _is_due(self, campaign: int, step: str, at: datetime) -> bool:
        last = self._last_updates.get(campaign)
        return last is None or last.step != step or at - last.at >= UPDATE_INTERVAL

    def _update(self, campaign_id: int, step: str, at: datetime) -> bool:
        """Posts the present state; False if the campaign has ended, which posts its own end."""
        with self._database.reading() as session:
            there = campaigns.find(session, campaign_id)
            if there is None:
                return False  # deleted meanwhile
            seen = read_progress(session, there, self._corpus)
        draft = progress_check.draft_check_run(seen)
        with self._database.transaction(durable=False) as session:
            campaign = pulls.lock_unfinished(session, campaign_id)
            if campaign is None or not campaign.config:
                return False
            self._post(session, campaign, draft)
        self._last_updates[campaign_id] = _LastUpdate(at, step)
        return True

    def _finish(self, campaign_id: int, since: datetime) -> bool:
        """Posts the final update of a campaign that ended without one, such as a superseded one."""
        with self._database.transaction() as session:
            known = {campaign.id: campaign for campaign in pulls.ended_with_open_check_run(session, since)}
            campaign = known.get(campaign_id)
            if campaign is None:
                return False
            seen = read_progress(session, campaign, self._corpus)
            reason = campaign.reason or f"the campaign is {campaign.state}"
            self._post(session, campaign, progress_check.draft_ended_early(seen, reason))
        return True

    def _post(self, session: Session, campaign: Campaign, draft: EffectDraft) -> None:
        outbox.post(session, [draft], campaign_id=campaign.id, issues_per_day=0, at=self._clock())


def _describe_step(session: Session, campaign: Campaign) -> str:
    """The step of a campaign; a new one is posted at once.

    While cases run, the first results and each confirmed regression count as a step.
    """
    results = regressions = ""
    if campaign.state == CampaignState.RUNNING.value and campaign.clock.get(campaign.state):
        results = " with results"
        if CampaignState.CONFIRMING.value in campaign.clock:
            regressions = f", {len(_confirmed(session, campaign))} regressions"
    return f"{campaign.state}{' at work' * _has_started(campaign)}{results}{regressions}"


def _confirmed(session: Session, campaign: Campaign) -> dict[str, Outcome]:
    """Case → outcome at head, of the regressions that are confirmed so far."""
    config = RepositoryConfig.from_json(campaign.config)
    head, base = (find_environment(session, campaign, config, side) for side in (Side.HEAD, Side.BASE))
    if head is None or base is None:
        return {}
    return confirmed_regressions(session, campaign.id, config.repeats, head, base)


def _has_started(campaign: Campaign) -> bool:
    return bool(campaign.owner or campaign.clock or campaign.state != CampaignState.PLANNING.value)


def read_progress(session: Session, campaign: Campaign, corpus: Path) -> CampaignProgress:
    """The progress of a campaign by its rows."""
    seen = CampaignProgress.queued(
        campaign, targets.stable_name(session, campaign.target), pulls.before(session, campaign)
    )
    state = CampaignState(campaign.state)
    if not _has_started(campaign) and not state.ended:
        return seen
    seen = replace(
        seen,
        state=state,
        queue_position=None,
        planned=campaigns.planned(session, campaign.id),
        ranking=read_ranking(campaign.plan),
        touched=tuple(_list_touched(read_ranking(campaign.plan or {}))),
    )
    if campaign.head_toolchain is None or not campaign.config:
        return seen
    config = RepositoryConfig.from_json(campaign.config)
    head, base = (find_environment(session, campaign, config, side) for side in (Side.HEAD, Side.BASE))
    assert head is not None
    counts = outcomes.counts(session, campaign.id, head.key)
    done = sum(counts.values())
    confirmed = _confirmed(session, campaign)
    return replace(
        seen,
        toolchains=tuple(_list_toolchains(session, head, base)),
        done=done,
        compared=0 if base is None else outcomes.ran(session, campaign.id, base.key),
        counts=counts,
        failing=tuple(islice(_list_failing(session, campaign, head, base, corpus, confirmed), MAX_LISTED)),
        regressions=len(confirmed),
        failures=sum(cases for verdict, cases in counts.items() if verdict.is_failure),
        remaining_s=_estimate_remaining(campaign, config.budget, done, seen.planned)
        if state is CampaignState.RUNNING
        else None,
    )


def _list_toolchains(
    session: Session, head: Environment, base: Environment | None
) -> Iterator[tuple[str, str]]:
    for place in (head, base):
        if place is not None:
            yield place.side.value, campaigns.toolchain(session, place.key.toolchain).label


def _estimate_remaining(campaign: Campaign, budget: float, done: int, planned: int) -> float | None:
    """Seconds until the plan has run at this rate, at most the rest of the budget."""
    seconds_spent = campaigns.seconds_spent(campaign, CampaignState.RUNNING.value)
    if not done or seconds_spent <= 0:
        return None
    return max(0.0, min((planned - done) * seconds_spent / done, budget - seconds_spent))


def _list_failing(
    session: Session,
    campaign: Campaign,
    head: Environment,
    base: Environment | None,
    corpus: Path,
    confirmed: Mapping[str, Outcome],
) -> Iterator[FailingCase]:
    """Failures at head in rank order: confirmed regressions, then those that pass at base, then others."""
    outcome_pairs = outcomes.outcome_pairs(session, campaign.id, head.key, None if base is None else base.key)
    later: list[FailingCase] = []
    for _, outcome in sorted(confirmed.items()):
        passing = Verdict.PASS.value
        yield replace(_describe_failure(corpus, outcome, None), base=passing, confirmed=True)
    for at_head, at_base in outcome_pairs:
        if not at_head.verdict.is_failure or at_head.case in confirmed:
            continue
        if at_base is None or at_base.verdict is Verdict.PASS:
            yield _describe_failure(corpus, at_head, at_base)
        elif len(later) < MAX_LISTED:
            later.append(_describe_failure(corpus, at_head, at_base))
    yield from later


def _describe_failure(corpus: Path, at_head: Outcome, at_base: Outcome | None) -> FailingCase:
    base = "" if at_base is None else at_base.verdict.value.replace("_", " ")
    try:
        about = origin(corpus, at_head.case)
    except InfrastructureError:  # the campaign's own step reports it
        return FailingCase(at_head.case[:16], "", at_head.summary, base)
    return FailingCase(about.test, about.operator, at_head.summary, base)


def _list_touched(ranking: Ranking | None) -> Iterator[TouchedOperator]:
    """The operators that the change touches by its ranking, the surest first."""
    touched = (one for one in (ranking.touched if ranking else ()) if "operator" in one)
    for one in islice(touched, MAX_LISTED):
        yield TouchedOperator(str(one["operator"]), str(one["why"]))
