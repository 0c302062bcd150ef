"""`assay doctor --github`: permissions and deliveries of the GitHub App."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bot.cli.common.console import stderr, stdout
from bot.cli.exits import Exit
from bot.errors import SettingsError
from bot.github.doctor import CheckResult, HealthReport, run_checks
from bot.github.reader import Reader
from bot.settings import load_settings
from bot.store import now
from bot.terminal import echo
from bot.wiring.github import connect_github

_STYLE = {"ok": "green", "missing": "yellow", "broken": "red"}


def check_github_app(as_json: bool) -> Exit:
    """Checks the App and prints the result; raises SettingsError without credentials."""
    github_api = connect_github(load_settings(), None)
    if github_api is None:
        raise SettingsError(
            "no GitHub credentials: set ASSAY_GITHUB_APP_ID and "
            "ASSAY_GITHUB_PRIVATE_KEY_FILE, or ASSAY_GITHUB_TOKEN for a trial"
        )
    try:
        with stderr().status("asking GitHub"):
            health = run_checks(Reader(github_api), github_api.url, now())
    finally:
        github_api.close()
    if as_json:
        echo(json.dumps(asdict(health) | {"well": health.is_ok}))
    else:
        print_health(stdout(), health)
    return Exit.OK if health.is_ok else Exit.FOUND


def print_health(console: Console, health: HealthReport) -> None:
    """Prints the result of each check and how to fix it."""
    console.print(f"{'App' if health.app else 'token of'} {escape(health.login)} at {escape(health.api)}")
    console.print(_table(health.check_results))
    for one in health.installations:
        count = len(one.repositories)
        console.print(
            f"\ninstalled by {escape(one.account)}: {count} repositor{'y' if count == 1 else 'ies'}"
        )
        if one.check_results:
            console.print(_table(one.check_results))
    if not health.is_ok:
        console.print("\nFix the items above, then run this again.")


def _table(check_results: tuple[CheckResult, ...]) -> Table:
    table = Table("check", "state", "found", "to fix", box=None, pad_edge=False, header_style="bold")
    for one in check_results:
        state = f"[{_STYLE[one.state]}]{one.state}[/]"
        table.add_row(escape(one.name), state, escape(one.detail), escape(one.advice))
    return table
