"""What a pull request is told: that it waits, what its campaign found, and the one comment about it.

The comment is written only when there is something to say: a regression. When later pushes mend it, the same
comment says so; it never becomes two. Everything else is silence, whose reason is in the audit.
"""

from __future__ import annotations

from bot.reports.check import CHECK_RUN, payload
from bot.reports.issue import tidy
from bot.reports.report import key
from bot.reports.templating import render
from bot.store.models import Pull
from bot.store.outbox import Draft


def pull_key(pull: Pull) -> str:
    """The key of the check run of a head that no campaign tests."""
    return key(CHECK_RUN, pull.target, pull.head, f"pull:{pull.number}")


def waiting(pull: Pull, why: str) -> Draft:
    """The neutral check run of a head that waits for somebody with write access."""
    summary = tidy(render("reports/waiting.md.j2", pull=pull, why=why))
    return _draft(pull, "Waits for a maintainer: comment /assay run", summary)


def unreadable(pull: Pull, why: str) -> Draft:
    """The neutral check run of a head whose configuration cannot be read."""
    summary = tidy(render("reports/unreadable.md.j2", pull=pull, why=why))
    return _draft(pull, "Could not test this commit: .github/assay.yml", summary)


def _draft(pull: Pull, title: str, summary: str) -> Draft:
    run = pull_key(pull)
    body = payload(pull.head, run, title, summary, "", conclusion="neutral")
    # No campaign's configuration says that these may be sent: whoever posts them has made sure.
    return Draft(CHECK_RUN, run, pull.target, body, number=pull.number, living=True, mode="live")
