"""Which failing cases are reduced, in which order. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from bot.campaigns.classify.classification import NEW_HERE, NO_BASE
from bot.store.models import Classification, Finding
from fuzzing.outcomes import Verdict

#: Classifications worth reducing, in order. Without a base, all failures are inconclusive.
_ORDER = (
    Classification.REGRESSION,
    Classification.INCONCLUSIVE,
    Classification.CHANGED,
    Classification.ALREADY_BROKEN,
)
#: Of these only one of each signature is reduced, and after all others.
FAILING_AT_BASE = frozenset({Classification.CHANGED, Classification.ALREADY_BROKEN})


def select_for_reduction(findings: Iterable[Finding], size: Callable[[str], int]) -> list[Finding]:
    """The findings to reduce, in order: regressions first, and one of each signature before a second of any.

    Smallest program first, as it costs least. A signature of what is not reduced may be several bugs of one
    operator: where the limit is reached, each signature has about as many reduced cases. Of changed and
    already broken findings only one of each signature.

    size  case id → bytes of its program
    """
    by_classification: dict[Classification, list[Finding]] = {classification: [] for classification in _ORDER}
    for one in findings:
        if is_reducible(one):
            by_classification[Classification(one.classification)].append(one)
    chosen: list[Finding] = []
    for classification, rows in by_classification.items():
        rows.sort(key=lambda one: (size(one.case_id), one.case_id))
        only_first = classification in FAILING_AT_BASE
        chosen += [one for place, one in _by_place(rows) if not (only_first and place)]
    return chosen


def is_reducible(finding: Finding) -> bool:
    """Whether a finding is certain enough to reduce, and about head."""
    classification = Classification(finding.classification)
    if classification is Classification.CHANGED:
        return Verdict(finding.verdict).is_failure
    return classification in _ORDER and (
        classification is not Classification.INCONCLUSIVE or finding.reason in (NO_BASE, NEW_HERE)
    )


def _by_place(rows: Iterable[Finding]) -> list[tuple[int, Finding]]:
    """The rows with their places, from 0, among those of their signature; by place, else in their order."""
    before = Counter[str]()
    placed = list[tuple[int, Finding]]()
    for one in rows:
        placed.append((before[one.signature], one))
        before[one.signature] += 1
    return sorted(placed, key=lambda item: item[0])
