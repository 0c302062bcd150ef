"""`assay doctor --github`: what the GitHub App may do, what arrives, and what is missing."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bot.cli._tables import stderr, stdout
from bot.cli.exits import Exit
from bot.compose.forge import github_hub
from bot.errors import SettingsError
from bot.github.doctor import Health, Point, examine
from bot.github.reading import Reader
from bot.settings import load_settings
from bot.store import now

_STYLE = {"ok": "green", "missing": "yellow", "broken": "red"}


def look(as_json: bool) -> Exit:
    """Looks and tells. Raises SettingsError: there is nothing to sign in with."""
    hub = github_hub(load_settings(), None)
    if hub is None:
        raise SettingsError(
            "there is nothing to sign in to GitHub with: set ASSAY_GITHUB_APP_ID and "
            "ASSAY_GITHUB_PRIVATE_KEY_FILE, or ASSAY_GITHUB_TOKEN for trying out"
        )
    try:
        with stderr().status("asking GitHub"):
            health = examine(Reader(hub), hub.url, now())
    finally:
        hub.close()
    if as_json:
        click.echo(json.dumps(asdict(health) | {"well": health.well}))
    else:
        show(stdout(), health)
    return Exit.OK if health.well else Exit.FOUND


def show(console: Console, health: Health) -> None:
    """Prints what the doctor saw, what to do about each thing beside it."""
    console.print(f"{'App' if health.app else 'token of'} {escape(health.who)} at {escape(health.api)}")
    console.print(_table(health.points))
    for one in health.installations:
        count = len(one.repositories)
        console.print(
            f"\ninstalled by {escape(one.account)}: {count} repositor{'y' if count == 1 else 'ies'}"
        )
        if one.points:
            console.print(_table(one.points))
    if not health.well:
        console.print("\nSomething is missing: do what is said above, then run this again.")


def _table(points: tuple[Point, ...]) -> Table:
    table = Table("what", "state", "seen", "what to do", box=None, pad_edge=False, header_style="bold")
    for one in points:
        state = f"[{_STYLE[one.state]}]{one.state}[/]"
        table.add_row(escape(one.name), state, escape(one.detail), escape(one.advice))
    return table
