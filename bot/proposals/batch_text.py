"""The texts of the pull request of a batch of tests."""

from __future__ import annotations

from collections.abc import Sequence

from bot.github.limits import marker
from bot.proposals.commit_style import styled_subject
from bot.proposals.coverage_batch import Addition, batch_files
from bot.proposals.proof import Proof
from bot.proposals.pull_request_text import PullRequestText, RepositoryHabits
from bot.reports.templates import render

#: Operators that the title names, at most.
_MAX_NAMED = 3


def write_batch_text(
    batch: Sequence[Addition],
    proofs: Sequence[Proof],
    campaign_id: int,
    effect: str,
    habits: RepositoryHabits,
) -> PullRequestText:
    """The texts; `effect` is the key by which the pull request is found again."""
    first = batch[0]
    sources = [one.regression.case.provenance for one in batch]
    body = render(
        "proposals/batch.md.j2",
        paths=list(batch_files(batch)),
        good=proofs[0].good,
        seconds=max(one.seconds for one in proofs),
        tests=[(one.proposal.name, one.proposal.path, _added(one)) for one in batch],
        command=first.proposal.command,
        sources=dict.fromkeys((one.library, one.version, one.source) for one in sources),
        checks=habits.checks,
        sign_off=habits.sign_off,
    )
    return PullRequestText(
        f"assay/tests-{campaign_id}",
        styled_subject(_subject(batch), habits.subjects, first.regression.frontend),
        f"{body.strip()}\n\n{marker(effect)}\n",
    )


def _subject(batch: Sequence[Addition]) -> str:
    named = [name.rpartition(".")[2] for one in batch for name in one.regression.operators]
    operators = list(dict.fromkeys(named))
    if len(operators) > _MAX_NAMED:
        return f"Add tests of {', '.join(operators[:_MAX_NAMED])} and {len(operators) - _MAX_NAMED} more"
    return f"Add tests of {' and '.join(filter(None, [', '.join(operators[:-1]), *operators[-1:]]))}"


def _added(addition: Addition) -> str:
    """What a test adds, in words."""
    operators = [one.rpartition(".")[2] for one in addition.regression.operators]
    gap = addition.gap
    parts = [one.rpartition(".")[2] for one in gap.operators]
    if gap.parameters:
        parts.append(f"{', '.join(gap.parameters)} of {', '.join(operators)}")
    return "; ".join(parts)
