"""Summary: everything a campaign's end has to tell, gathered from its rows, neutral and unformatted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from bot.campaigns.context import Context
from bot.campaigns.plan.catalog import SourceReport
from bot.campaigns.plan.planner import read_ranking, read_source_reports
from bot.campaigns.plan.ranking import Ranking
from bot.campaigns.provenance import Origin, origin
from bot.campaigns.reduce.case_reduction import read_reduction
from bot.campaigns.run.shards import Environment, find_environment
from bot.store import campaigns, findings, outcomes, reductions, targets
from bot.store.campaigns import Session
from bot.store.models import Campaign, Classification, Finding, Side
from bot.store.step_cost import StepCost
from fuzzing.outcomes import Outcome, Phase, Verdict
from fuzzing.triage.traits import Traits


@dataclass(frozen=True)
class ToolchainFacts:
    """A toolchain as a report names it."""

    digest: str
    backend: str
    provisioner: str
    label: str
    python: str
    versions: dict[str, str]
    requirements: tuple[str, ...]


@dataclass(frozen=True)
class ReducedFacts:
    """What a finding's case was made small to, with all that rests on it.

    head, base  its outcomes, with how often it failed in fresh runs, as in a finding
    traits      what its program shows of the bug
    fields      what its signature is made of
    history     how it went: the program's last event, see `fuzzing.reduce`
    """

    case_id: str
    size: int
    head: Outcome
    base: Outcome | None
    head_failed: int
    head_runs: int
    base_failed: int
    base_runs: int
    traits: Traits
    fields: dict[str, Any]
    history: dict[str, Any]
    program_text: str = ""


@dataclass(frozen=True)
class FindingFacts:
    """A finding with all it rests on.

    head, base    outcomes, None where that side was not run
    head_failed   of head_runs fresh runs at head failed alike; base likewise
    signature     key of the bug it belongs to; title is that bug's one line
    program_text  the program as people read it, "" where it was not asked for
    reduced       what its case was made small to, None where it was not
    met           whether a reduction met its case on the way: it is none of those that were planned
    """

    case_id: str
    origin: Origin
    classification: Classification
    verdict: Verdict
    signature: str
    title: str
    head: Outcome | None
    base: Outcome | None
    head_failed: int
    head_runs: int
    base_failed: int
    base_runs: int
    reason: str
    program_text: str = ""
    reduced: ReducedFacts | None = None
    found_by_reduction: bool = False

    @property
    def accused(self) -> Outcome:
        """The outcome that the signature was made from."""
        chosen = self.base if self.classification is Classification.FIXED else self.head
        assert chosen is not None
        return chosen


@dataclass(frozen=True)
class Summary:
    """One campaign, told whole.

    pull       the pull request it is about; None for a branch
    configuration  options and profile that are not the default, as `Outcome.configuration`
    counts     side → verdict → planned cases with it; what was not run is in no count
    operators  operator → side → verdict → cases
    phases     side → phase → verdict → planned cases that ended there with it
    cached     side → planned cases whose verdict an earlier campaign had left
    work       step → what its shards cost
    seconds    step → seconds spent in it
    sources    what came of each source, as it stood when the plan was written
    ranking    how the cases were put in order; None if that was not kept
    note       why there is no base, or ""
    noise      (k, n): n cases that pass at head were run again there, k of them with another verdict
    tried      case → exit code of its reproducer at head, of those that were tried
    """

    campaign_id: int
    target: str
    stable_name: str
    head: str
    base: str
    ref: str
    trigger: str
    pull: int | None
    seed: int
    config: dict[str, Any]
    configuration: str
    toolchains: dict[Side, ToolchainFacts]
    created_at: datetime
    planned: int
    counts: dict[Side, dict[Verdict, int]]
    operators: dict[str, dict[Side, dict[Verdict, int]]]
    phases: dict[Side, dict[Phase, dict[Verdict, int]]]
    cached: dict[Side, int]
    costs: dict[str, StepCost]
    findings: tuple[FindingFacts, ...]
    seconds: dict[str, float]
    sources: tuple[SourceReport, ...]
    ranking: Ranking | None
    note: str
    noise: tuple[int, int] = (0, 0)
    tried: dict[str, int] = field(default_factory=dict)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Where the cases come from, such as "onnx 1.23.2", each once."""
        return tuple(dict.fromkeys(one.library for one in self.sources if one.library))

    @property
    def skipped(self) -> dict[str, int]:
        """Reason → tests of the sources that became no case."""
        total: Counter[str] = Counter()
        for one in self.sources:
            total.update(one.skipped)
        return dict(total)

    def ran(self, side: Side) -> int:
        """How many planned cases ran on that side."""
        return sum(self.counts.get(side, {}).values())

    @property
    def not_run(self) -> int:
        """Planned cases that did not run at head; they count as nothing else."""
        return self.planned - self.ran(Side.HEAD)

    def classification(self, classification: Classification) -> tuple[FindingFacts, ...]:
        """The findings of one classification."""
        return tuple(one for one in self.findings if one.classification is classification)


def gather(context: Context) -> Summary:
    """The summary of the campaign as its rows stand; outcomes are streamed, findings are few and kept."""
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
            operators=_by_operator(context, session, sides),
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
    )


def _by_operator(
    context: Context, session: Session, sides: dict[Side, Environment]
) -> dict[str, dict[Side, dict[Verdict, int]]]:
    counted: dict[str, dict[Side, Counter[Verdict]]] = defaultdict(
        lambda: {side: Counter() for side in sides}
    )
    for side, environment in sides.items():
        for case_id, verdict in outcomes.verdicts(session, context.campaign_id, environment.key):
            counted[origin(context.corpus, case_id).operator][side][verdict] += 1
    return {
        operator: {side: dict(tally) for side, tally in by_side.items()}
        for operator, by_side in sorted(counted.items())
    }


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
    title = context.services.sign(facts.accused, facts.origin.operator, facts.origin.frontend).title
    return replace(facts, title=title)


def _with_reduction(
    context: Context,
    session: Session,
    campaign: Campaign,
    sides: dict[Side, Environment],
    facts: FindingFacts,
    case_id: str,
) -> FindingFacts:
    """The finding with what its case was made small to, by which it is signed."""
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
    signature = context.services.sign(head, origin_.operator, origin_.frontend, small.traits)
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
