"""List the toolchains that were made, remove old ones, or show how one was made."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from bot.cli.common.options import json_option
from bot.cli.common.service_database import open_database
from bot.config.units import parse_duration
from bot.errors import UsageError
from bot.reports.text import cut, one_line
from bot.settings import load_settings
from bot.store import campaigns
from bot.store.database import missing_file
from bot.store.models import Side
from bot.terminal import echo
from bot.toolchains import collection
from bot.toolchains.collection import CachedToolchain

_GIB = 1 << 30
_LABEL = 90  # characters
_CAMPAIGNS = 20  # that `why` names


@click.group()
def command() -> None:
    """List the toolchains that were made, remove old ones, or show how one was made."""


@command.command(name="list")
@json_option
def list_(*, as_json: bool) -> None:
    """List toolchains, the last used one first: digest, size, last use and label."""
    found = collection.toolchains(_root())
    if as_json:
        echo(json.dumps({"toolchains": [one.to_json() for one in found]}))
        return
    for one in found:
        echo(_line(one))
    total = sum(one.size for one in found) / _GIB
    echo(f"{len(found)} toolchains, {total:.1f} GiB in {_root()}", err=True)


@command.command()
@click.option("--max-size", type=click.FloatRange(0), metavar="GIB", help="Keep at most so much.")
@click.option("--max-age", metavar="TIME", help="Remove what was not used for so long, such as 720h.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@json_option
def gc(max_size: float | None, max_age: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Remove toolchains, the least recently used ones first; those in use stay."""
    if max_size is None and max_age is None:
        raise UsageError("name a limit: --max-size or --max-age")
    try:
        seconds = None if max_age is None else parse_duration(max_age)
    except ValueError as error:
        raise UsageError(f"--max-age {max_age}: {error}") from None
    limit = None if max_size is None else int(max_size * _GIB)
    gone = list(collection.collect(_root(), limit, seconds, dry_run=dry_run))
    if as_json:
        echo(json.dumps({"removed": [one.to_json() for one in gone], "dry_run": dry_run}))
        return
    for one in gone:
        echo(_line(one))
    verb = "would be removed" if dry_run else "removed"
    echo(f"{len(gone)} toolchains {verb}, {sum(one.size for one in gone) / _GIB:.1f} GiB", err=True)


@command.command()
@click.argument("digest")
@json_option
def why(digest: str, *, as_json: bool) -> None:
    """Say how a toolchain was made, or why it does not work, who uses it and which campaigns tested it.

    DIGEST is the beginning of its digest, as a report and `assay toolchains list` show it.
    """
    one = collection.find(_root(), digest)
    tested = _campaigns(one.folder.name)
    if as_json:
        echo(json.dumps(one.to_json() | {"campaigns": tested}))
        return
    echo(_line(one))
    if one.failure:
        echo(f"does not work:\n{one.failure}")
    record = one.record
    how = f": pip install {' '.join(record['requirements'])}" if record.get("requirements") else ""
    echo(f"{'tried' if one.failure else 'made'} {_time(one.made)}{how}")
    if record.get("commit"):
        laid = ", ".join(record.get("overlay", []))
        echo(f"with {laid} of commit {record['commit']}" if laid else f"for commit {record['commit']}")
    if record.get("choice"):
        echo(record["choice"])
    if record.get("hashes"):
        echo(f"{len(record['hashes'])} wheels, checked against the index's hashes")
    for use in one.uses:
        echo(f"used {_time(use.at)} by {use.by}")
    for campaign in tested:
        echo("{side} of campaign {campaign} of {target}, commit {commit:.12}: {state}".format_map(campaign))
    echo("in use now" if one.held else "not in use now")


def _campaigns(digest: str) -> list[dict[str, Any]]:
    """The last campaigns of the service, if there is one here, that tested a toolchain."""
    settings = load_settings()
    if missing_file(settings.database_url) is not None:
        return []
    with open_database() as (_, database), database.reading() as session:
        return [
            {
                "campaign": one.id,
                "target": one.target,
                "side": side.value,
                "commit": one.head if side is Side.HEAD else one.base,
                "state": one.state,
            }
            for one in campaigns.of_toolchain(session, digest, _CAMPAIGNS)
            for side in Side
            if digest == (one.head_toolchain if side is Side.HEAD else one.base_toolchain)
        ]


def _root() -> Path:
    return (load_settings().data_dir / "toolchains").absolute()


def _line(one: CachedToolchain) -> str:
    state = "failed" if one.failure else "in use" if one.held else ""
    size = f"{one.size / (1 << 20):,.0f} MiB"
    label = cut(one_line(one.label), _LABEL)
    return f"{one.folder.name[:16]}  {size:>11}  {_time(one.used)}  {state:6}  {label}"


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))
