"""Say what this machine can test, and what is missing."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click
from rich.markup import escape
from rich.table import Table

from bot.cli.common.console import stderr, stdout
from bot.cli.exits import Exit
from bot.isolation import HOW_TO_GET
from bot.machine import Machine, inspect_machine

_STYLE = {"ready": "green", "missing": "yellow", "broken": "red", "no_device": "yellow"}
_ISOLATION_LEVELS = {
    "namespaces": "a case sees no network and can write nowhere but its scratch folder (namespaces)",
    "landlock": "a case sees no network and can write nowhere but its scratch folder (Landlock and seccomp)",
    "none": "[red]none[/]: a case can do whatever this user can",
}


@click.command()
@click.option("--python", default=sys.executable, help="Interpreter to look into. [default: Assay's own]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--github", is_flag=True, help="Look at the GitHub App instead: what it may do, what arrives.")
def command(python: str, as_json: bool, github: bool) -> Exit:
    """Say what this machine can test, and what is missing.

    Every compiler is really imported. Exit code 1 if none works. With --github, exit code 1 if the App
    lacks something that Assay needs.
    """
    if github:
        from bot.cli.setup import github_checks  # half the service, which a look at the machine does without

        return github_checks.check_github_app(as_json)
    with stderr().status("importing every compiler once"):
        machine = inspect_machine(python)
    if as_json:
        click.echo(json.dumps(asdict(machine)))
    else:
        _print(machine)
    return Exit.OK if machine.testable else Exit.FOUND


def _print(machine: Machine) -> None:
    console = stdout()
    memory = machine.memory_bytes / (1 << 30)
    console.print(f"{machine.cores} cores, {memory:.0f} GiB, {machine.python}")
    table = _table("compiler", "state", "version", "what to do")
    for one in machine.compilers:
        style = _STYLE[one.state]
        advice = one.detail.splitlines()[-1] if one.detail else ""  # a traceback says it last
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
    for gpu in machine.gpus:
        console.print(f"GPU: {gpu.name}, {gpu.memory}, driver {gpu.driver}")
    if machine.slots:
        console.print(f"GPU slots, one worker each: {', '.join(machine.slots)}")
    if not machine.gpus and not machine.slots:
        console.print("no GPU: compilers are tested on the CPU")
    for tool in machine.tools:
        if not tool.path:
            console.print(f"[red]missing[/]: {tool.name}, which {tool.why}")
    if not machine.testable:
        console.print("Nothing to test with: install one of the compilers above, then run this again.")


def _table(*headers: str) -> Table:
    """Columns of which nothing is cut off: what is shown is to be copied."""
    table = Table(*headers, box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    return table


def _sources(machine: Machine) -> Table:
    """What `--source` takes."""
    table = _table("source", "tests of", "state", "what to do")
    for one in machine.sources:
        state = f"[yellow]lacks {escape(' '.join(one.absent))}[/]" if one.absent else "[green]ready[/]"
        table.add_row(one.name, one.library, state, escape(one.detail))
    return table


def _choices(machine: Machine) -> Table:
    """What `--frontend`, `--device` and `--option` take, the default first."""
    table = _table("compiler", "frontends", "devices", "options")
    for one in machine.compilers:
        options = "  ".join(f"{name}={'|'.join(values)}" for name, values in one.options.items())
        table.add_row(one.backend, " ".join(one.frontends), " ".join(one.devices), escape(options))
    return table
