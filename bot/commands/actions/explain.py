"""`/assay explain`: why something was said, or was not."""

from __future__ import annotations

from collections.abc import Iterator

from bot.commands.asking import Asked, Receipt, refused
from bot.commands.registry import Need, action
from bot.reports import text
from bot.store import Session, audit, bugs, findings, status
from bot.store.models import Act, Bug, Standing

#: Ours: what fits on a screen; the service's audit has everything.
MAX_ACTS, MAX_BUGS = 15, 10
#: What the check run calls them, where that is another word.
_NAMES = {Standing.REGRESSION: "new here", Standing.ALREADY_BROKEN: "already broken at base"}


@action("explain", "Tells why something was said here, or was not, and on what evidence.", need=Need.READER)
def explain(session: Session, asked: Asked) -> Receipt:
    """What the audit and the findings say about this bug or pull request."""
    if asked.bug is not None:
        lines = [*_bug(session, asked.bug), "", *_acts(session, asked, f"bug:{asked.bug.id}")]
    elif asked.pull is not None:
        lines = [*_pull(session, asked), "", *_acts(session, asked, asked.thread)]
    else:
        return refused("This issue is none of ours, and nothing was done about it.")
    return Receipt("\n".join(lines).strip())


def _bug(session: Session, bug: Bug) -> Iterator[str]:
    yield f"**{text.plain(bug.title)}**"
    yield ""
    why = bug.reason.removeprefix(f"{bug.state}: ")
    yield f"- State: {bug.state}{f', because: {text.plain(why)}' if why else ''}"
    yield f"- Seen by {bug.seen} campaigns, {bug.first_seen:%Y-%m-%d} to {bug.last_seen:%Y-%m-%d}"
    yield f"- Signature {text.code(bug.signature)}" + (
        f", case {text.code(bug.case_id[:16])}" if bug.case_id else ""
    )
    if not bug.case_id and (unreduced := findings.unreduced(session, bug.id)):
        yield f"- Shown by a case as it was found, not made small: {text.plain(unreduced)}"


def _pull(session: Session, asked: Asked) -> Iterator[str]:
    campaign = status.newest(session, asked.target, asked.number)
    if campaign is None:
        yield "This pull request was not tested."
        return
    base = text.code(campaign.base[:12]) if campaign.base else "no base"
    yield f"Campaign {campaign.id} of {text.code(campaign.head[:12])} beside {base}:"
    yield ""
    counted = findings.counts(session, campaign.id)
    for standing, count in counted.items():
        yield f"- {_NAMES.get(standing, standing.value.replace('_', ' '))}: {count}"
    if not counted:
        yield f"- no findings; it is {campaign.state}"
    for bug in bugs.of_pull(session, asked.target, asked.number)[:MAX_BUGS]:
        yield f"- new: {text.plain(bug.title)}" + (f" ({text.plain(bug.reason)})" if bug.reason else "")


def _acts(session: Session, asked: Asked, subject: str) -> Iterator[str]:
    acts = audit.of(session, asked.target, subject, MAX_ACTS)
    if not acts:
        yield "Nothing was done about it yet."
        return
    yield "| when (UTC) | who | what | why |"
    yield "| --- | --- | --- | --- |"
    for act in acts:
        yield _row(act)


def _row(act: Act) -> str:
    return (
        f"| {act.at:%Y-%m-%d %H:%M} | {text.cell(act.who)} | {text.cell(act.what)} | {text.plain(act.why)} |"
    )
