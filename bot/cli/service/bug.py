"""Show the details of one bug."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import click
from rich.markup import escape

from bot.cli.common.console import stdout
from bot.cli.common.execution import Event, compare_backends, run_tool_on_shard
from bot.cli.common.options import compatible_backends, json_option
from bot.cli.common.progress import StatusLine
from bot.cli.common.service_database import find_bug, open_database
from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.reports import bug_page, reproducer
from bot.reports.bug_facts import add_program_text, collect_bug_facts
from bot.reports.bug_page import BugFacts
from bot.runners import run_tool
from bot.store import Database, bug_details
from bot.terminal import echo
from fuzzing import backends
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Verdict


@click.command()
@click.argument("bug")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page to this file.")
@click.option("--compare", is_flag=True, help="Also run its case on every installed compiler.")
@json_option
def command(bug: str, html: Path | None, compare: bool, as_json: bool) -> Exit:
    """Show the details of one bug.

    BUG is its number or the beginning of its signature; `assay bugs` lists them. --html writes a page with
    the smallest program, a reproducer, the numbers, the toolchains on which it fails and passes, its
    campaigns and its audit log.
    """
    with open_database() as (settings, database), StatusLine() as line:
        corpus = settings.data_dir / "corpus"
        line.show("reading the database")
        facts, python = _read(database, bug, corpus)
        facts = add_program_text(facts, corpus, run_tool)
        if python:
            line.show("running the case for its numbers")
            facts = replace(facts, numbers=_numbers(facts, corpus, python))
        if compare:
            line.show("running the case on each compiler")
            facts = replace(facts, comparison=_comparison(facts, corpus))
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(bug_page.page(facts), encoding="utf-8")
    if as_json:
        echo(json.dumps(bug_page.as_json(facts)))
    else:
        _show(facts, html)
    return Exit.OK


def _read(database: Database, named: str, corpus: Path) -> tuple[BugFacts, str]:
    """The facts, and the interpreter that reruns a wrong result, "" if it is not installed."""
    with database.reading() as session:
        facts = collect_bug_facts(session, find_bug(session, named), corpus)
        outcome = facts.outcome
        if outcome is None or outcome.verdict is not Verdict.WRONG_RESULT:
            return facts, ""
        python = bug_details.python_of(session, outcome.toolchain)
    return facts, python if Path(python).exists() else ""


def _numbers(facts: BugFacts, corpus: Path, python: str) -> list[Event]:
    """Actual and expected outputs of its case, element by element."""
    outcome, case = facts.outcome, facts.case
    assert outcome is not None
    assert case is not None
    options, profile = reproducer.options_and_profile(outcome)
    shard = Shard(
        corpus=str(corpus),
        cases=(case.id,),
        backend=outcome.backend,
        toolchain=outcome.toolchain,
        python=python,
        device=outcome.device,
        options=dict(options),
        profile=profile,
    )
    events: list[Event] = []
    run_tool_on_shard(shard, "fuzzing.execute.output_values", (), events.append)
    return [event for event in events if event["event"] == "output"]


def _comparison(facts: BugFacts, corpus: Path) -> list[Event]:
    """The result of its case on every installed compiler."""
    if facts.case is None:
        raise UsageError("its cases are no longer stored, so there is nothing to run")
    compatible = [backends.get(name) for name in compatible_backends(facts.case.program.kind, (), None)]
    wanted = [{"backend": one.name, "device": one.devices[0], "python": sys.executable} for one in compatible]
    return [row for row in compare_backends(corpus, facts.case.id, wanted)["rows"] if row["verdict"]]


def _show(facts: BugFacts, html: Path | None) -> None:
    console = stdout()
    bug, case = facts.bug, facts.case
    console.print(f"[bold]bug {bug.id}[/] of {escape(bug.target)}: {escape(bug.title)}")
    console.print(f"  {bug.state}{escape(f': {bug.reason}' if bug.reason else '')}")
    console.print(f"  seen by {bug.seen} campaigns, {bug.first_seen:%Y-%m-%d} to {bug.last_seen:%Y-%m-%d}")
    if facts.history:
        console.print(f"  reduced: {escape(facts.history)}")
    if case is not None:
        console.print(f"  case {case.id[:16]}  {escape(facts.replay)}")
    for run in facts.runs:
        console.print(f"  {run.outcome.verdict.value:13} {escape(run.label)}  {escape(run.outcome.summary)}")
    for row in facts.comparison:
        console.print(f"  {row['verdict']:13} {escape(row['label'])}, here")
    if (test := facts.proposal) is not None:
        console.print(f"  test {escape(f'{test.test} in {test.path}: {test.state}, {test.reason}')}")
    for event in facts.audit_events:
        what = escape(f"{event.actor} {event.action}: {event.reason}")
        console.print(f"  {event.at:%Y-%m-%d %H:%M}  {what}")
    if html is not None:
        console.print(f"page: {html}")
