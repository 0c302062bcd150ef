"""The data of a campaign for its report, as frozen dataclasses.

Passing cases are only counted, so memory grows with the number of findings, not of cases.
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
    """The part of a toolchain that reproducers need; `bot.toolchains.ReadyToolchain` is one."""

    @property
    def requirements(self) -> Sequence[str]:
        """Arguments of `pip install` for the same toolchain."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Package → version, as reported by the toolchain."""

    @property
    def sources(self) -> str:
        """Shell commands that lay a commit's sources over the packages; "" for a release."""


@dataclass(frozen=True)
class ToolchainView:
    """A toolchain.

    label         such as "openvino 2024.0.0"
    versions      package → version
    requirements  arguments of `pip install` that give the same toolchain
    python        version of its interpreter, such as "3.11.7"
    platform      such as "Linux x86_64", "" if unknown
    sources       shell commands that lay a commit's sources over the packages; "" for a release
    """

    label: str
    versions: Mapping[str, str]
    requirements: Sequence[str]
    python: str = ""
    platform: str = ""
    sources: str = ""


@dataclass(frozen=True)
class Tally:
    """`failed` of `runs` runs: those in fresh processes, else the campaign's own run; 0 of 0 without runs."""

    failed: int = 0
    runs: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.failed <= self.runs:
            raise ValueError(f"{self.failed} of {self.runs} runs cannot have failed")


@dataclass(frozen=True)
class ReducedView:
    """The reduced case of a finding.

    head, base, head_runs, base_runs, size   as of a finding
    history                                  how it was reduced, in a line
    minimal                                  whether the reduction completed
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
    """One failing outcome and its classification.

    case, test, operator  the case's id, its name in its library, the operator under test
    head, base            the outcomes; base is None if it did not run, head if only base failed
    signature, title      of its bug (`fuzzing.triage.signature`), from base's outcome if it was fixed
    size                  bytes of the case's program, 0 if unknown
    reason                why it is inconclusive or flaky
    reduced               its reduced case; None if it was not reduced
    found_by_reduction    whether its case was found while reducing another, and not planned
    rules                 of a pair, what it is counted under in `CampaignView.rules`
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
    rules: tuple[tuple[str, str], ...] = ()

    @property
    def outcome(self) -> Outcome | None:
        """Base's outcome if it was fixed, head's otherwise."""
        return self.base if self.classification is Classification.FIXED else self.head

    @property
    def smallest(self) -> FindingView:
        """The finding with its reduced case, if there is one."""
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
    """The number of cases of one operator with one verdict on one side."""

    side: Side
    operator: str
    verdict: Verdict
    cases: int


@dataclass(frozen=True)
class CampaignView:
    """A campaign that has ended.

    campaign      its id, 0 outside the service
    base          "" without a base
    pull          number of the pull request; None for a branch
    head_toolchain, base_toolchain   None if there is none
    counts        one entry for each (side, operator, verdict) that occurred
    rules         rule of equivalence and API → verdict → pairs at head
    eagle         rule of equivalence and API → pairs at head that differ by EAGLE's bounds
    findings      read once, in any order; may be a generator
    planned       cases in the plan
    stopped       why not all of them ran, such as "budget"; "" if all did
    skipped       reason → tests of the sources that were not converted
    library       the cases' library, such as "onnx 1.23.2"
    sources       the sources when the plan was written
    ranking       how the cases were ordered; None if unknown
    durations     step → seconds
    phases        side → phase → verdict → cases
    cached        side → cases with a cached verdict
    costs         step → cost of its shards
    stable_name   the target's name in keys (`bot.store.targets.stable_name`)
    configuration options and profile that are not the default, as `Outcome.configuration`
    config        the repository's configuration as JSON
    note          what the toolchains lack, and why there is no base; "" for nothing
    noise         passing cases repeated at head, and how many of them gave a different verdict
    tried         case → exit code of its guarded reproducer at head
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
    note: str = ""
    pull: int | None = None
    rules: Mapping[tuple[str, str], Mapping[Verdict, int]] = field(default_factory=dict)
    eagle: Mapping[tuple[str, str], int] = field(default_factory=dict)
    noise: Tally = Tally()
    tried: Mapping[str, int] = field(default_factory=dict)
    short_failed: frozenset[str] = frozenset()
    started_at: datetime | None = None
    ended_at: datetime | None = None
