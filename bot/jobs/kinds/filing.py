"""`filing`: the last look before an issue goes out: is it on GitHub already, is it still there?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.bisection.commits import sentence
from bot.bugs import since
from bot.bugs.filing import FILING, UNCHECKED, why_quiet
from bot.campaigns.provenance import origin
from bot.errors import RefusalError
from bot.github.limits import BODY_BUDGET, MARK, marker
from bot.jobs import blaming, running
from bot.jobs.doing import Doing, IssueFacts
from bot.jobs.registry import kind
from bot.jobs.running import Known
from bot.reports import text
from bot.store import Session, audit, bugs, jobs, outbox, withheld
from bot.store.life import OVER, Event
from bot.store.models import BugState, Campaign, Cause, Effect, EffectState, Job

#: Ours: relatives that an issue names, and words of a message that are looked for.
RELATIVES, WORDS = 3, 6
#: Ours: parts of a compiler that are named in one row.
NAMED = 8
#: Words that say nothing about which error it is.
_COMMON = frozenset({"error", "exception", "failed", "the", "with", "from", "and", "for", "not", "model"})
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,}")


@dataclass(frozen=True)
class _Seen:
    """What was found out.

    hold       why the issue is not filed, "" if it is; a person who asks for it all the same is heeded
    gone       why there is nothing to be filed: the newest build does not show it
    operator   what the case is about
    relatives  issues that are like it
    brought    which commit brought it, as `bot.bisection.commits` tells; None where that is not known
    where      where in the compiler it goes wrong: the facts of the job `localise`
    """

    hold: str = ""
    gone: str = ""
    operator: str = ""
    relatives: tuple[IssueFacts, ...] = ()
    brought: dict[str, Any] | None = None
    where: tuple[dict[str, Any], ...] = ()


def _given_up(session: Session, job: Job, reason: str, at: datetime) -> None:
    """The issue stays here and says why; the next campaign that sees the bug has it checked again."""
    effect = session.get(Effect, str(job.arguments["effect"]))
    if effect is None or effect.state != EffectState.HELD.value:
        return
    withheld.note(effect, f"{UNCHECKED}: {reason}", Cause.CHECKING)
    bug = bugs.of_id(session, effect.bug_id)
    if bug is not None:
        bugs.hold(session, bug.id, effect.reason, at)


@kind(FILING, given_up=_given_up)
def file(doing: Doing) -> None:
    """Releases a held issue, or says why it stays here."""
    name = str(doing.errand.arguments["effect"])
    with doing.database.reading() as session:
        effect = session.get(Effect, name)
        waits = effect is not None and effect.state == EffectState.HELD.value
        payload = dict(effect.payload) if effect is not None else {}
        known = running.known(session, doing) if waits and doing.errand.bug_id is not None else None
    if not waits or known is None:
        with doing.transaction() as (session, job):
            doing.done(session, job, "there is nothing that waits to be filed")
        return
    seen = _seen(doing, known, payload)
    with doing.transaction() as (session, job):
        if _is_overtaken(session, known, seen):
            jobs.release(job)  # looked at once more, at what is known by now
            return
        _settle(session, job, doing, name, seen)


def _is_overtaken(session: Session, known: Known, seen: _Seen) -> bool:
    """Whether the bug is not what was looked at: it leads another life, or is to be gone and was seen."""
    bug = bugs.of_id(session, known.bug.id)
    if bug is None:
        return False
    return bugs.lives(bug) != bugs.lives(known.bug) or (
        bool(seen.gone) and bug.campaign_id != known.bug.campaign_id
    )


def _seen(doing: Doing, known: Known, payload: dict[str, object]) -> _Seen:
    operator = origin(doing.corpus, known.case).operator
    gone = _gone(doing, known)
    if gone:
        return _Seen(gone=gone)
    found = _similar(doing, known, payload)
    title = str(payload.get("title", ""))
    same = [one for one in found if _words(one.title) == _words(title) and one.state == "open"]
    hold = (
        f"#{same[0].number} is open and says the same; `/assay upstream` files it all the same"
        if same
        else ""
    )
    brought = _brought(doing, known) if doing.errand.asked_by or not hold else None
    where = tuple(known.bug.facts.get("localisation", {}).get("facts", ()))
    return _Seen(
        hold=hold, operator=operator, relatives=tuple(found[:RELATIVES]), brought=brought, where=where
    )


def _brought(doing: Doing, known: Known) -> dict[str, Any] | None:
    """Which commit brought it; an issue without that is better than none, where commits are gone by now."""
    there: dict[str, Any] | None = known.bug.facts.get("bisection", {}).get("commits")
    try:
        return there or blaming.brought(doing, known)
    except RefusalError as error:
        doing.progress(0, 0, f"the commit that brought it cannot be told: {error}")
        return None


def _gone(doing: Doing, known: Known) -> str:
    """Why the newest commit does not show it any more; "" where it does, or is the campaign's own."""
    newest = doing.newest(known.campaign)
    if not newest or newest == known.campaign.head:
        return ""
    place = running.at_commit(doing, known.campaign, newest)
    if place.toolchain == known.campaign.head_toolchain:
        return ""
    with doing.database.reading() as session:
        control = running.control(session, known)
    seen = running.tallied(doing, known, control, place)
    told = f"it {seen.told(place.label)}, commit {newest[:12]}, the newest there is"
    if seen.passed:
        return told
    if seen.failed and seen.healthy:
        return ""
    raise RefusalError(f"{told}: that says neither that it is there nor that it is not")


def _similar(doing: Doing, known: Known, payload: dict[str, object]) -> list[IssueFacts]:
    """People's issues that hold the same words, the best match first; none where GitHub cannot be asked."""
    words = _words(str(payload.get("title", "")))[:WORDS]
    if doing.forge is None or not words:
        return []
    found = doing.forge.search_issues(known.campaign.target, " ".join(words))
    return [one for one in found if MARK not in one.body and not one.pull]


def _words(title: str) -> list[str]:
    return [word for word in _WORD.findall(title) if word.lower() not in _COMMON]


def _settle(session: Session, job: Job, doing: Doing, name: str, seen: _Seen) -> None:
    effect = session.get_one(Effect, name)
    why, cause = (seen.gone, Cause.NONE) if seen.gone else _meanwhile(session, job, doing, effect, seen)
    if effect.state != EffectState.HELD.value:
        doing.done(session, job, "it was released meanwhile")
    elif why:
        withheld.note(effect, why, cause)
        _keep(session, job, doing, effect, why, gone=bool(seen.gone))
    else:
        bug = bugs.of_id(session, effect.bug_id)
        if bug is not None and seen.brought:
            bugs.learn(session, bug, "bisection", {**bug.facts.get("bisection", {}), "commits": seen.brought})
        body = str(effect.payload["body"])
        known_since = since.section(bug) if bug is not None else ""
        for section in [*_sections(seen), *filter(None, [known_since])]:
            body = _with(body, name, section)
        effect.payload = {**effect.payload, "body": body}
        outbox.release(session, name)
        since.ask(session, effect, bug, doing.services.clock.now())
        doing.done(session, job, "checked: it is still there, and nothing open says the same")


def _meanwhile(session: Session, job: Job, doing: Doing, effect: Effect, seen: _Seen) -> tuple[str, Cause]:
    """Why the issue is not to go out now; "" where it is, or a person wants it all the same."""
    if job.asked_by:
        return "", Cause.NONE
    bug, at = bugs.of_id(session, effect.bug_id), doing.services.clock.now()
    if bug is not None and BugState(bug.state) in OVER:
        return f"it is {bug.state} by now: {bug.reason}", Cause.NONE
    if quiet := why_quiet(session, effect.target, bug, seen.operator, at) or seen.hold:
        return quiet, Cause.NONE
    campaign = session.get(Campaign, effect.campaign_id) if effect.campaign_id is not None else None
    per_day = int(((campaign.config if campaign else {}).get("reports") or {}).get("issues_per_day", 0))
    return outbox.over_quota(session, effect.target, per_day, at, effect.key), Cause.OVER_QUOTA


def _keep(session: Session, job: Job, doing: Doing, effect: Effect, why: str, *, gone: bool) -> None:
    at = doing.services.clock.now()
    bug = bugs.of_id(session, effect.bug_id)
    if bug is not None:
        if gone:
            bugs.move(session, bug, Event.PASSED, why, at)
        else:
            bugs.hold(session, bug.id, why, at)
        audit.record(session, bug.target, "silent", bugs.subject(bug), why, at)
    doing.done(session, job, why)


def _sections(seen: _Seen) -> Iterator[str]:
    """What was found out, as the last sections of the issue."""
    named = [one for one in seen.where if one["found"] and one["confirmed"] is not False]
    if named:
        rows = [f"| {one['what']} | {_listed(one['found'])} | {text.plain(one['how'])} |" for one in named]
        head = ["### Where in the compiler", "", "| looked at | found | how |", "| --- | --- | --- |"]
        yield "\n".join([*head, *rows])
    if seen.brought:
        yield f"### Which commit\n\n{text.plain(_capital(sentence(seen.brought)))}."
    if seen.relatives:
        lines = [f"- #{one.number}: {text.plain(one.title)} ({one.state})" for one in seen.relatives]
        yield "\n".join(["### Perhaps related", "", *lines])


def _listed(names: list[str]) -> str:
    """Names in a table's cell; many of them are counted."""
    shown = ", ".join(text.cell(name) for name in names[:NAMED])
    left = len(names) - NAMED
    return f"{shown} and {left} more" if left > 0 else shown


def _capital(said: str) -> str:
    return said[:1].upper() + said[1:]


def _with(body: str, name: str, section: str) -> str:
    """The body with a section before its mark, as long as there is room."""
    head, mark, _ = body.rpartition(marker(name))
    longer = f"{head.rstrip()}\n\n{section}\n\n{mark}\n"
    return longer if len(longer) <= BODY_BUDGET else body
