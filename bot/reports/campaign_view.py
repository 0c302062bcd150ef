"""What a campaign hands over to be reported: plain frozen data, filled by `bot.campaigns`.

Counts are numbers and only bad outcomes are carried one by one, so the memory taken grows with what
is wrong, not with what ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from bot.campaigns.plan.case_source import SourceReport
from bot.campaigns.plan.ranking import Ranking
from bot.store.models import Classification, Side
from bot.store.step_cost import StepCost
from fuzzing.outcomes import Outcome, Phase, Verdict


class InstalledToolchain(Protocol):
    """What a reproducer must know of a toolchain; `bot.toolchains.ReadyToolchain` is one."""

    @property
    def requirements(self) -> Sequence[str]:
        """What a stranger hands to `pip install` to get the same toolchain."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Package → version, as the toolchain itself stated."""


@dataclass(frozen=True)
class ToolchainView:
    """A toolchain as people name it.

    label         such as "openvino 2024.0.0"
    versions      package → version
    requirements  what a stranger pip-installs to get the same
    python        version of its interpreter, such as "3.11.7"
    platform      such as "Linux x86_64", "" if unknown
    """

    label: str
    versions: Mapping[str, str]
    requirements: Sequence[str]
    python: str = ""
    platform: str = ""


@dataclass(frozen=True)
class Tally:
    """`failed` of `runs` runs, each in a fresh process; 0 of 0 where there was none."""

    failed: int = 0
    runs: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.failed <= self.runs:
            raise ValueError(f"{self.failed} of {self.runs} runs cannot have failed")


@dataclass(frozen=True)
class ReducedView:
    """What the case of a finding was made small to.

    head, base, head_runs, base_runs, size   of the small case, as of a finding
    history                                  how it became small, in a line
    minimal                                  whether nothing more of it could be left out
    """

    case: str
    head: Outcome
    base: Outcome | None
    head_runs: Tally
    base_runs: Tally
    size: int
    history: str
    minimal: bool = True


@dataclass(frozen=True)
class FindingView:
    """One bad outcome and what it means beside base.

    case, test, operator  the case's id, its name in its own library, the operator under test
    head, base            the outcomes; base is None where it did not run, head where only base failed
                          and head is counted, not kept
    signature, title      of the bug it belongs to: `fuzzing.triage.signature`; of the base's outcome
                          for what was fixed
    size                  bytes of the case's program, 0 if unknown: the smallest is shown first
    reason                why it was passed over, for those that could not be judged
    reduced               what its case was made small to; None where it was not
    met                   whether its case was met while others were made small, and was not planned
    """

    case: str
    test: str
    operator: str
    classification: Classification
    head: Outcome | None
    base: Outcome | None
    head_runs: Tally
    base_runs: Tally
    signature: str
    title: str
    size: int = 0
    reason: str = ""
    reduced: ReducedView | None = None
    found_by_reduction: bool = False

    @property
    def outcome(self) -> Outcome | None:
        """The outcome the finding is about: base's for what was fixed, head's otherwise."""
        return self.base if self.classification is Classification.FIXED else self.head

    @property
    def smallest(self) -> FindingView:
        """The finding as its smallest case shows it: the reduced one, where there is one."""
        reduced = self.reduced
        if reduced is None:
            return self
        return replace(
            self,
            case=reduced.case,
            head=reduced.head,
            base=reduced.base,
            head_runs=reduced.head_runs,
            base_runs=reduced.base_runs,
            size=reduced.size,
        )


@dataclass(frozen=True)
class VerdictCount:
    """How many cases of one operator came to one verdict on one side."""

    side: Side
    operator: str
    verdict: Verdict
    cases: int


@dataclass(frozen=True)
class CampaignView:
    """A campaign that has ended, as its report tells it.

    campaign      its id, 0 outside the service
    base          "" if head was compared with nothing
    pull          the pull request it is about; None for a branch
    head_toolchain, base_toolchain   None where there is none
    counts        one entry for each (side, operator, verdict) that occurred
    findings      read once, in any order; may be a generator
    planned       cases in the plan; what did not run is planned minus the head's counts
    stopped       why not all of them ran, such as "budget"; "" if all did
    skipped       reason → tests of the sources that never became cases
    library       where the cases come from, such as "onnx 1.23.2"
    sources       what came of each source, as it stood when the plan was written
    ranking       how the cases were put in order; None if that was not kept
    durations     step → seconds
    phases        side → phase → verdict → cases that ended there with it
    cached        side → cases whose verdict an earlier campaign had left
    work          step → what its shards cost
    stable_name      what keys call the target (`bot.store.targets.stable_name`)
    configuration options and profile that are not the default, as `Outcome.configuration`
    config        the configuration in force, as JSON
    noise         of how many passing cases that were run again at head how many gave another verdict
    tried         case → exit code of its guarded reproducer at head, of those that were tried
    short_failed  cases whose short script was tried and did not show the bug
    """

    target: str
    stable_name: str
    campaign: int
    head: str
    base: str
    ref: str
    trigger: str
    seed: int
    backend: str
    device: str
    head_toolchain: ToolchainView | None
    base_toolchain: ToolchainView | None
    planned: int
    counts: Sequence[VerdictCount]
    findings: Iterable[FindingView]
    stopped: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)
    library: str = ""
    sources: Sequence[SourceReport] = ()
    ranking: Ranking | None = None
    durations: Mapping[str, float] = field(default_factory=dict)
    phases: Mapping[Side, Mapping[Phase, Mapping[Verdict, int]]] = field(default_factory=dict)
    cached: Mapping[Side, int] = field(default_factory=dict)
    costs: Mapping[str, StepCost] = field(default_factory=dict)
    configuration: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    pull: int | None = None
    noise: Tally = Tally()
    tried: Mapping[str, int] = field(default_factory=dict)
    short_failed: frozenset[str] = frozenset()
    started_at: datetime | None = None
    ended_at: datetime | None = None
