"""Show what this machine can test, and what is missing."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click
from rich.markup import escape
from rich.table import Table

from bot.cli.common.console import stderr, stdout
from bot.cli.exits import Exit
from bot.isolation import HOW_TO_GET, HOW_TO_GET_CGROUP
from bot.machine import Machine, inspect_machine
from bot.terminal import echo

_STYLE = {"ready": "green", "missing": "yellow", "broken": "red", "no_device": "yellow"}
_ISOLATION_LEVELS = {
    "namespaces": "cases have no network and can write only to their scratch folder (namespaces)",
    "landlock": "cases have no network and can write only to their scratch folder (Landlock and seccomp)",
    "none": "[red]none[/]: cases have all permissions of this user",
}


@click.command()
@click.option("--python", default=sys.executable, help="Interpreter to check. [default: Assay's own]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--github", is_flag=True, help="Check the GitHub App instead: permissions and deliveries.")
def command(python: str, as_json: bool, github: bool) -> Exit:
    """Show what this machine can test, and what is missing.

    Imports every compiler. Exit code 1 if none works; with --github, if the App lacks something that Assay
    needs.
    """
    if github:
        from bot.cli.setup import github_checks  # imports half of the service

        return github_checks.check_github_app(as_json)
    with stderr().status("importing each compiler"):
        machine = inspect_machine(python)
    if as_json:
        echo(json.dumps(asdict(machine)))
    else:
        _print(machine)
    return Exit.OK if machine.testable else Exit.FOUND


def _print(machine: Machine) -> None:
    console = stdout()
    memory = machine.memory_bytes / (1 << 30)
    console.print(f"{machine.cores} cores, {memory:.0f} GiB, {machine.python}")
    table = _table("compiler", "state", "version", "to fix")
    for one in machine.compilers:
        style = _STYLE[one.state]
        advice = (
            one.detail.splitlines()[-1] if one.detail else ""
        )  # the last line of a traceback is the message
        table.add_row(one.backend, f"[{style}]{one.state}[/]", one.version, escape(advice))
    console.print(table)
    console.print()
    console.print(_choices(machine))
    console.print()
    console.print(_sources(machine))
    console.print(f"\nisolation: {_ISOLATION_LEVELS[machine.isolation.level]}")
    for level, why in machine.isolation.refused.items():
        console.print(f"  not {level}: {escape(why)}")
        console.print(f"    to get it: {escape(HOW_TO_GET[level])}")
    if machine.why_no_cgroup:
        console.print("limits of all processes of a case: read 20 times a second, not by the kernel")
        console.print(f"  no cgroup: {escape(machine.why_no_cgroup)}")
        console.print(f"    to get it: {escape(HOW_TO_GET_CGROUP)}")
    else:
        console.print("limits of all processes of a case: by the kernel (cgroup v2)")
    for gpu in machine.gpus:
        console.print(f"GPU: {gpu.name}, {gpu.memory}, driver {gpu.driver}")
    if machine.slots:
        console.print(f"GPU slots, one worker each: {', '.join(machine.slots)}")
    if not machine.gpus and not machine.slots:
        console.print("no GPU: only CPU devices are tested")
    for tool in machine.tools:
        if not tool.path:
            console.print(f"[red]missing[/]: {tool.name}, which {tool.why}")
    if not machine.testable:
        console.print("No compiler works: install one of those above, then run this again.")


def _table(*headers: str) -> Table:
    """A table that folds long cells instead of cutting them, so that they can be copied."""
    table = Table(*headers, box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    return table


def _sources(machine: Machine) -> Table:
    """Values of `--source`."""
    table = _table("source", "tests of", "state", "to fix")
    for one in machine.sources:
        state = f"[yellow]missing {escape(' '.join(one.absent))}[/]" if one.absent else "[green]ready[/]"
        table.add_row(one.name, one.library, state, escape(one.detail))
    return table


def _choices(machine: Machine) -> Table:
    """Values of `--frontend`, `--device` and `--option`, the default first."""
    table = _table("compiler", "frontends", "devices", "options")
    for one in machine.compilers:
        options = "  ".join(f"{name}={'|'.join(values)}" for name, values in one.options.items())
        table.add_row(one.backend, " ".join(one.frontends), " ".join(one.devices), escape(options))
    return table
