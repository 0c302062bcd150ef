"""Stop publishing to GitHub, for one repository or for all."""

from __future__ import annotations

import click

from bot.cli.common.kill_switches import change_state, json_option, reason_option, target_option
from bot.cli.exits import Exit


@click.command()
@target_option
@reason_option
@json_option
def command(target: str | None, reason: str, as_json: bool) -> Exit:
    """Stop publishing to GitHub, for one repository or for all.

    Effects are queued and sent after `assay resume`. Every process on the database obeys from its next effect
    on. `assay status` shows what is paused.
    """
    return change_state(target, reason, as_json=as_json, paused=True)
