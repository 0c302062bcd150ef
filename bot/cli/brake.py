"""Stop everything that is said on GitHub, at once, or let it go on."""

from __future__ import annotations

import json
import re

import click

from bot.cli._options import json_option
from bot.cli._service import opened
from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.store import Database, audit, now, outbox, targets

_TARGET = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


@click.command()
@click.argument("state", required=False, type=click.Choice(["on", "off"]))
@click.option("--target", metavar="OWNER/NAME", help="Only this repository. [default: all of them]")
@click.option("--reason", default="", help="Why, for those who wonder about the silence.")
@json_option
def command(state: str | None, target: str | None, reason: str, as_json: bool) -> Exit:
    """Stop everything that is said on GitHub, at once (on), or let it go on (off).

    Without an argument it says which brakes are set. What waits is kept and sent afterwards. Every process
    on the database obeys from its next effect on.
    """
    with opened() as (_, database):
        name = _named(database, target)
        if state is not None:
            _set(database, name, reason, on=state == "on")
        with database.reading() as session:
            told = [
                {"target": one.name, "reason": one.reason, "since": one.set_at.isoformat()}
                for one in outbox.brakes(session)
            ]
    if as_json:
        click.echo(json.dumps({"brakes": told}))
        return Exit.OK
    for one in told:
        where = "everything" if one["target"] == outbox.EVERYTHING else one["target"]
        click.echo(
            f"stopped: {where}, since {one['since']}" + (f": {one['reason']}" if one["reason"] else "")
        )
    if not told:
        click.echo("no brake is set: effects are sent")
    return Exit.OK


def _named(database: Database, target: str | None) -> str:
    """The brake's name: the repository as rows have it, for a brake under another name stops nothing."""
    if target is None:
        return outbox.EVERYTHING
    if not _TARGET.fullmatch(target):
        raise UsageError(f"--target {target}: is no repository; write OWNER/NAME")
    with database.reading() as session:
        row = targets.find_any_case(session, target)
    if row is not None:
        return row.name
    click.echo(f"{target} is not known here; `assay status` lists what is", err=True)
    return target


def _set(database: Database, name: str, reason: str, *, on: bool) -> None:
    at = now()
    with database.transaction() as session:
        if on:
            outbox.set_brake(session, name, reason, at)
        elif not outbox.clear_brake(session, name):
            where = "for everything" if name == outbox.EVERYTHING else f"for {name}"
            raise UsageError(f"no brake is set {where}; `assay brake` lists those that are")
        verb = "braked" if on else "released"
        why = reason or ("an emergency stop" if on else "the brake was taken off")
        audit.record(
            session, "" if name == outbox.EVERYTHING else name, verb, "target", why, at, who="operator"
        )
