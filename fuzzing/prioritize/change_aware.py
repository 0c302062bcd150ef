"""The strategy `change`: ranks by expected findings per second.

A commit's findings are either in what the commit touched, or elsewhere, as OPERA ranks them. So a case's
share of the expected findings is

    TRUST · w · max(h, 1) / (1 + j / REPEATS) / Z₁   +   (1 - TRUST) · h · exp(-DECAY · r / n) / Z₂

w       weight of its operator in the change (`fuzzing.prioritize.change`); TRUST is scaled by the largest
        weight
j       its rank among the cases of its operator in OPERA's order: each pass makes the next less informative
r       its rank of n in OPERA's whole order
h       findings in its record relative to the average, at most RECORD; 1 without a record. An operator's
        clean record is no evidence about a new change, so it lowers only the second part
Z₁, Z₂  make either sum 1

The share is divided by the case's seconds. A fraction EXPLORE of the time follows OPERA's own order, so that
cases without evidence run too. Without change and history the order is exactly OPERA's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuzzing.errors import UsageError
from fuzzing.prioritize import strategies
from fuzzing.prioritize.change import Change, TouchedOperators, find_touched_operators
from fuzzing.prioritize.change.history import HALF_LIFE, Expectations, Expected, History
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.strategies import Context, Ranked, register_strategy

#: The share of a commit's findings in the operators it touches, if its weights are 1. An estimate: 87 of
#: OPERA's 90 confirmed bugs were in the frontends' conversion of one operator, but what a change reaches is
#: found by names.
TRUST = 0.85
#: Number of cases of one operator after which the next is half as informative. An estimate.
REPEATS = 4.0
#: Decay of OPERA's order: with it the mean position of a finding is 1 - 0.8976, OPERA's average APFD: 1/d -
#: 1/(e^d - 1) = 0.1024.
DECAY = 9.76
#: Upper bound of a record's factor. An estimate: what is broken already, and is found again and again, should
#: not precede what was touched.
RECORD = 4.0
#: The share of the expected time for OPERA's own order.
EXPLORE = 0.2


@dataclass(frozen=True)
class Settings:
    """The strategy's options in `Context.options`: trust, explore (shares of 1), half_life (days)."""

    trust: float = TRUST
    explore: float = EXPLORE
    half_life: float = HALF_LIFE

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Settings:
        """The settings in a strategy's options; raises UsageError for unknown ones."""
        try:
            given = {name: float(options[name]) for name in cls.__annotations__ if name in options}
        except ValueError as error:
            raise UsageError(f"the strategy change takes numbers: {error}") from None
        settings = cls(**given)
        if not (0 <= settings.trust < 1 and 0 <= settings.explore < 1 and settings.half_life > 0):
            raise UsageError("trust and explore are shares, from 0 to below 1; half_life is a number of days")
        return settings


@dataclass(frozen=True)
class _Candidate:
    """One instance: its rank in OPERA's order, the evidence for it, its score per second."""

    place: int
    opera: Ranked
    weight: float
    expected: Expected | None
    seconds: float
    score: float


@register_strategy("change")
def change(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """Most expected findings per second first; OPERA's order without change and history."""
    return reorder(strategies.get("opera")(instances, context), instances, context)


def reorder(opera: Iterable[Ranked], instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """OPERA's order of `instances` as the strategy changes it; unchanged without evidence."""
    settings = Settings.of(context.options)
    touched = _touched(context.change, instances)
    history = context.history if isinstance(context.history, History) and context.history.records else None
    if not touched and history is None:
        return iter(opera)
    expectations = None if history is None else Expectations(history, instances, settings.half_life)
    candidates = list(_candidates(instances, list(opera), touched, expectations, settings))
    order = _interleave(candidates, settings.explore)
    if not context.explain:
        return (Ranked(one.opera.instance_index) for one, _ in order)
    return _explain(order, instances, touched)


def _touched(given: Any, instances: Sequence[Instance]) -> TouchedOperators:
    if not isinstance(given, Change):
        return TouchedOperators()
    return find_touched_operators(given, {one.operator for one in instances})


def _candidates(
    instances: Sequence[Instance],
    order: Sequence[Ranked],
    touched: TouchedOperators,
    expectations: Expectations | None,
    settings: Settings,
) -> Iterator[_Candidate]:
    """All instances in OPERA's order, scored."""
    met: dict[str, int] = defaultdict(int)
    touched_shares, prior, weights, records = [], [], [], []
    for place, ranked in enumerate(order):
        one = instances[ranked.instance_index]
        weight = touched.weight(one.operator, one.frontend)
        expected = None if expectations is None else expectations.of(one)
        record = 1.0 if expected is None else min(expected.findings, RECORD)
        weights.append(weight)
        records.append(expected)
        touched_shares.append(weight * max(record, 1.0) / (1 + met[one.operator] / REPEATS))
        prior.append(record * math.exp(-DECAY * place / len(order)))
        met[one.operator] += 1
    trust = settings.trust * max(weights, default=0.0)
    all_touched, all_prior = sum(touched_shares) or 1.0, sum(prior) or 1.0
    for place, ranked in enumerate(order):
        expected = records[place]
        score = trust * touched_shares[place] / all_touched + (1 - trust) * prior[place] / all_prior
        seconds = 1.0 if expected is None else expected.seconds
        yield _Candidate(place, ranked, weights[place], expected, seconds, score / seconds)


def _interleave(candidates: Sequence[_Candidate], explore: float) -> Iterator[tuple[_Candidate, bool]]:
    """Best scores first, with EXPLORE of the time for OPERA's order; also which of the two gave each."""
    best = iter(sorted(candidates, key=lambda one: (-one.score, one.place)))
    plain = iter(candidates)
    done: set[int] = set()
    spent = explored = 0.0
    for _ in candidates:
        exploring = explored < explore * spent
        one = next(one for one in (plain if exploring else best) if one.place not in done)
        done.add(one.place)
        spent += one.seconds
        explored += one.seconds if exploring else 0.0
        yield one, exploring


def _explain(
    order: Iterator[tuple[_Candidate, bool]], instances: Sequence[Instance], touched: TouchedOperators
) -> Iterator[Ranked]:
    for one, exploring in order:
        instance = instances[one.opera.instance_index]
        why: dict[str, Any] = {
            "touched": list(touched.why(instance.operator, instance.frontend)) if one.weight else [],
            "weight": round(one.weight, 3),
            "opera": one.opera.why.get("opera"),
            "place": one.place,
            "exploring": exploring,
        }
        if one.expected is not None:
            why |= _describe_history(one.expected)
        yield Ranked(one.opera.instance_index, why)


def _describe_history(expected: Expected) -> dict[str, Any]:
    """The history for people."""
    own = expected.record
    return {
        "history": {
            "runs": 0 if own is None else own.runs,
            "findings": 0 if own is None else own.findings,
            "last_finding_days": None if own is None else own.last_finding_days,
            "times_average": round(expected.findings, 2),
        },
        "seconds": round(expected.seconds, 4),
    }
