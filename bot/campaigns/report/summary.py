"""Summary: everything a campaign's end has to tell, gathered from its rows, neutral and unformatted."""

from __future__ import annotations

from collections import Counter
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
    """A toolchain as a report names it."""

    digest: str
    backend: str
    provisioner: str
    label: str
    python: str
    versions: dict[str, str]
    requirements: tuple[str, ...]


class ProgramText(NamedTuple):
    """A program as people read it, and the Python that builds it if it is an ONNX model."""

    shown: str = ""
    code: str = ""


NO_TEXT = ProgramText()


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
    program: ProgramText = NO_TEXT


@dataclass(frozen=True)
class FindingFacts:
    """A finding with all it rests on.

    head, base    outcomes, None where that side was not run
    head_failed   of head_runs fresh runs at head failed alike; base likewise
    signature     key of the bug it belongs to; title is that bug's one line
    program       its text, empty for all but the cases that reports show
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
    program: ProgramText = NO_TEXT
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
    short_failed  cases whose short script was tried and did not show the bug
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
    short_failed: frozenset[str] = frozenset()

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
