"""What a report says of a campaign's plan: where its cases come from, and who put them in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.campaigns.catalogue import Account
from bot.campaigns.ranking import Ranking
from bot.reports.templating import counted


@dataclass(frozen=True)
class SourceRow:
    """One source in a table; `state` is "" for one that gave all it has."""

    source: str
    library: str
    cases: int
    skipped: int
    state: str


def source_rows(accounts: Sequence[Account]) -> list[SourceRow]:
    """A row for each source."""
    return [
        SourceRow(one.source, one.library, one.cases, sum(one.skipped.values()), source_state(one))
        for one in accounts
    ]


def source_state(account: Account) -> str:
    """What is still lacking, and why; "" if nothing is."""
    if account.failed:
        return f"failed: {account.failed}"
    if not account.lacking:
        return ""
    begun = f", {account.begun} more begun" if account.begun else ""
    return f"collected {account.whole} of {counted(account.parts, 'part')}{begun}; the next run goes on"


def order_of(ranking: Ranking | None) -> str:
    """Who put the cases in order, in a sentence; "" where that was not kept."""
    if ranking is None:
        return ""
    if ranking.failed:
        return (
            f"The cases ran in the order of their sources, because ranking them failed: {ranking.failed} "
            "(Assay's trouble, not the compiler's; its log has more)."
        )
    knew = []
    if ranking.change is not None:
        files = counted(int(ranking.change["files"]), "changed file")
        knew.append(files + (" (there are more)" if ranking.change["truncated"] else ""))
    if ranking.history is not None:
        knew.append(f"the history of {counted(int(ranking.history['cases']), 'case')}")
    if ranking.suites:
        knew.append(f"the compiler's own tests ({', '.join(ranking.suites)})")
    by = f", knowing {'; '.join(knew)}" if knew else ""
    return f"The strategy {ranking.strategy} put the cases in order{by}."
