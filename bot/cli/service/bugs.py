"""List the bugs in the database."""

from __future__ import annotations

import json

import click
from rich.markup import escape

from bot.cli.common.console import stdout
from bot.cli.common.options import json_option
from bot.cli.common.service_database import open_database
from bot.cli.exits import Exit
from bot.reports.bug_page import summarize_bug
from bot.store import bug_details
from bot.store.models import BugState
from bot.terminal import echo


@click.command()
@click.option("--target", default="", metavar="OWNER/NAME", help="Only this repository. [default: all]")
@click.option(
    "--state", type=click.Choice([state.value for state in BugState]), help="Only bugs in this state."
)
@json_option
def command(target: str, state: str | None, as_json: bool) -> Exit:
    """List the bugs in the database, the last seen first.

    `assay bug NUMBER` shows the details of one.
    """
    with open_database() as (_, database), database.reading() as session:
        found = bug_details.all_bugs(session, target, state or "")
    if as_json:
        echo(json.dumps([summarize_bug(bug) | {"case": bug.case_id or None} for bug in found]))
        return Exit.OK
    console = stdout()
    for bug in found:
        issue = f"  #{bug.issue}" if bug.issue else ""
        console.print(f"{bug.id:5}  {bug.state:9} {escape(bug.title)}  [dim]{escape(bug.target)}{issue}[/]")
    console.print(f"{len(found)} bug{'' if len(found) == 1 else 's'}")
    return Exit.OK
