"""The HTML of the web pages that are made at each request: the index, and one repository.

A page is a function of the database and of a `PageRequest`, a JSON object, so that another process can make
it (`bot.page_process`).
"""

from __future__ import annotations

from typing import TypedDict

from bot.artifacts import Artifacts
from bot.reports.templates import render
from bot.settings import Settings, web_url
from bot.store import Database, now, outbox, overview
from bot.store.models import BugState

MAX_BUGS = 100  # on a page; `assay bugs` lists all
#: Order of bugs on a page.
_STATE_ORDER = [
    BugState.REPORTED,
    BugState.HELD,
    BugState.FIXED,
    BugState.VERIFIED,
    BugState.NEW,
    BugState.CLOSED,
]
#: Names of classifications on pages.
CLASSIFICATION_LABELS = {
    "regression": "new",
    "changed": "changed",
    "already_broken": "already broken",
    "support_lost": "no longer supported",
    "fixed": "fixed",
    "flaky": "did not repeat",
    "flaky_program": "nondeterministic program",
    "infrastructure": "infrastructure",
    "inconclusive": "inconclusive",
}


class PageRequest(TypedDict, total=False):
    """What is asked for.

    repository  owner/name; without it the index
    code        of a registered App, shown on the index; "" for none
    problems    part of the service → failure, shown on the index
    """

    repository: str
    code: str
    problems: dict[str, str]


def make_page(settings: Settings, database: Database, request: PageRequest) -> str | None:
    """The HTML; None if there is no such public repository."""
    if "repository" in request:
        return _repository(settings, database, request["repository"])
    with database.reading() as session:
        switches = outbox.kill_switches(session)
        values = {
            "rows": overview.watched(session, public=True),
            "kill_switches": [one for one in switches if one.name == outbox.ALL_TARGETS],
        }
    return render(
        "pages/index.html.j2",
        **values,
        problems=request.get("problems", {}),
        code=request.get("code", ""),
        names=CLASSIFICATION_LABELS,
    )


def _repository(settings: Settings, database: Database, name: str) -> str | None:
    with database.reading() as session:
        seen = overview.of_target(session, name, now())
        if seen is None or seen.watched.target.private:
            return None
        ended = [one.campaign.id for one in seen.ended]
        return render(
            "pages/repository.html.j2",
            o=seen,
            bugs=sorted(seen.bugs, key=lambda bug: _STATE_ORDER.index(BugState(bug.state))),
            web=web_url(settings.github_api_url),
            reports=Artifacts(settings.artifacts_url, settings.data_dir).with_page(ended),
            limit=MAX_BUGS,
            names=CLASSIFICATION_LABELS,
        )
