"""Run a shard of a service on this machine."""

from __future__ import annotations

import os

import click

from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.runners.remote import run_attempt
from bot.terminal import echo

KEY_VARIABLE = "ASSAY_RUNNER_KEY"


@click.command()
@click.argument("attempt")
@click.option("--url", required=True, help="The address of the service.")
@click.option(
    "--python", default="", help="An interpreter with the compiler. [default: the path in the shard]"
)
def command(attempt: str, url: str, python: str) -> Exit:
    """Run a shard of a service on this machine.

    Fetches the cases, runs them in the sandbox, and uploads outcomes that are signed with ASSAY_RUNNER_KEY.
    The workflow of runners starts it (workflows/gpu-runner.yml).
    """
    key = os.environ.get(KEY_VARIABLE, "").encode()
    if not key:
        raise UsageError(f"{KEY_VARIABLE} is not set; set it to the service's key")
    done = run_attempt(url, attempt, key, python)
    echo("the shard is done" if done else "the service has withdrawn the shard", err=True)
    return Exit.OK
