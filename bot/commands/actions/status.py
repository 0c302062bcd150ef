"""`/assay status`: campaigns, jobs, reports and kill switches of the target."""

from __future__ import annotations

from bot.commands.command_context import CommandContext, CommandResult
from bot.commands.registry import RequiredRole, action
from bot.reports import text
from bot.reports.templates import pluralize
from bot.store import Session, outbox, status


@action("status", "Shows campaigns, jobs, reports and kill switches.", required_role=RequiredRole.READER)
def show_status(session: Session, context: CommandContext) -> CommandResult:
    """Shows the state of the target, and of the pull request."""
    seen = status.of_target(session, context.target, context.at)
    event = f"{seen.last_event:%Y-%m-%d %H:%M} UTC" if seen.last_event else "none"
    waiting = pluralize(seen.unsent, "is unsent", "are unsent")
    lines = [
        f"- Last event from this repository: {event}",
        f"- Campaigns: {seen.working} running, {seen.ahead} queued",
        f"- Jobs (reducing, bisecting, testing fixes): {seen.jobs}",
        f"- Reports: {waiting}, {seen.held} held for a maintainer",
    ]
    lines += [f"- Muted: {text.code(one.operator)} until {one.until:%Y-%m-%d}" for one in seen.mutes]
    lines += [
        f"- **Kill switch**: nothing is sent. Reason: {text.plain(kill_switch.reason)}"
        for kill_switch in outbox.kill_switches(session)
        if kill_switch.name in (outbox.ALL_TARGETS, context.target)
    ]
    if context.pull is not None:
        lines.append(f"- This pull request: {_pull(session, context)}")
    return CommandResult("\n".join(lines))


def _pull(session: Session, context: CommandContext) -> str:
    assert context.pull is not None
    campaign = status.newest(session, context.target, context.pull.number)
    if campaign is None:
        return "not tested yet"
    summary = f"campaign {campaign.id} of {text.code(campaign.head[:12])} is {campaign.state}"
    return f"{summary}: {text.plain(campaign.reason)}" if campaign.reason else summary
