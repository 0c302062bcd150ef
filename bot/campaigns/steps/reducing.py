"""Reducing: reduces failing cases, checks the reduced cases at head and base, and assigns bugs.

Regressions first, one of each signature before others. Already broken cases are reduced only while the step
has taken less than the campaign's budget, and neither a bug of the target nor an earlier reduction fits. A
case that cannot be reduced is reported as found, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bot.campaigns.classify.bug_matching import KnownBug, contradicts_reduced
from bot.campaigns.context import Context
from bot.campaigns.reduce import reduction_selection
from bot.campaigns.reduce.reducer import FindingReducer
from bot.campaigns.registry import step
from bot.campaigns.run.shards import load_environments
from bot.store import bugs, campaigns, findings, outcomes
from bot.store.models import Bug, CampaignState, Classification, Finding, Side
from fuzzing.outcomes import Verdict
from fuzzing.triage.signature import Signature


@step(CampaignState.REDUCING, to=(CampaignState.REPORTING,))
def reduce(context: Context) -> None:
    """Reads the findings; writes reductions as they come, then the findings with their bugs."""
    config, head, base = load_environments(context)
    with context.reading() as (session, campaign):
        found = {row.case_id: row for row in findings.copies(session, campaign.id)}
        target = bugs.of_target(session, campaign.target)
        signatures_to_announce = frozenset(bugs.signatures_to_announce(session, target))
        within_budget, tried = campaign.pull is not None, campaigns.attempted_reductions(campaign)
    work = FindingReducer(
        context, config, head, base, found, _known(target), signatures_to_announce, within_budget, tried=tried
    )
    if config.reduction.cases:
        chosen = reduction_selection.select_for_reduction(found.values(), work.size)
        explained = work.explained_at_base(dict(_raw(work, chosen)))
        work.reduce([one for one in chosen if one.case_id not in explained])
        work.reduce(work.adopt_reductions())  # other failures met on the way
        work.adopt_reductions()
        work.drop_unreduced()
    _sign(work)
    attempted = len(work.adopted) + len(work.why)
    if attempted:
        context.progress(attempted, attempted, f"{len(work.adopted)} of {attempted} failing cases reduced")
    with context.transaction() as (session, campaign):
        findings.replace(session, campaign.id, work.found.values())
        context.move(campaign, CampaignState.REPORTING)


def _known(target: Iterable[Bug]) -> list[KnownBug]:
    """The bugs with a reduced case."""
    return [KnownBug(one.signature, one.facts["signature"]) for one in target if "signature" in one.facts]


def _sign(work: FindingReducer) -> None:
    """Sets the bug key of each finding."""
    kinds: dict[tuple[str, str], str] = {}  # classification, signature before it was reduced → the bug
    for case, known in sorted(work.bugs_by_case().items(), key=lambda one: (one[1].needs, one[1].key)):
        row = work.found[case]
        kinds.setdefault((row.classification, row.signature), known.key)
        row.signature, row.reduced = known.key, work.small[case].case
    raw = dict(_raw(work, work.found.values()))
    underlying_bug = work.underlying_bug(raw)
    unsorted = work.unsorted({case: one for case, one in raw.items() if case not in underlying_bug})
    for case, row in work.found.items():
        if row.reduced:
            continue
        key = underlying_bug.get(case) or unsorted.get(case)
        if not key and not (case in raw and contradicts_reduced(raw[case])):
            key = kinds.get((row.classification, row.signature))  # equal before reduction counts as one bug
        row.signature = key or row.signature
    for case, why in work.why.items():
        row = work.found[case]
        row.reason = f"{row.reason}{findings.NOT_REDUCED}{why}"


def _is_no_bug(row: Finding) -> bool:
    classification = Classification(row.classification)
    changed = classification is Classification.CHANGED and not Verdict(row.verdict).is_failure
    return changed or classification is Classification.SUPPORT_LOST


def _raw(work: FindingReducer, rows: Iterable[Finding]) -> Iterator[tuple[str, Signature]]:
    """Case → signature, for those of the findings that were not reduced."""
    for row in rows:
        case = row.case_id
        if row.reduced or _is_no_bug(row):
            continue
        environment = work.base if Classification(row.classification) is Classification.FIXED else work.head
        assert environment is not None
        with work.context.reading() as (session, _):
            outcome = outcomes.get(session, case, environment.key)
            assert outcome is not None
            if environment is work.head:
                outcome = outcomes.with_component(session, work.context.campaign_id, Side.HEAD, outcome)
        yield case, work.sign(case, outcome)
