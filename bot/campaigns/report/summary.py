"""The summary of a campaign: its facts, unformatted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from bot.campaigns.plan.case_source import SourceReport
from bot.campaigns.plan.ranking import Ranking
from bot.campaigns.provenance import Origin
from bot.store.models import Classification, Side
from bot.store.step_cost import StepCost
from fuzzing.outcomes import Outcome, Phase, Verdict
from fuzzing.triage.traits import Traits


@dataclass(frozen=True)
class ToolchainFacts:
    """A toolchain as reports name it.

    overlay  folder of the commit → folder in site-packages, of what is laid over the wheel
    """

    digest: str
    backend: str
    provisioner: str
    label: str
    python: str
    versions: dict[str, str]
    requirements: tuple[str, ...]
    overlay: Mapping[str, str] = field(default_factory=dict)


class ProgramText(NamedTuple):
    """A program as people read it, and the Python that builds it if it is an ONNX model."""

    shown: str = ""
    code: str = ""


NO_TEXT = ProgramText()


@dataclass(frozen=True)
class ReducedFacts:
    """The reduced case of a finding.

    head, base  its outcomes, with fresh runs as in a finding
    traits      of its program
    fields      of its signature
    history     last event of `fuzzing.reduce`
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
    program: ProgramText = NO_TEXT


@dataclass(frozen=True)
class FindingFacts:
    """A finding with its evidence.

    head, base          outcomes, None if not run
    head_failed         of head_runs fresh runs at head failed alike; base likewise
    signature, title    of its bug
    program             its text, empty for cases that reports do not show
    found_by_reduction  whether its case was met during a reduction, not planned
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
    program: ProgramText = NO_TEXT
    reduced: ReducedFacts | None = None
    found_by_reduction: bool = False

    @property
    def accused(self) -> Outcome:
        """The outcome that the signature is made of."""
        chosen = self.base if self.classification is Classification.FIXED else self.head
        assert chosen is not None
        return chosen


@dataclass(frozen=True)
class Summary:
    """One campaign.

    pull           number of its pull request; None for a branch
    configuration  non-default options and profile, as `Outcome.configuration`
    counts         side → verdict → planned cases; without cases that did not run
    operators      operator → side → verdict → cases
    rules          rule of equivalence and API → verdict → pairs at head
    eagle          rule of equivalence and API → pairs at head that differ by EAGLE's bounds
    phases         side → phase → verdict → planned cases that ended there
    cached         side → planned cases with a cached verdict
    costs          step → cost of its shards
    seconds        step → seconds
    sources        state of each source when the plan was written
    ranking        how the cases were ordered; None if unknown
    note           why there is no base, or ""
    noise          (k, n): k of n passing cases gave another verdict in a rerun
    tried          case → exit code of its reproducer at head
    short_failed   cases whose short script was tried and did not show the bug
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
    rules: dict[tuple[str, str], dict[Verdict, int]] = field(default_factory=dict)
    eagle: dict[tuple[str, str], int] = field(default_factory=dict)
    noise: tuple[int, int] = (0, 0)
    tried: dict[str, int] = field(default_factory=dict)
    short_failed: frozenset[str] = frozenset()

    @property
    def libraries(self) -> tuple[str, ...]:
        """Libraries of the cases, such as "onnx 1.23.2"."""
        return tuple(dict.fromkeys(one.library for one in self.sources if one.library))

    @property
    def skipped(self) -> dict[str, int]:
        """Reason → tests that became no case."""
        total: Counter[str] = Counter()
        for one in self.sources:
            total.update(one.skipped)
        return dict(total)

    def ran(self, side: Side) -> int:
        """Planned cases that ran on that side."""
        return sum(self.counts.get(side, {}).values())

    @property
    def not_run(self) -> int:
        """Planned cases that did not run at head."""
        return self.planned - self.ran(Side.HEAD)

    def classification(self, classification: Classification) -> tuple[FindingFacts, ...]:
        """The findings of one classification."""
        return tuple(one for one in self.findings if one.classification is classification)
