"""A campaign's failing cases made small: which are reduced, what their reductions amount to beside base."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.campaigns import choosing, describing, reductions
from bot.campaigns.context import Context
from bot.campaigns.examining import Examined, examine
from bot.campaigns.judging import finding_of
from bot.campaigns.provenance import origin
from bot.campaigns.reductions import Small
from bot.campaigns.services import Config, Signature
from bot.campaigns.shards import Place
from bot.campaigns.signing import Known, alike, behind, keys_of, suspects
from bot.store import campaigns, outcomes
from bot.store import reductions as rows
from bot.store.models import Finding, Reduction, Standing
from fuzzing.cases import Corpus
from fuzzing.outcomes import Outcome
from fuzzing.triage.traits import Traits

#: Other bugs met in one reduction that become findings: the smallest show the most.
OTHERS = 3


@dataclass
class Reducing:
    """The findings while their cases are made small.

    found    by case
    there    the bugs that the target has already
    unheard  keys of those of them that are over, or that only pull requests showed
    hurried  whether somebody waits: a pull request's campaign reduces no longer than its budget
    small    by case: what its reduction left
    adopted  by case: the reduced case, examined, if it stands for the finding
    why      by case: why it is not reduced
    tried    cases whose reduction this campaign had, before a restart too: case → why it failed, or ""
    """

    context: Context
    config: Config
    head: Place
    base: Place | None
    found: dict[str, Finding]
    there: list[Known]
    unheard: frozenset[str] = frozenset()
    hurried: bool = False
    small: dict[str, Small] = field(default_factory=dict)
    adopted: dict[str, Examined] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    tried: dict[str, str] = field(default_factory=dict)

    @property
    def budget(self) -> float:
        """Seconds that the reductions of what is new may take."""
        reduction = self.config.reduction
        most = reduction.cases * reduction.budget
        return min(self.config.budget, most) if self.hurried else max(self.config.budget, most)

    @property
    def _checking(self) -> float:
        """Seconds for that and for seeing what the small cases do: reductions must not eat up their proof."""
        return self.budget + self.config.budget

    def size(self, case_id: str) -> int:
        """Bytes of a case's program."""
        return origin(self.context.corpus, case_id).size

    # -- making cases small --------------------------------------------------------------------------

    def reduce(self, chosen: list[Finding]) -> None:
        """Reduces the cases of these findings in order, as far as the budget goes."""
        known = self._known(chosen)
        for at, finding in enumerate(chosen):
            case = finding.case_id
            row = known.get(case)
            if row is None and not (refused := self._refused(finding)):
                row = self._reduce(finding, f"{at + 1} of {len(chosen)}")
            elif row is None:
                self.why[case] = refused
            if row is not None:
                self._take(case, row)

    def _reduce(self, finding: Finding, place: str) -> Reduction | None:
        test = origin(self.context.corpus, finding.case_id).test
        new = Standing(finding.standing) is Standing.REGRESSION
        task = reductions.Task(
            case=finding.case_id,
            place=self.head,
            passing=self.base if new else None,
            seconds=min(self.config.reduction.budget, self._left(finding)),
            title=f"{place}, {test}",
        )
        row, trouble = reductions.reduce(self.context, self.config, task)
        self.tried[finding.case_id] = trouble
        if trouble:
            self.why[finding.case_id] = trouble
        return row

    def _take(self, case: str, row: Reduction) -> None:
        small = reductions.read(row)
        if small is None:
            self.why[case] = row.reason
        else:
            self.small[case] = small

    def _refused(self, finding: Finding) -> str:
        """Why a case is not reduced now, "" if it may be."""
        if trouble := self.tried.get(finding.case_id):
            return trouble
        if len(self.tried) >= self.config.reduction.cases:
            return f"{len(self.tried)} cases were reduced, the most that reduction.cases allows"
        return "" if self._left(finding) > 0 else "the time for reducing was spent"

    def _left(self, finding: Finding) -> float:
        new = Standing(finding.standing) is not Standing.ALREADY_BROKEN
        with self.context.reading() as (_, campaign):
            spent = campaigns.spent(campaign, self.context.step.state.value)
        return (self.budget if new else self.config.budget) - spent

    def _known(self, chosen: list[Finding]) -> dict[str, Reduction]:
        """By case: its reduction at head; or one from another toolchain that shows the same here."""
        with self.context.reading() as (session, _):
            found = {one.case_id: rows.get(session, one.case_id, self.head.key) for one in chosen}
            here = {case: row for case, row in found.items() if row is None or self._kept(row)}
            there = {
                case: row
                for case, known in here.items()
                if known is None and (row := rows.elsewhere(session, case, self.head.key)) is not None
                if self._kept(row)
            }
        return {case: row for case, row in here.items() if row is not None} | self._held(there)

    def _kept(self, row: Reduction) -> bool:
        """Whether the reduced case is in the corpus still: rows outlive folders."""
        return not row.reduced or Corpus(self.context.corpus).folder(row.reduced).exists()

    def _held(self, there: dict[str, Reduction]) -> dict[str, Reduction]:
        """Those whose reduced case shows at head what the case itself does; written down for head, too."""
        seen = examine(
            self.context,
            self.config,
            self.head,
            None,
            [one.reduced for one in there.values()],
            self._checking,
        )
        held = {
            case: _moved(row, seen[row.reduced].head)
            for case, row in there.items()
            if row.reduced in seen and self._same(case, seen[row.reduced].head)
        }
        if held:  # a commit that keeps nothing only makes a kill more likely to come before one that does
            with self.context.transaction() as (session, _):
                for row in held.values():
                    rows.record(session, row)
        return held

    # -- what they amount to -------------------------------------------------------------------------

    def settle(self) -> list[Finding]:
        """Examines what reductions left: adopts it, or makes it a finding of its own; returns what is new."""
        others = [other for small in self.small.values() for other in small.others[:OTHERS]]
        cases = [small.case for small in self.small.values()]
        seen = examine(self.context, self.config, self.head, self.base, [*cases, *others], self._checking)
        made: list[tuple[Examined, Traits | None]] = []
        for case, small in self.small.items():
            examined = seen.get(small.case)
            if examined is not None and _stands_for(examined, self.found[case]):
                self.adopted[case] = examined
                self.why.pop(case, None)
            else:
                self.why[case] = _why_not(small, examined)
                made += [(examined, small.traits)] if examined else []
        made += [(seen[other], None) for other in others if other in seen]
        return [one for one in self._add(made) if Standing(one.standing) is Standing.REGRESSION]

    def _same(self, case: str, outcome: Outcome) -> bool:
        """Whether an outcome shows what the finding's own case does at head."""
        with self.context.reading() as (session, _):
            own = outcomes.get(session, case, self.head.key)
        return own is not None and alike(self.sign(case, own).fields, self.sign(case, outcome).fields)

    def sign(self, case: str, outcome: Outcome, traits: Traits | None = None) -> Signature:
        """The signature of an outcome of a case, or of what it was reduced to."""
        about = origin(self.context.corpus, case)
        return self.context.services.sign(outcome, about.operator, about.frontend, traits)

    def _add(self, made: list[tuple[Examined, Traits | None]]) -> list[Finding]:
        """Findings of their own for cases that show other bugs; those that show known ones add nothing.

        A bug counts as known where a campaign on a branch saw it and it waits still. One that was over, or
        that only a pull request showed, must be heard of: nobody else would.

        What a reduction left is signed by its traits: it has the symptom of the finding it came from, and
        must not be taken for it.
        """
        there = {row.signature for row in self.found.values()}
        raw: dict[str, Signature] = {}
        fresh: dict[str, Finding] = {}
        for one, traits in made:
            signature = self.sign(one.case, one.head, traits)
            if one.case in self.found or signature.key in there:
                continue
            row = finding_of(one.judgement, self.context.campaign_id, one.case, signature.key)
            if choosing.reducible(row):
                raw[one.case], fresh[one.case] = self.sign(one.case, one.head), row
        self.found |= fresh
        known = {case for case, key in self.behind(raw).items() if key not in self.unheard}
        for case in known:
            del self.found[case]
        return [row for case, row in fresh.items() if case not in known]

    # -- which bugs they are -------------------------------------------------------------------------

    def signed(self) -> dict[str, Known]:
        """By case: the bug of each finding that a reduced case stands for."""
        signatures = {
            case: self.sign(case, examined.head, self.small[case].traits)
            for case, examined in self.adopted.items()
        }
        keys = keys_of(list(signatures.values()), self.there)
        return {case: Known(key, signatures[case].fields) for case, key in zip(signatures, keys, strict=True)}

    def behind(self, raw: dict[str, Signature]) -> dict[str, str]:
        """By case: the key of the bug behind it, of those findings here given by signature that have one.

        Of the bugs that this campaign has reduced, those of findings of another standing are no explanation.
        """
        here = [(self.found[case].standing, known) for case, known in self.signed().items()]
        may = {
            case: [*self.there, *(one for standing, one in here if standing == self.found[case].standing)]
            for case in raw
        }
        asked = [case for case, signature in raw.items() if suspects(signature, may[case])]
        shown = describing.traits(self.context, asked) if asked else {}
        keys = {case: behind(raw[case], shown[case], may[case]) for case in asked}
        return {case: key for case, key in keys.items() if key}


def _stands_for(examined: Examined, finding: Finding) -> bool:
    """Whether what a reduction left amounts to what the finding does, beside base too."""
    judgement = examined.judgement
    if judgement.standing.value != finding.standing:
        return False
    return judgement.standing is not Standing.UNJUDGED or judgement.reason == finding.reason


def _why_not(small: Small, examined: Examined | None) -> str:
    """Why a finding is shown by the case as it was found, though that was made small."""
    if examined is None:
        return f"the small one, {small.case[:12]}, did not fail again at head"
    judgement = examined.judgement
    if judgement.standing is Standing.ALREADY_BROKEN:
        return f"the small one, {small.case[:12]}, fails at base too and so shows another bug"
    if judgement.standing is Standing.REGRESSION:
        return f"the small one, {small.case[:12]}, passes at base and so shows another bug, which is new"
    return f"the small one, {small.case[:12]}, could not be judged: {judgement.reason}"


def _moved(row: Reduction, head: Outcome) -> Reduction:
    """A reduction made on another toolchain, for the one that `head` was made on."""
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
