"""Publish to GitHub again after `assay pause`."""

from __future__ import annotations

import click

from bot.cli.common.kill_switches import change_state, json_option, reason_option, target_option
from bot.cli.exits import Exit


@click.command()
@target_option
@reason_option
@json_option
def command(target: str | None, reason: str, as_json: bool) -> Exit:
    """Publish to GitHub again after `assay pause`; queued effects are sent."""
    return change_state(target, reason, as_json=as_json, paused=False)
