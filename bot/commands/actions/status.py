"""`/assay status`: what Assay is at."""

from __future__ import annotations

from bot.commands.asking import Asked, Receipt
from bot.commands.registry import Need, action
from bot.reports import text
from bot.reports.templating import counted
from bot.store import Session, outbox, status


@action("status", "Tells what Assay is at: campaigns, jobs, reports, brakes.", need=Need.READER)
def tell(session: Session, asked: Asked) -> Receipt:
    """The state of the target, and of this pull request if it is one."""
    seen = status.of_target(session, asked.target, asked.at)
    event = f"{seen.last_event:%Y-%m-%d %H:%M} UTC" if seen.last_event else "none"
    waiting = counted(seen.unsent, "waits to be sent", "wait to be sent")
    lines = [
        f"- Last event from this repository: {event}",
        f"- Campaigns: {seen.working} at work, {seen.ahead} waiting",
        f"- Jobs (reducing, bisecting, testing fixes): {seen.jobs}",
        f"- Reports: {waiting}, {seen.held} held for a maintainer",
    ]
    lines += [f"- Muted: {text.code(one.operator)} until {one.until:%Y-%m-%d}" for one in seen.mutes]
    lines += [
        f"- **Brake**: nothing is sent, because {text.plain(brake.reason)}"
        for brake in outbox.brakes(session)
        if brake.name in (outbox.EVERYTHING, asked.target)
    ]
    if asked.pull is not None:
        lines.append(f"- This pull request: {_pull(session, asked)}")
    return Receipt("\n".join(lines))


def _pull(session: Session, asked: Asked) -> str:
    assert asked.pull is not None
    campaign = status.newest(session, asked.target, asked.pull.number)
    if campaign is None:
        return "not tested yet"
    told = f"campaign {campaign.id} of {text.code(campaign.head[:12])} is {campaign.state}"
    return f"{told}: {text.plain(campaign.reason)}" if campaign.reason else told
