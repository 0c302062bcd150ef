"""Which operators, passes and frontends a change touches, with weights and explanations.

Evidence is gathered file by file as hints, spellings with a weight and an explanation, and then matched with
the operators that have cases. The ranking calls `find_touched_operators`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fuzzing.prioritize.change.diff import Change
from fuzzing.prioritize.change.evidence import FILE, WORD, ChangedLine, OperatorHint, collect_evidence
from fuzzing.prioritize.change.operator_names import OperatorName, library, name

#: Weight of a spelling's similarity to an operator. Estimates: a converter named translate_convnd is conv2d's
#: as surely as one named translate_conv2d; that of conv3d seldom is; families share helpers and passes.
_SAME_BUT_DIMENSIONS = 0.9
_OTHER_DIMENSIONS = 0.3
_FAMILY = 0.3
_FAMILY_ITSELF = 0.7  # of a file's name: reduce.cpp holds ReduceMax, and resize.cpp perhaps Upsample
_PART_OF_NAME = 0.3
#: Smaller weights are noise and are left out.
_LEAST = 0.02
_MOST_REASONS = 4
#: Spellings of a change without known operators, and the least weight of each: less is a guess.
_MOST_SPELLINGS = 100
_LEAST_SPELLED = 0.2


@dataclass(frozen=True)
class TouchedOperators:
    """The operators, passes and frontends that a change touches.

    operators    the touched ones of the given operators, with a weight in (0, 1]
    passes       touched passes by name, likewise
    frontends    a weight in (0, 1] for each frontend all of whose operators pass through changed code
    reasons      explanations for each operator and frontend touched, strongest first
    places       changed lines at head for each operator touched, strongest first
    pass_places  the same for each pass, one line each
    """

    operators: Mapping[str, float] = field(default_factory=dict)
    passes: Mapping[str, float] = field(default_factory=dict)
    frontends: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    places: Mapping[str, tuple[ChangedLine, ...]] = field(default_factory=dict)
    pass_places: Mapping[str, ChangedLine] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.operators or self.frontends)

    def weight(self, operator: str, frontend: str) -> float:
        """Weight of `operator`, of a library's `frontend`, in [0, 1]."""
        return max(self.operators.get(operator, 0.0), self.frontends.get(frontend, 0.0))

    def why(self, operator: str, frontend: str) -> tuple[str, ...]:
        """The explanations of that weight, strongest first."""
        whole = self.frontends.get(frontend, 0.0)
        own = self.reasons.get(operator, ())
        if whole > self.operators.get(operator, 0.0):
            return (*self.reasons.get(frontend, ()), *own)
        return own


def find_touched_operators(change: Change, operators: Iterable[str]) -> TouchedOperators:
    """Which of `operators`, spelled as in cases, `change` touches."""
    index = _Index(operators)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    places: dict[str, dict[ChangedLine, float]] = defaultdict(dict)
    pass_places: dict[str, ChangedLine] = {}
    passes: dict[str, float] = {}
    frontends: dict[str, tuple[float, str]] = {}
    unnamed: dict[str, tuple[float, str]] = {}  # likewise; what other files name takes precedence
    for file in change.files:
        evidence = collect_evidence(file)
        met = {hint: list(index.match(hint)) for hint in evidence.hints}
        if not any(met.values()):
            met |= {hint: list(index.match(hint)) for hint in evidence.guesses}
        for hint, matched in met.items():
            for operator, weight in matched:
                if weight >= _LEAST:
                    reasons = found[operator]
                    reasons[hint.reason] = max(weight, reasons.get(hint.reason, 0.0))
                    if hint.place is not None:
                        there = places[operator]
                        there[hint.place] = max(weight, there.get(hint.place, 0.0))
        named = any(met.values())
        for label, weight in evidence.passes.items():
            passes[label] = max(weight, passes.get(label, 0.0))
        pass_places |= evidence.pass_places
        if evidence.shared or not named:
            where = frontends if evidence.shared else unnamed
            for frontend, weight in evidence.frontends.items():
                where[frontend] = max((weight, evidence.reason), where.get(frontend, (0.0, "")))
    if not found:
        frontends = unnamed | frontends
    return TouchedOperators(
        {operator: max(reasons.values()) for operator, reasons in sorted(found.items())},
        dict(sorted(passes.items())),
        {frontend: weight for frontend, (weight, _) in sorted(frontends.items())},
        {operator: _strongest(reasons) for operator, reasons in sorted(found.items())}
        | {frontend: (reason,) for frontend, (_, reason) in sorted(frontends.items())},
        {operator: _nearest(there) for operator, there in sorted(places.items())},
        dict(sorted(pass_places.items())),
    )


def spelled_operators(change: Change) -> tuple[str, ...]:
    """What the changed code calls the operators that it serves, the strongest first; () if it names none.

    Needs no cases, and so also finds names of helpers that are no operator's.
    """
    weights: dict[str, float] = {}
    for file in change.files:
        for hint in collect_evidence(file).hints:
            if hint.weight >= _LEAST_SPELLED:
                weights[hint.spelling] = max(hint.weight, weights.get(hint.spelling, 0.0))
    return tuple(sorted(weights, key=lambda spelling: (-weights[spelling], spelling))[:_MOST_SPELLINGS])


def _nearest(there: Mapping[ChangedLine, float]) -> tuple[ChangedLine, ...]:
    return tuple(sorted(there, key=lambda place: (-there[place], place.path, place.line))[:_MOST_REASONS])


def _strongest(reasons: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(sorted(reasons, key=lambda reason: (-reasons[reason], reason))[:_MOST_REASONS])


class _Index:
    """The known operators by the degrees of their names."""

    def __init__(self, operators: Iterable[str]) -> None:
        self._names: dict[str, OperatorName] = {
            operator: name(operator) for operator in sorted(set(operators))
        }
        self._exact: dict[str, list[str]] = defaultdict(list)
        self._bare: dict[str, list[str]] = defaultdict(list)
        self._family: dict[str, list[str]] = defaultdict(list)
        self._words: dict[str, list[str]] = defaultdict(list)
        for operator, one in self._names.items():
            self._exact[one.exact].append(operator)
            self._bare[one.bare].append(operator)
            self._family[one.family].append(operator)
            for word in one.words:
                self._words[word].append(operator)

    def match(self, hint: OperatorHint) -> Iterator[tuple[str, float]]:
        """The operators that a hint may mean, each with the resulting weight."""
        spelling = name(hint.spelling)
        if not spelling.exact:
            return
        best: dict[str, float] = {}
        if hint.degree == WORD:
            for word in spelling.words:
                for operator in self._words.get(word, ()):
                    best[operator] = _PART_OF_NAME
        else:
            whole = hint.degree == FILE and spelling.exact == spelling.family
            for operator in self._family.get(spelling.family, ()):
                best[operator] = _FAMILY_ITSELF if whole else _FAMILY
            general = spelling.exact == spelling.bare or spelling.exact.endswith("nd")
            for operator in self._bare.get(spelling.bare, ()):
                best[operator] = _SAME_BUT_DIMENSIONS if general else _OTHER_DIMENSIONS
        for operator in self._exact.get(spelling.exact, ()):
            best[operator] = 1.0
        ours = {operator: part for operator, part in best.items() if self._may_mean(operator, hint)}
        spread = (
            math.sqrt(max(1, len({self._names[operator].exact for operator in ours})))
            if hint.degree == WORD
            else 1
        )
        for operator, part in ours.items():
            yield operator, min(1.0, part * hint.weight / spread)

    @staticmethod
    def _may_mean(operator: str, hint: OperatorHint) -> bool:
        return not hint.frontends or library(operator) in hint.frontends
