"""Delete all that is kept of a repository: rows, reports, mirror, cases of its own."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from bot.cli.common.service_database import open_database
from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.logs import configure
from bot.store import Database, now, target_deletion, targets
from bot.store.models import TargetState
from bot.targets.target_deletion import DeletedData, delete_target_data


@click.command()
@click.argument("target", metavar="OWNER/NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--reason", default="an operator asked for it", show_default=True, help="Kept in the audit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(target: str, yes: bool, reason: str, as_json: bool) -> Exit:
    """Delete all that is kept of a repository: rows, reports, mirror, cases of its own.

    The audit stays, and says that it was done. Verdicts of cases that other repositories share stay, too. A
    service may be running. Repositories whose App is uninstalled are forgotten by themselves, after
    ASSAY_DELETE_AFTER_DAYS.
    """
    configure("console", "error")
    with open_database() as (settings, database):
        name, installed = _find_target(database, target)
        if not yes:
            click.confirm(f"Delete all that is kept of {name}? This cannot be undone.", abort=True)
        result = delete_target_data(database, settings.data_dir, name, reason, now(), actor="operator")
    if as_json:
        click.echo(json.dumps({"target": name} | asdict(result)))
    else:
        _print(name, result)
    if installed:
        click.echo(
            f"The GitHub App is still installed there: uninstall it, or {name} is watched again.", err=True
        )
    return Exit.OK


def _find_target(database: Database, target: str) -> tuple[str, bool]:
    """The target's name as rows have it, and whether an installation sees it. Raises UsageError."""
    with database.reading() as session:
        row = targets.find_any_case(session, target)
        if row is not None:
            return row.name, row.installation_id is not None and row.state == TargetState.WATCHED.value
        if target_deletion.has_rows(session, target):
            return target, False
    raise UsageError(f"nothing is known of {target!r}; write owner/name as `assay` and GitHub do")


def _print(name: str, result: DeletedData) -> None:
    rows = ", ".join(f"{count} {table}" for table, count in sorted(result.rows.items()))
    click.echo(f"{name} is forgotten: {rows or 'no rows'}")
    mirror = "its git mirror" if result.mirror else "no git mirror"
    click.echo(f"files: {result.campaigns} campaigns' reports, {result.cases} cases of its own, {mirror}")
