"""`/assay explain`: why something was said, or was not."""

from __future__ import annotations

from collections.abc import Iterator

from bot.commands.command_context import CommandContext, CommandResult, refuse
from bot.commands.registry import RequiredRole, action
from bot.reports import text
from bot.store import Session, audit, bugs, findings, status
from bot.store.models import AuditEvent, Bug, Classification

#: Ours: what fits on a screen; the service's audit has everything.
MAX_AUDIT_EVENTS, MAX_BUGS = 15, 10
#: What the check run calls them, where that is another word.
_NAMES = {Classification.REGRESSION: "new here", Classification.ALREADY_BROKEN: "already broken at base"}


@action(
    "explain",
    "Tells why something was said here, or was not, and on what evidence.",
    required_role=RequiredRole.READER,
)
def explain(session: Session, context: CommandContext) -> CommandResult:
    """What the audit and the findings say about this bug or pull request."""
    if context.bug is not None:
        lines = [
            *_bug(session, context.bug),
            "",
            *_list_audit_events(session, context, f"bug:{context.bug.id}"),
        ]
    elif context.pull is not None:
        lines = [*_pull(session, context), "", *_list_audit_events(session, context, context.audit_subject)]
    else:
        return refuse("This issue is none of ours, and nothing was done about it.")
    return CommandResult("\n".join(lines).strip())


def _bug(session: Session, bug: Bug) -> Iterator[str]:
    yield f"**{text.plain(bug.title)}**"
    yield ""
    reason = bug.reason.removeprefix(f"{bug.state}: ")
    yield f"- State: {bug.state}{f', because: {text.plain(reason)}' if reason else ''}"
    yield f"- Seen by {bug.seen} campaigns, {bug.first_seen:%Y-%m-%d} to {bug.last_seen:%Y-%m-%d}"
    yield f"- Signature {text.code(bug.signature)}" + (
        f", case {text.code(bug.case_id[:16])}" if bug.case_id else ""
    )
    if not bug.case_id and (unreduced := findings.unreduced(session, bug.id)):
        yield f"- Shown by a case as it was found, not made small: {text.plain(unreduced)}"


def _pull(session: Session, context: CommandContext) -> Iterator[str]:
    campaign = status.newest(session, context.target, context.number)
    if campaign is None:
        yield "This pull request was not tested."
        return
    base = text.code(campaign.base[:12]) if campaign.base else "no base"
    yield f"Campaign {campaign.id} of {text.code(campaign.head[:12])} beside {base}:"
    yield ""
    counted = findings.counts(session, campaign.id)
    for classification, count in counted.items():
        yield f"- {_NAMES.get(classification, classification.value.replace('_', ' '))}: {count}"
    if not counted:
        yield f"- no findings; it is {campaign.state}"
    for bug in bugs.of_pull(session, context.target, context.number)[:MAX_BUGS]:
        yield f"- new: {text.plain(bug.title)}" + (f" ({text.plain(bug.reason)})" if bug.reason else "")


def _list_audit_events(session: Session, context: CommandContext, subject: str) -> Iterator[str]:
    audit_events = audit.of(session, context.target, subject, MAX_AUDIT_EVENTS)
    if not audit_events:
        yield "Nothing was done about it yet."
        return
    yield "| when (UTC) | who | what | why |"
    yield "| --- | --- | --- | --- |"
    for event in audit_events:
        yield _row(event)


def _row(event: AuditEvent) -> str:
    return f"| {event.at:%Y-%m-%d %H:%M} | {text.cell(event.actor)} | {text.cell(event.action)} | {text.plain(event.reason)} |"
