"""Delete all data of a repository: rows, reports, git mirror, its own cases."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from bot.artifacts import Artifacts
from bot.cli.common.service_database import open_database
from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.logs import configure
from bot.store import Database, now, target_deletion, targets
from bot.store.models import TargetState
from bot.targets.target_deletion import DeletedData, delete_target_data
from bot.terminal import echo


@click.command()
@click.argument("target", metavar="OWNER/NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--reason",
    default="requested by an operator",
    show_default=True,
    help="Reason, recorded in the audit log.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(target: str, yes: bool, reason: str, as_json: bool) -> Exit:
    """Delete all data of a repository: rows, reports, git mirror, its own cases.

    The audit log stays and records the deletion. Cached verdicts of cases shared with other repositories stay
    too. The service may be running. It deletes repositories by itself ASSAY_DELETE_AFTER_DAYS after their App
    is uninstalled.
    """
    configure("console", "error")
    with open_database() as (settings, database):
        name, installed = _find_target(database, target)
        if not yes:
            click.confirm(f"Delete all data of {name}? This cannot be undone.", abort=True)
        artifacts = Artifacts(settings.artifacts_url, settings.data_dir)
        result = delete_target_data(
            database, settings.data_dir, artifacts, name, reason, now(), actor="operator"
        )
    if as_json:
        echo(json.dumps({"target": name} | asdict(result)))
    else:
        _print(name, result)
    if installed:
        echo(f"The GitHub App is still installed: uninstall it, or {name} is watched again.", err=True)
    return Exit.OK


def _find_target(database: Database, target: str) -> tuple[str, bool]:
    """The target's stored name, and whether the App is installed on it; raises UsageError."""
    with database.reading() as session:
        row = targets.find_any_case(session, target)
        if row is not None:
            return row.name, row.installation_id is not None and row.state == TargetState.WATCHED.value
        if target_deletion.has_rows(session, target):
            return target, False
    raise UsageError(f"unknown repository {target!r}; write OWNER/NAME as on GitHub")


def _print(name: str, result: DeletedData) -> None:
    rows = ", ".join(f"{count} {table}" for table, count in sorted(result.rows.items()))
    echo(f"{name} is deleted: {rows or 'no rows'}")
    mirror = "git mirror" if result.mirror else "no git mirror"
    echo(f"files: {result.campaigns} campaign reports, {result.cases} own cases, {mirror}")
