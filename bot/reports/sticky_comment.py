"""The one comment about a pull request: written when it breaks something, edited in place ever after.

It never says that something is mended because nothing was heard of it: what it once told of is looked up at
the new head, and where that was not run, the comment says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.errors import InternalError
from bot.github.limits import BODY_BUDGET, marker
from bot.reports.annotations import TouchedCode
from bot.reports.issue import collapse_blank_lines
from bot.reports.report import Group, Report, idempotency_key
from bot.reports.reproducer import pip_command
from bot.reports.templates import render
from bot.store.outbox import EffectDraft

STICKY = "sticky"
#: (groups, rows of what was told before), from the full text to the least.
_SIZES = ((20, 50), (10, 20), (3, 5), (0, 0))


@dataclass(frozen=True)
class PreviousFinding:
    """Something the comment told of at an earlier head.

    now     how it stands now, as the end of a sentence
    mended  whether the case that showed it was seen to pass
    """

    title: str
    now: str
    fixed: bool = False


def rerun_command(report: Report, group: Group) -> str:
    """The line that shows a finding again: its script, which the check run has, else Assay's own replay."""
    toolchain, outcome = report.view.head_toolchain, group.example.head
    if not group.script or toolchain is None or outcome is None:
        return group.replay
    return f"{pip_command(toolchain, outcome.backend, group.frontend)} && python {group.filename}"


def comment_key(stable_name: str, pull: int) -> str:
    """A pull request has one comment."""
    return idempotency_key(STICKY, stable_name, f"pull:{pull}")


def draft_comment(
    report: Report,
    groups: Sequence[Group],
    previous: Sequence[PreviousFinding],
    touched_code: TouchedCode,
    check: str = "",
    headline: str = "",
) -> EffectDraft:
    """The comment as it is to be now.

    groups   what is new here; [] once nothing is
    headline the check run's, where it is not the report's
    check    the address of the check run, "" while it has none
    """
    view = report.view
    assert view.pull is not None
    name = comment_key(view.stable_name, view.pull)
    for shown, max_previous in _SIZES:
        body = collapse_blank_lines(
            render(
                "reports/sticky_comment.md.j2",
                report=report,
                headline=headline or report.headline,
                groups=groups,
                changed_lines={group.signature: touched_code.changed_line(group) for group in groups[:shown]},
                shown=shown,
                commands={group.signature: rerun_command(report, group) for group in groups[:shown]},
                fixed=all(one.fixed for one in previous),
                previous=previous,
                max_previous=max_previous,
                check=check,
            )
        )
        body = f"{body}\n{marker(name)}\n"
        if len(body) <= BODY_BUDGET:
            return EffectDraft(STICKY, name, view.target, {"body": body}, number=view.pull, editable=True)
    raise InternalError(f"a comment of {len(body)} characters without a single finding in it")
