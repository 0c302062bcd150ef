"""The summary of a campaign, read from its rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from bot.campaigns.context import Context
from bot.campaigns.plan.planner import read_ranking, read_source_reports
from bot.campaigns.provenance import origin
from bot.campaigns.reduce.case_reduction import read_reduction
from bot.campaigns.report.summary import FindingFacts, ReducedFacts, Summary, ToolchainFacts
from bot.campaigns.run.shards import Environment, find_environment
from bot.store import campaigns, findings, outcomes, reductions, targets
from bot.store.campaigns import Session
from bot.store.models import Campaign, Classification, Finding, Side
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.triage.signature import UNSORTED

#: What titles show in place of the operator of failures that belong to no bug.
_SEVERAL = "several operators"


def gather(context: Context) -> Summary:
    """The summary as the campaign's rows stand; outcomes are streamed."""
    with context.reading() as (session, campaign):
        config = context.config(campaign)
        sides = {
            side: environment
            for side in Side
            if (environment := find_environment(session, campaign, config, side)) is not None
        }
        counts = {
            side: outcomes.counts(session, campaign.id, environment.key)
            for side, environment in sides.items()
        }
        operators, rules, eagle = _by_operator_and_rule(context, session, sides)
        return Summary(
            campaign_id=campaign.id,
            target=campaign.target,
            stable_name=targets.stable_name(session, campaign.target),
            head=campaign.head,
            base=campaign.base,
            ref=campaign.ref,
            trigger=campaign.trigger,
            pull=campaign.pull,
            seed=campaign.seed,
            config=campaign.config,
            configuration=sides[Side.HEAD].key.configuration if Side.HEAD in sides else "",
            toolchains={side: _toolchain(session, environment) for side, environment in sides.items()},
            created_at=campaign.created_at,
            planned=campaigns.planned(session, campaign.id),
            counts=counts,
            operators=operators,
            rules=rules,
            eagle=eagle,
            phases={side: outcomes.by_phase(session, campaign.id, at.key) for side, at in sides.items()},
            cached={
                side: outcomes.cached(session, campaign.id, environment.key, campaign.created_at)
                for side, environment in sides.items()
            },
            costs={step: campaigns.step_cost(campaign, step) for step in campaign.costs},
            findings=tuple(_findings(context, session, campaign, sides)),
            seconds={step: float(spent) for step, spent in campaign.clock.items()},
            sources=tuple(read_source_reports(campaign.plan)),
            ranking=read_ranking(campaign.plan),
            note=campaign.reason,
            noise=_noise(session, campaign.id, sides),
        )


def _noise(session: Session, campaign_id: int, sides: dict[Side, Environment]) -> tuple[int, int]:
    return outcomes.noise(session, campaign_id, sides[Side.HEAD].key) if Side.HEAD in sides else (0, 0)


def _toolchain(session: Session, environment: Environment) -> ToolchainFacts:
    row = campaigns.toolchain(session, environment.key.toolchain)
    return ToolchainFacts(
        digest=row.digest,
        backend=row.backend,
        provisioner=row.provisioner,
        label=row.label,
        python=row.python,
        versions={str(name): str(version) for name, version in row.versions.items()},
        requirements=tuple(map(str, row.requirements)),
        overlay={str(path): str(place) for path, place in row.overlay.items()},
    )


def _by_operator_and_rule(
    context: Context, session: Session, sides: dict[Side, Environment]
) -> tuple[
    dict[str, dict[Side, dict[Verdict, int]]],
    dict[tuple[str, str], dict[Verdict, int]],
    Counter[tuple[str, str]],
]:
    """The cases of each operator on each side, and of each rule and API at head; then those that differ by
    EAGLE's bounds.
    """
    counted: dict[str, dict[Side, Counter[Verdict]]] = defaultdict(
        lambda: {side: Counter() for side in sides}
    )
    rules: dict[tuple[str, str], Counter[Verdict]] = defaultdict(Counter)
    eagle: Counter[tuple[str, str]] = Counter()
    for side, environment in sides.items():
        differing = outcomes.differing_by_eagle(session, context.campaign_id, environment.key)
        for case_id, verdict in outcomes.verdicts(session, context.campaign_id, environment.key):
            about = origin(context.corpus, case_id)
            counted[about.operator][side][verdict] += 1
            for place in about.rules if side is Side.HEAD else ():
                rules[place][verdict] += 1
                eagle[place] += case_id in differing
    operators = {
        operator: {side: dict(tally) for side, tally in by_side.items()}
        for operator, by_side in sorted(counted.items())
    }
    return operators, {place: dict(tally) for place, tally in sorted(rules.items())}, +eagle


def _findings(
    context: Context, session: Session, campaign: Campaign, sides: dict[Side, Environment]
) -> Iterator[FindingFacts]:
    for row in findings.of_campaign(session, campaign.id):
        seen = {
            side: outcomes.get(session, row.case_id, environment.key) for side, environment in sides.items()
        }
        head = seen.get(Side.HEAD)
        if head is not None:
            head = outcomes.with_component(session, campaign.id, Side.HEAD, head)
        facts = _finding(context, row, head, seen.get(Side.BASE))
        facts = replace(facts, found_by_reduction=not campaigns.plans(session, campaign.id, row.case_id))
        yield _with_reduction(context, session, campaign, sides, facts, row.reduced) if row.reduced else facts


def _finding(context: Context, row: Finding, head: Outcome | None, base: Outcome | None) -> FindingFacts:
    facts = FindingFacts(
        case_id=row.case_id,
        origin=origin(context.corpus, row.case_id),
        classification=Classification(row.classification),
        verdict=Verdict(row.verdict),
        signature=row.signature,
        title="",
        head=head,
        base=base,
        head_failed=row.head_failed,
        head_runs=row.head_runs,
        base_failed=row.base_failed,
        base_runs=row.base_runs,
        reason=row.reason,
    )
    operator = facts.origin.subject
    if row.signature.startswith(UNSORTED):
        operator = facts.accused.evidence.rewrite or _SEVERAL
    title = context.services.sign(facts.accused, operator, facts.origin.frontend).title
    return replace(facts, title=title)


def _with_reduction(
    context: Context,
    session: Session,
    campaign: Campaign,
    sides: dict[Side, Environment],
    facts: FindingFacts,
    case_id: str,
) -> FindingFacts:
    """The finding with its reduced case and the title of that."""
    row = reductions.get(session, facts.case_id, sides[Side.HEAD].key)
    small = read_reduction(row) if row is not None else None
    at = {side: outcomes.get(session, case_id, environment.key) for side, environment in sides.items()}
    head, base = at[Side.HEAD], at.get(Side.BASE)
    assert row is not None
    assert small is not None
    assert head is not None
    runs = {
        side: outcomes.agreement(session, campaign.id, side, environment.key, case_id).get(case_id, (0, 0))
        for side, environment in sides.items()
    }
    head = outcomes.with_component(session, campaign.id, Side.HEAD, head)
    origin_ = facts.origin
    signature = context.services.sign(head, origin_.subject, origin_.frontend, small.traits)
    base_agreed, base_runs = runs.get(Side.BASE, (0, 0))
    passes = base is not None and base.verdict is Verdict.PASS
    found = ReducedFacts(
        case_id=case_id,
        size=origin(context.corpus, case_id).size,
        head=head,
        base=base,
        head_failed=runs[Side.HEAD][0],
        head_runs=runs[Side.HEAD][1],
        base_failed=base_runs - base_agreed if passes else base_agreed,
        base_runs=base_runs,
        traits=small.traits,
        fields=dict(signature.fields),
        history=dict(row.body) | {"runs": row.runs, "seconds": row.seconds},
    )
    return replace(facts, title=signature.title, reduced=found)
