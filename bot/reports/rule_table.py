"""The results of pairs by rule of equivalence, and by rule and API."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from fuzzing.outcomes import Verdict

#: A rule, and an API or "" for models.
Place = tuple[str, str]


@dataclass(frozen=True)
class RuleRow:
    """The pairs at head of a rule and an API.

    bugs   signatures of confirmed findings among them
    eagle  pairs that differ by EAGLE's bounds, whatever their verdict by the default ones
    """

    rule: str
    api: str
    verdicts: Mapping[Verdict, int]
    bugs: tuple[str, ...] = ()
    eagle: int = 0

    @property
    def pairs(self) -> int:
        """How many ran."""
        return sum(self.verdicts.values())

    @property
    def failing(self) -> int:
        """How many fail."""
        return sum(pairs for verdict, pairs in self.verdicts.items() if verdict.is_failure)


@dataclass(frozen=True)
class RuleTotal:
    """All APIs of a rule.

    apis  0 for a rewrite of models
    bugs  one for each API with any, as EAGLE counts them
    eagle  as in RuleRow
    """

    rule: str
    apis: int
    verdicts: Mapping[Verdict, int]
    bugs: int
    eagle: int

    @property
    def pairs(self) -> int:
        """How many ran."""
        return sum(self.verdicts.values())


def rule_rows(
    counts: Mapping[Place, Mapping[Verdict, int]],
    bugs: Mapping[Place, Collection[str]],
    eagle: Mapping[Place, int],
) -> tuple[RuleRow, ...]:
    """One row for each rule and API that ran: those with bugs first, then by failures, then by name."""
    rows = [
        RuleRow(
            place[0], place[1], counts.get(place, {}), tuple(sorted(bugs.get(place, ()))), eagle.get(place, 0)
        )
        for place in {**counts, **bugs}
    ]
    return tuple(sorted(rows, key=lambda row: (-len(row.bugs), -row.failing, row.rule, row.api)))


def rule_totals(rows: Iterable[RuleRow]) -> tuple[RuleTotal, ...]:
    """One row for each rule, by name."""
    grouped: dict[str, list[RuleRow]] = defaultdict(list)
    for row in rows:
        grouped[row.rule].append(row)
    return tuple(
        RuleTotal(
            rule,
            sum(bool(row.api) for row in own),
            dict(sum((Counter(row.verdicts) for row in own), Counter())),
            sum(bool(row.bugs) for row in own),
            sum(row.eagle for row in own),
        )
        for rule, own in sorted(grouped.items())
    )
