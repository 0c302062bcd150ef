"""A sample: so many cases of all sources together, drawn fairly from a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise

from bot.campaigns.plan.case_source import CaseSource, CatalogPart, SourceReport, short_id
from fuzzing.rng import Rng, derive_seed

#: Far more than there are cases.
_PLACES = 1 << 40


class Sample:
    """Draws `size` cases once; whatever is collected later is not in the sample.

    Each case has the same chance. The cases are put in the order of their tests' names and cut into `size`
    stretches of equal length, and one case of each stretch is drawn. A rule of equivalence or an operator,
    whose names begin alike, so gets its share of the sample, give or take two cases.

    Sources are collected in parts. A later campaign draws most of what an earlier one drew: in each stretch
    the case whose digest is the least.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._seed = size, seed
        self._drawn: _Drawn | None = None

    def of(self, cases: Sequence[CaseSource]) -> list[CaseSource]:
        """The sources, each with its drawn cases only. Draws when a case is first asked for."""
        return [_SampledCases(self, cases, place) for place in range(len(cases))]

    def drawn(self, cases: Sequence[CaseSource]) -> _Drawn:
        """What is drawn of these sources, or was before."""
        if self._drawn is None:
            self._drawn = self._draw(cases)
        return self._drawn

    def _draw(self, cases: Sequence[CaseSource]) -> _Drawn:
        known = _sorted_cases(cases)
        count = len(known)
        size = min(self._size, count)
        seed = derive_seed(self._seed, "sample")
        # Stretches differ by one case in length, so their begin is drawn too.
        begin = Rng(seed).below(_PLACES) * count // _PLACES
        bounds = [number * count // size for number in range(size + 1)] if size else [0]
        stretches = (
            [known[(begin + at) % count] for at in range(low, high)] for low, high in pairwise(bounds)
        )
        key = seed.to_bytes(8, "little")
        chosen = [min(cases, key=lambda one: blake2b(one[1], key=key).digest()) for cases in stretches]
        return _Drawn(
            frozenset(short for _, short in chosen),
            Counter(place for place, _ in known),
            Counter(place for place, _ in chosen),
        )


@dataclass(frozen=True)
class _Drawn:
    """A sample.

    ids        of its cases, as `short_id`
    available  place of a source → its cases, those of earlier sources left out
    chosen     place of a source → those of them in the sample
    """

    ids: frozenset[bytes]
    available: Counter[int] = field(default_factory=Counter)
    chosen: Counter[int] = field(default_factory=Counter)


def _sorted_cases(cases: Sequence[CaseSource]) -> list[tuple[int, bytes]]:
    """Place of its source and short id of each distinct case: sources in turn, each by names of tests."""
    seen: set[bytes] = set()
    found = []
    for place, one in enumerate(cases):
        for case_id, _ in sorted(one.tests(), key=lambda item: item[1]):
            short = short_id(case_id)
            if short not in seen:
                seen.add(short)
                found.append((place, short))
    return found


@dataclass(frozen=True)
class _SampledCases:
    """One source of `sources`, as far as it is drawn."""

    sample: Sample
    sources: Sequence[CaseSource]
    place: int

    @property
    def _all(self) -> CaseSource:
        return self.sources[self.place]

    def cases(self) -> Iterator[str]:
        """The ids of drawn cases, in the source's order."""
        ids = self.sample.drawn(self.sources).ids
        return (case_id for case_id in self._all.cases() if short_id(case_id) in ids)

    def tests(self) -> Iterator[tuple[str, str]]:
        """Drawn cases and the names of their tests."""
        ids = self.sample.drawn(self.sources).ids
        return ((case_id, test) for case_id, test in self._all.tests() if short_id(case_id) in ids)

    def operators(self, wanted: Collection[str]) -> dict[str, str]:
        """Those of the source."""
        return self._all.operators(wanted)

    def account(self) -> SourceReport:
        """How far the source is collected, with the cases that were there when the sample was drawn."""
        drawn = self.sample.drawn(self.sources)
        available, chosen = drawn.available[self.place], drawn.chosen[self.place]
        return replace(self._all.account(), cases=available, drawn=chosen)

    def parts(self) -> Sequence[CatalogPart]:
        """All parts: the draw is among all cases."""
        return self._all.parts()

    def arguments(self) -> list[str]:
        """Those of the source: a ranking of all its cases orders the drawn ones."""
        return self._all.arguments()
