"""What `assay pause` and `assay resume` share: the kill switches that stop publishing."""

from __future__ import annotations

import json
import re

import click

from bot.cli.common.options import json_option as json_option
from bot.cli.common.service_database import open_database
from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.store import Database, audit, now, outbox, targets
from bot.terminal import echo

_TARGET = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)

target_option = click.option("--target", metavar="OWNER/NAME", help="Only this repository. [default: all]")
reason_option = click.option("--reason", default="", help="The reason, shown by `assay status`.")


def change_state(target: str | None, reason: str, *, as_json: bool, paused: bool) -> Exit:
    """Sets or clears a kill switch, then lists those that are set.

    Raises UsageError if `target` is not a repository name, or is resumed without being paused.
    """
    with open_database() as (_, database):
        name = _find_target(database, target)
        _change(database, name, reason, paused=paused)
        with database.reading() as session:
            found = [
                {"target": one.name, "reason": one.reason, "since": one.set_at.isoformat()}
                for one in outbox.kill_switches(session)
            ]
    if as_json:
        echo(json.dumps({"paused": found}))
        return Exit.OK
    for one in found:
        where = "all repositories" if one["target"] == outbox.ALL_TARGETS else one["target"]
        echo(f"paused: {where}, since {one['since']}" + (f": {one['reason']}" if one["reason"] else ""))
    if not found:
        echo("nothing is paused: effects are sent")
    return Exit.OK


def _find_target(database: Database, target: str | None) -> str:
    """The repository's name as stored; switches match exactly."""
    if target is None:
        return outbox.ALL_TARGETS
    if not _TARGET.fullmatch(target):
        raise UsageError(f"--target {target}: not a repository; write OWNER/NAME")
    with database.reading() as session:
        row = targets.find_any_case(session, target)
    if row is not None:
        return row.name
    echo(f"{target} is unknown; `assay status` lists all repositories", err=True)
    return target


def _change(database: Database, name: str, reason: str, *, paused: bool) -> None:
    at = now()
    everything = name == outbox.ALL_TARGETS
    with database.transaction() as session:
        if paused:
            outbox.enable_kill_switch(session, name, reason, at)
        elif not outbox.disable_kill_switch(session, name):
            what = "publishing as a whole" if everything else name
            raise UsageError(f"{what} is not paused; `assay status` shows what is")
        verb = "paused" if paused else "resumed"
        audit.record(
            session, "" if everything else name, verb, "target", reason or verb, at, actor="operator"
        )
