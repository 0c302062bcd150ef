"""List effects that could not be sent, and retry them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click
from rich.markup import escape
from rich.table import Table

from bot.cli.common.console import stdout
from bot.cli.common.options import json_option
from bot.cli.common.service_database import open_database
from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.store import Session, audit, now, outbox
from bot.store.models import Effect, EffectState
from bot.terminal import echo

#: Digits of a key that are shown, and enough to name it by: 48 bits.
_DIGITS = 12


@click.command()
@click.argument("verb", required=False, type=click.Choice(["retry"]))
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--all", "everything", is_flag=True, help="Retry all of them.")
@click.option("--target", metavar="OWNER/NAME", help="Only this repository. [default: all]")
@click.option("--reason", default="", help="Reason, recorded in the audit log.")
@json_option
def command(
    verb: str | None, keys: Sequence[str], everything: bool, target: str | None, reason: str, as_json: bool
) -> Exit:
    """List effects that could not be sent, and retry them.

    Without an argument, lists the effects (comments, issues, check runs, labels) that GitHub refused or that
    failed for good, with the reason and the fix. `retry KEY` sends one again; its first digits are enough.
    Assay looks on GitHub first, so nothing is sent twice.

    Effects held for a maintainer are not listed: maintainers approve them with `/assay upstream`.
    """
    if verb is None and (keys or everything):
        raise UsageError("use `assay outbox retry KEY`; `assay outbox` lists the keys")
    if verb is not None and bool(keys) == everything:
        raise UsageError("choose effects: `assay outbox retry KEY`, or `assay outbox retry --all`")
    with open_database() as (_, database), database.transaction() as session:
        failed = [one for one in outbox.in_state(session, EffectState.FAILED) if target in (None, one.target)]
        shown = _chosen(failed, keys) if verb is not None else failed
        rows = [_row(one) for one in shown]
        if verb is not None:
            _retry(session, shown, reason)
    if as_json:
        echo(json.dumps({"retried" if verb else "failed": rows}))
    else:
        _print(rows, retried=verb is not None)
    return Exit.OK


def _chosen(failed: Sequence[Effect], keys: Sequence[str]) -> list[Effect]:
    """The effects whose keys begin with these; all without keys."""
    found = list(failed) if not keys else []
    for key in keys:
        matches = [one for one in failed if one.key.startswith(key)]
        if len(matches) != 1:
            what = f"{len(matches)} failed effects begin" if matches else "no failed effect begins"
            raise UsageError(f"{what} with {key!r}; `assay outbox` lists the keys")
        found += matches
    return found


def _retry(session: Session, chosen: Sequence[Effect], reason: str) -> None:
    for one in chosen:
        why = reason or f"retried after: {one.reason}"
        outbox.approve(session, one.key)
        audit.record(session, one.target, "retried", f"effect:{one.key}", why, now(), actor="operator")


def _row(one: Effect) -> dict[str, object]:
    return {
        "key": one.key,
        "kind": one.kind,
        "target": one.target,
        "number": one.number,
        "attempts": one.attempts,
        "created": one.created_at.isoformat(),
        "reason": one.reason,
    }


def _print(rows: Sequence[dict[str, object]], *, retried: bool) -> None:
    if not rows:
        echo("no failed effects; queued effects are sent in order")
        return
    table = Table("key", "kind", "of", "reason", box=None, pad_edge=False)
    for one in rows:
        where = f"{one['target']}#{one['number']}" if one["number"] else str(one["target"])
        table.add_row(str(one["key"])[:_DIGITS], str(one["kind"]), escape(where), escape(str(one["reason"])))
    stdout().print(table)
    if retried:
        echo("queued again; the service sends them in order")
    else:
        echo("after fixing the cause: assay outbox retry KEY")
