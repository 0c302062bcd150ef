"""What a report says of a campaign's plan: where its cases come from, and who put them in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.campaigns.plan.case_source import SourceReport
from bot.campaigns.plan.ranking import Ranking
from bot.reports.templates import pluralize


@dataclass(frozen=True)
class SourceRow:
    """One source in a table; `state` is "" for one that gave all it has."""

    source: str
    library: str
    cases: int
    skipped: int
    state: str


def source_rows(accounts: Sequence[SourceReport]) -> list[SourceRow]:
    """A row for each source."""
    return [
        SourceRow(one.source, one.library, one.cases, sum(one.skipped.values()), describe_source_state(one))
        for one in accounts
    ]


def describe_source_state(account: SourceReport) -> str:
    """What is still lacking, and why; "" if nothing is."""
    if account.failed:
        return f"failed: {account.failed}"
    if not account.missing_parts:
        return ""
    begun = f", {account.begun} more begun" if account.begun else ""
    return f"collected {account.whole} of {pluralize(account.parts, 'part')}{begun}; the next run goes on"


def describe_ranking(ranking: Ranking | None) -> str:
    """Who put the cases in order, in a sentence; "" where that was not kept."""
    if ranking is None:
        return ""
    if ranking.failed:
        return (
            f"The cases ran in the order of their sources, because ranking them failed: {ranking.failed} "
            "(Assay's trouble, not the compiler's; its log has more)."
        )
    inputs = []
    if ranking.change is not None:
        files = pluralize(int(ranking.change["files"]), "changed file")
        inputs.append(files + (" (there are more)" if ranking.change["truncated"] else ""))
    if ranking.history is not None:
        inputs.append(f"the history of {pluralize(int(ranking.history['cases']), 'case')}")
    if ranking.suites:
        inputs.append(f"the compiler's own tests ({', '.join(ranking.suites)})")
    by = f", knowing {'; '.join(inputs)}" if inputs else ""
    return f"The strategy {ranking.strategy} put the cases in order{by}."
