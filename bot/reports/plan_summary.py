"""Text about a campaign's plan: sources and ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.campaigns.plan.case_source import SourceReport
from bot.campaigns.plan.ranking import Ranking
from bot.reports.templates import pluralize


@dataclass(frozen=True)
class SourceRow:
    """One source in a table; `state` is "" if it is complete."""

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
    """The seed of a generated source, the share of a sample, and what is missing and why.

    "" for a complete source without a seed whose cases are all planned.
    """
    made = [] if account.seed is None else [f"seed {account.seed}"]
    if account.drawn is not None:
        share = f" ({account.drawn / account.cases:.1%})" if account.cases else ""
        made.append(f"{account.drawn} of {pluralize(account.cases, 'case')} drawn{share}")
    if account.failed:
        return "; ".join([*made, f"failed: {account.failed}"])
    if not account.missing_parts:
        return "; ".join(made)
    begun = f", {account.begun} more started" if account.begun else ""
    collected = f"collected {account.whole} of {pluralize(account.parts, 'part')}{begun}"
    return "; ".join([*made, collected, "the next run continues"])


def describe_ranking(ranking: Ranking | None) -> str:
    """How the cases were ordered, in a sentence; "" if unknown."""
    if ranking is None:
        return ""
    if ranking.failed:
        return (
            f"The cases ran in the order of their sources because ranking failed: {ranking.failed} "
            "(an error in Assay, not in the compiler; see its log)."
        )
    inputs = []
    if ranking.change is not None:
        files = pluralize(int(ranking.change["files"]), "changed file")
        inputs.append(files + (" (truncated)" if ranking.change["truncated"] else ""))
    if ranking.history is not None:
        inputs.append(f"the history of {pluralize(int(ranking.history['cases']), 'case')}")
    if ranking.suites:
        inputs.append(f"the compiler's own tests ({', '.join(ranking.suites)})")
    by = f", using {'; '.join(inputs)}" if inputs else ""
    return f"Cases ordered by strategy {ranking.strategy}{by}."
