"""`/assay explain`: the reasons for what Assay did or left undone."""

from __future__ import annotations

from collections.abc import Iterator

from bot.commands.command_context import CommandContext, CommandResult, refuse
from bot.commands.registry import RequiredRole, action
from bot.reports import text
from bot.store import Session, audit, bugs, findings, status
from bot.store.models import AuditEvent, Bug, Classification

#: What fits on a screen; the audit has everything.
MAX_AUDIT_EVENTS, MAX_BUGS = 15, 10
#: The check run's words for classifications, where they differ.
_NAMES = {Classification.REGRESSION: "new here", Classification.ALREADY_BROKEN: "already broken at base"}


@action(
    "explain",
    "Shows why Assay reported something here, or did not, and the evidence.",
    required_role=RequiredRole.READER,
)
def explain(session: Session, context: CommandContext) -> CommandResult:
    """Lists the audit and the findings of this bug or pull request."""
    if context.bug is not None:
        lines = [
            *_bug(session, context.bug),
            "",
            *_list_audit_events(session, context, f"bug:{context.bug.id}"),
        ]
    elif context.pull is not None:
        lines = [*_pull(session, context), "", *_list_audit_events(session, context, context.audit_subject)]
    else:
        return refuse("Assay did not file this issue and has done nothing about it.")
    return CommandResult("\n".join(lines).strip())


def _bug(session: Session, bug: Bug) -> Iterator[str]:
    yield f"**{text.plain(bug.title)}**"
    yield ""
    reason = bug.reason.removeprefix(f"{bug.state}: ")
    yield f"- State: {bug.state}{f', reason: {text.plain(reason)}' if reason else ''}"
    yield f"- Seen by {bug.seen} campaigns, {bug.first_seen:%Y-%m-%d} to {bug.last_seen:%Y-%m-%d}"
    yield f"- Signature {text.code(bug.signature)}" + (
        f", case {text.code(bug.case_id[:16])}" if bug.case_id else ""
    )
    if not bug.case_id and (unreduced := findings.unreduced(session, bug.id)):
        yield f"- Its case is not reduced: {text.plain(unreduced)}"


def _pull(session: Session, context: CommandContext) -> Iterator[str]:
    campaign = status.newest(session, context.target, context.number)
    if campaign is None:
        yield "No campaign has tested this pull request."
        return
    base = text.code(campaign.base[:12]) if campaign.base else "no base"
    yield f"Campaign {campaign.id} of {text.code(campaign.head[:12])} compared with {base}:"
    yield ""
    counted = findings.counts(session, campaign.id)
    for classification, count in counted.items():
        yield f"- {_NAMES.get(classification, classification.value.replace('_', ' '))}: {count}"
    if not counted:
        yield f"- no findings; state: {campaign.state}"
    for bug in bugs.of_pull(session, context.target, context.number)[:MAX_BUGS]:
        yield f"- new: {text.plain(bug.title)}" + (f" ({text.plain(bug.reason)})" if bug.reason else "")


def _list_audit_events(session: Session, context: CommandContext, subject: str) -> Iterator[str]:
    audit_events = audit.of(session, context.target, subject, MAX_AUDIT_EVENTS)
    if not audit_events:
        yield "The audit is empty."
        return
    yield "| when (UTC) | who | what | why |"
    yield "| --- | --- | --- | --- |"
    for event in audit_events:
        yield _row(event)


def _row(event: AuditEvent) -> str:
    cells = [text.cell(event.actor), text.cell(event.action), text.plain(event.reason)]
    return f"| {event.at:%Y-%m-%d %H:%M} | {' | '.join(cells)} |"
