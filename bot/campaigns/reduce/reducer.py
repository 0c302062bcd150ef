"""Reduces the failing cases of a campaign, and classifies what the reductions left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from bot.campaigns.classify.bug_matching import (
    KnownBug,
    candidate_bugs,
    describes_cause,
    match_bug_keys,
    same_symptom,
    underlying_bug,
)
from bot.campaigns.classify.classification import make_finding
from bot.campaigns.context import Context
from bot.campaigns.provenance import origin
from bot.campaigns.reduce import batch_reduction, program_text, reduction_selection
from bot.campaigns.reduce.batch_reduction import ReductionBatch
from bot.campaigns.reduce.case_reduction import ReducedCase, read_reduction
from bot.campaigns.run.extra_cases import ExtraCase, run_extra_cases
from bot.campaigns.run.shards import Environment
from bot.campaigns.services import Config
from bot.store import campaigns, outcomes
from bot.store import reductions as rows
from bot.store.models import Classification, Finding, Reduction
from fuzzing.cases import Corpus
from fuzzing.outcomes import Outcome
from fuzzing.triage.signature import Signature, compute_unsorted_key
from fuzzing.triage.traits import Traits

#: Other failures of one reduction that become findings, smallest first.
OTHERS = 3


@dataclass
class FindingReducer:
    """The findings of a campaign while their cases are reduced.

    found          finding by case
    known_bugs     bugs of the target
    unannounced    keys of those that are over, or that only pull requests showed
    within_budget  whether all reductions share the campaign's budget, as for a pull request
    small          case → its reduction
    adopted        case → its reduced case, if that stands for the finding
    why            case → why it is not reduced
    tried          cases reduced by this campaign, before a restart too → why that failed, or ""
    met            cases with other bugs, met while others were reduced
    """

    context: Context
    config: Config
    head: Environment
    base: Environment | None
    found: dict[str, Finding]
    known_bugs: list[KnownBug]
    unannounced: frozenset[str] = frozenset()
    within_budget: bool = False
    small: dict[str, ReducedCase] = field(default_factory=dict)
    adopted: dict[str, ExtraCase] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    tried: dict[str, str] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)
    _read_traits: dict[str, Traits] = field(default_factory=dict)

    @property
    def budget(self) -> float:
        """Seconds for reducing new failures."""
        reduction = self.config.reduction
        most = reduction.cases * reduction.budget
        return min(self.config.budget, most) if self.within_budget else max(self.config.budget, most)

    @property
    def _check_budget(self) -> float:
        """Seconds for reducing and for running the reduced cases: reductions must not use up the latter."""
        return self.budget + self.config.budget

    def size(self, case_id: str) -> int:
        """Bytes of a case's program."""
        return origin(self.context.corpus, case_id).size

    def reduce(self, chosen: list[Finding]) -> None:
        """Reduces the cases of these findings in order, within the budget."""
        known = self._known(chosen)
        waiting = [one for one in chosen if one.case_id not in known and not self.tried.get(one.case_id)]
        allowed = waiting[: max(0, self.config.reduction.cases - len(self.tried))]
        place = {one.case_id: at for at, one in enumerate(chosen, 1)}
        for (new, old), findings in groupby(allowed, lambda one: (_is_regression(one), _fails_at_base(one))):
            cases = [one.case_id for one in findings]
            batch = ReductionBatch(
                titles={case: f"{place[case]} of {len(chosen)}, {self._test(case)}" for case in cases},
                environment=self.head,
                passing_environment=self.base if new else None,
                seconds=self.config.reduction.budget,
                left=partial(self._left, self.config.budget if old else self.budget),
            )
            for case, attempt in batch_reduction.reduce(self.context, self.config, batch).items():
                self.tried[case] = attempt.problem
                if attempt.row is not None:
                    known[case] = attempt.row
        for one in chosen:
            case = one.case_id
            if case in known:
                self._store(case, known[case])
            else:
                self.why[case] = self.tried.get(case) or self._refusal_reason()

    def _test(self, case: str) -> str:
        return origin(self.context.corpus, case).test

    def _store(self, case: str, row: Reduction) -> None:
        small = read_reduction(row)
        if small is None:
            self.why[case] = row.reason
        else:
            self.small[case] = small

    def _refusal_reason(self) -> str:
        """Why a case was not begun."""
        if len(self.tried) >= self.config.reduction.cases:
            return f"{len(self.tried)} cases were reduced, the limit reduction.cases"
        return "the time for reducing was spent"

    def _left(self, budget: float) -> float:
        """Seconds left of a budget, 0 once the campaign is to end early."""
        if self.context.end_early.is_set():
            return 0.0
        with self.context.reading() as (_, campaign):
            return budget - campaigns.seconds_spent(campaign, self.context.step.state.value)

    def _known(self, chosen: list[Finding]) -> dict[str, Reduction]:
        """Case → its reduction at head, or one of another toolchain that shows the same here."""
        with self.context.reading() as (session, _):
            found = {one.case_id: rows.get(session, one.case_id, self.head.key) for one in chosen}
            here = {case: row for case, row in found.items() if row is None or self._is_stored(row)}
            known_bugs = {
                case: row
                for case, known in here.items()
                if known is None
                and (row := rows.find_on_other_toolchain(session, case, self.head.key)) is not None
                if self._is_stored(row)
            }
        return {case: row for case, row in here.items() if row is not None} | self._reuse_elsewhere(
            known_bugs
        )

    def _is_stored(self, row: Reduction) -> bool:
        """Whether the reduced case is still in the corpus."""
        return not row.reduced or Corpus(self.context.corpus).folder(row.reduced).exists()

    def _reuse_elsewhere(self, known_bugs: dict[str, Reduction]) -> dict[str, Reduction]:
        """Reductions of other toolchains whose case shows the finding's symptom at head; recorded for head
        too.
        """
        seen = run_extra_cases(
            self.context,
            self.config,
            self.head,
            None,
            [one.reduced for one in known_bugs.values()],
            self._check_budget,
        )
        held = {
            case: _copy_reduction(row, seen[row.reduced].head)
            for case, row in known_bugs.items()
            if row.reduced in seen and self._same(case, seen[row.reduced].head)
        }
        if held:
            with self.context.transaction() as (session, _):
                for row in held.values():
                    rows.record(session, row)
        return held

    def adopt_reductions(self) -> list[Finding]:
        """Classifies reduced cases; adopts each or makes it a finding of its own. Returns new regressions."""
        others = [other for small in self.small.values() for other in small.others[:OTHERS]]
        cases = [small.case for small in self.small.values()]
        self.met.update(set(others) - set(cases) - self.found.keys())
        seen = run_extra_cases(
            self.context, self.config, self.head, self.base, [*cases, *others], self._check_budget
        )
        made: list[tuple[ExtraCase, Traits | None]] = []
        for case, small in self.small.items():
            extra_case = seen.get(small.case)
            if extra_case is not None and _represents(extra_case, self.found[case]):
                self.adopted[case] = extra_case
                self.why.pop(case, None)
            else:
                self.why[case] = _rejection_reason(small, extra_case)
                made += [(extra_case, small.traits)] if extra_case else []
        made += [(seen[other], None) for other in others if other in seen]
        return [
            one for one in self._add(made) if Classification(one.classification) is Classification.REGRESSION
        ]

    def drop_unreduced(self) -> None:
        """Drops failures met on the way that were not reduced themselves: nothing shows what they are."""
        for case in self.met - self.adopted.keys():
            self.found.pop(case, None)
            self.why.pop(case, None)

    def _same(self, case: str, outcome: Outcome) -> bool:
        """Whether an outcome shows the symptom of the finding's own case at head."""
        with self.context.reading() as (session, _):
            own = outcomes.get(session, case, self.head.key)
        return own is not None and same_symptom(self.sign(case, own).fields, self.sign(case, outcome).fields)

    def sign(self, case: str, outcome: Outcome, traits: Traits | None = None) -> Signature:
        """The signature of an outcome of a case, or of its reduction with `traits`."""
        about = origin(self.context.corpus, case)
        return self.context.services.sign(outcome, about.subject, about.frontend, traits)

    def _add(self, made: list[tuple[ExtraCase, Traits | None]]) -> list[Finding]:
        """Makes findings of cases that show other bugs; cases of known bugs add nothing.

        A bug is known if a campaign on a branch saw it and it is open. One that is over, or that only a pull
        request showed, is reported again. A reduced case is signed by its traits: its symptom is that of the
        finding it came from, and it must not be taken for it.
        """
        known_bugs = {row.signature for row in self.found.values()}
        raw: dict[str, Signature] = {}
        fresh: dict[str, Finding] = {}
        for one, traits in made:
            signature = self.sign(one.case, one.head, traits)
            if one.case in self.found or signature.key in known_bugs:
                continue
            row = make_finding(one.classified, self.context.campaign_id, one.case, signature.key)
            if reduction_selection.is_reducible(row):
                raw[one.case], fresh[one.case] = self.sign(one.case, one.head), row
        self.found |= fresh
        known = {case for case, key in self.underlying_bug(raw).items() if key not in self.unannounced}
        for case in known:
            del self.found[case]
        return [row for case, row in fresh.items() if case not in known]

    def bugs_by_case(self) -> dict[str, KnownBug]:
        """Case → bug, for findings whose reduced case was adopted."""
        signatures = {
            case: self.sign(case, extra_case.head, self.small[case].traits)
            for case, extra_case in self.adopted.items()
        }
        keys = match_bug_keys(list(signatures.values()), self.known_bugs)
        return {
            case: KnownBug(key, signatures[case].fields) for case, key in zip(signatures, keys, strict=True)
        }

    def underlying_bug(self, raw: dict[str, Signature]) -> dict[str, str]:
        """Case → key of the bug behind an unreduced finding, for those of `raw` that have one.

        A bug reduced in this campaign explains only findings of its own classification.
        """
        here = [(self.found[case].classification, known) for case, known in self.bugs_by_case().items()]
        may = {
            case: [
                *self.known_bugs,
                *(one for classification, one in here if classification == self.found[case].classification),
            ]
            for case in raw
        }
        asked = [case for case, signature in raw.items() if candidate_bugs(signature, may[case])]
        shown = self._traits(asked)
        keys = {case: underlying_bug(raw[case], shown[case], may[case]) for case in asked}
        return {case: key for case, key in keys.items() if key}

    def explained_at_base(self, raw: dict[str, Signature]) -> set[str]:
        """Those of `raw` that fail at base as well, and that a bug of the target explains as they are.

        Every push meets the failures that are there already. Reducing one anew, or running its reduced case
        again, takes several starts of the compiler and tells nothing.
        """
        old = {
            case: signature
            for case, signature in raw.items()
            if self.found[case].classification == Classification.ALREADY_BROKEN.value
        }
        return set(self.underlying_bug(old))

    def unsorted(self, raw: dict[str, Signature]) -> dict[str, str]:
        """Case → key, for those of `raw` that are of several operators and describe no cause: nothing but
        their outputs, or that they never end, is known.
        """
        asked = [case for case, signature in raw.items() if not describes_cause(signature)]
        shown = self._traits(asked)
        return {
            case: compute_unsorted_key(raw[case].fields) for case in asked if len(shown[case].operators) > 1
        }

    def _traits(self, cases: Iterable[str]) -> dict[str, Traits]:
        """Case → the traits of its program."""
        if missing := [case for case in cases if case not in self._read_traits]:
            self._read_traits |= program_text.program_traits(self.context, missing)
        return self._read_traits


def _is_regression(finding: Finding) -> bool:
    return Classification(finding.classification) is Classification.REGRESSION


def _fails_at_base(finding: Finding) -> bool:
    return Classification(finding.classification) in reduction_selection.FAILING_AT_BASE


def _represents(extra_case: ExtraCase, finding: Finding) -> bool:
    """Whether a reduced case has the classification of its finding."""
    classified = extra_case.classified
    if classified.classification.value != finding.classification:
        return False
    return classified.classification is not Classification.INCONCLUSIVE or classified.reason == finding.reason


def _rejection_reason(small: ReducedCase, extra_case: ExtraCase | None) -> str:
    """Why a reduced case does not stand for its finding."""
    if extra_case is None:
        return f"the reduced case {small.case[:12]} did not fail again at head"
    classified = extra_case.classified
    if classified.classification is Classification.ALREADY_BROKEN:
        return f"the reduced case {small.case[:12]} fails at base too: another bug"
    if classified.classification is Classification.REGRESSION:
        return f"the reduced case {small.case[:12]} passes at base: another, new bug"
    return f"the reduced case {small.case[:12]} is inconclusive: {classified.reason}"


def _copy_reduction(row: Reduction, head: Outcome) -> Reduction:
    """A reduction of another toolchain, for that of `head`."""
    return Reduction(
        case_id=row.case_id,
        toolchain=head.toolchain,
        backend=row.backend,
        device=row.device,
        configuration=row.configuration,
        reduced=row.reduced,
        reason=f"as on toolchain {row.toolchain[:12]}",
        runs=row.runs,
        seconds=row.seconds,
        body=row.body | {"outcome": head.to_json()},
        recorded_at=row.recorded_at,
    )
