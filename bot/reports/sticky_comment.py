"""The comment on a pull request: created at its first regression, then edited in place.

Each previously reported bug is looked up at the new head; the comment calls it fixed only if its case passes
there.
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
#: (groups, previously reported bugs) shown, from most to least text.
_SIZES = ((20, 50), (10, 20), (3, 5), (0, 0))


@dataclass(frozen=True)
class PreviousFinding:
    """A bug reported at an earlier head.

    now    its current state, as the end of a sentence
    fixed  whether its case passes now
    """

    title: str
    now: str
    fixed: bool = False


def rerun_command(report: Report, group: Group) -> str:
    """The command that reproduces a finding: its script, else `assay replay`."""
    toolchain, outcome = report.view.head_toolchain, group.example.head
    if not group.script or toolchain is None or outcome is None:
        return group.replay
    return f"{pip_command(toolchain, outcome.backend, group.frontend)} && python {group.filename}"


def comment_key(stable_name: str, pull: int) -> str:
    """The key of a pull request's comment."""
    return idempotency_key(STICKY, stable_name, f"pull:{pull}")


def draft_comment(
    report: Report,
    groups: Sequence[Group],
    previous: Sequence[PreviousFinding],
    touched_code: TouchedCode,
    check: str = "",
    headline: str = "",
) -> EffectDraft:
    """The current comment.

    groups    new failures; may be empty
    previous  bugs reported at earlier heads
    check     URL of the check run, "" if it has none yet
    headline  of the check run, if it differs from the report's
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
