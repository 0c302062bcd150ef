"""List the bugs that the service knows."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.markup import escape

from bot.cli._options import json_option
from bot.cli._service import opened
from bot.cli.exits import Exit
from bot.store import evidence
from bot.store.models import Bug, BugState


@click.command()
@click.option("--target", default="", help="Of this repository alone, owner/name.")
@click.option("--state", type=click.Choice([state.value for state in BugState]), help="In this state alone.")
@json_option
def command(target: str, state: str | None, as_json: bool) -> Exit:
    """List the bugs that the service knows, the last seen first.

    `assay bug NUMBER` shows one whole.
    """
    with opened() as (_, database), database.reading() as session:
        found = evidence.all_bugs(session, target, state or "")
    if as_json:
        click.echo(json.dumps([_told(bug) for bug in found]))
        return Exit.OK
    console = Console(soft_wrap=True, highlight=False)
    for bug in found:
        issue = f"  #{bug.issue}" if bug.issue else ""
        console.print(f"{bug.id:5}  {bug.state:9} {escape(bug.title)}  [dim]{escape(bug.target)}{issue}[/]")
    console.print(f"{len(found)} bug{'' if len(found) == 1 else 's'}")
    return Exit.OK


def _told(bug: Bug) -> dict[str, object]:
    return {
        "id": bug.id,
        "target": bug.target,
        "signature": bug.signature,
        "title": bug.title,
        "state": bug.state,
        "reason": bug.reason,
        "issue": bug.issue,
        "seen": bug.seen,
        "case": bug.case_id or None,
        "last_seen": bug.last_seen.isoformat(),
    }
