"""What `assay run` says at its end, for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from bot.campaigns.catalogue import Account
from bot.campaigns.ranking import Ranking
from bot.cli._tables import stdout
from bot.reports.planning import order_of, source_state
from bot.reports.templating import counted, seconds

_SHOWN = 15  # groups listed on the terminal; the report has them all
_DIGITS = 8  # of a case's id, enough to name it by in a corpus of ten thousand
_PHASES = ("import", "convert", "compile", "run")


def show(told: dict[str, Any], report: Path | None, here: Callable[[str], str | None]) -> None:
    """Prints a report.json.

    report  the folder it lies in, None where none was asked for
    here    what else to tell `assay replay` of a case, to have it run again as it was; None where that cannot
            be had
    """
    console = stdout()
    counts = ", ".join(f"{cases} {verdict}" for verdict, cases in told["verdicts"]["head"].items())
    label = told["toolchains"]["head"]["label"]
    how = f" ({told['configuration']})" if told["configuration"] else ""
    console.print(
        f"[bold]{escape(label)}[/]{escape(how)}: "
        f"{told['cases']['run']} of {told['cases']['planned']} cases ran: {counts or 'none'}"
    )
    for line in _sources(told):
        console.print(escape(line))
    for line in _phases(told):
        console.print(escape(line))
    console.print(escape(_speed(told)))
    _groups(console, told)
    console.print(escape(told["headline"]))
    if report is not None:
        console.print(f"report: {report / 'report.html'}  reproducers: {report / 'reproducers'}")
    elif told["groups"]:
        console.print("no report was written; --report FOLDER gives it, with a reproducer for each failure")
    again = next((group for group in told["groups"] if group["replay"]), None)
    if again and (beside := here(again["example"]["case"])) is not None:
        line = escape(again["replay"] + beside)
        console.print(f"look closer: {line}, or compare, reduce, localise instead of replay")


def _sources(told: dict[str, Any]) -> list[str]:
    """Where the cases come from and what orders them; a line for each source where there are several."""
    accounts = [Account.from_json(one) for one in told["sources"]]
    lines = []
    for one in accounts:
        state = source_state(one)
        if state or len(accounts) > 1:
            skipped = (
                f", {counted(sum(one.skipped.values()), 'test')} that became none" if one.skipped else ""
            )
            lines.append(f"  {one.source}: {counted(one.cases, 'case')}{skipped}{'; ' * bool(state)}{state}")
    ranking = told["ranking"] and Ranking.from_json(told["ranking"])
    return [*lines, *(f"  {order}" for order in [order_of(ranking)] if order)]


def _phases(told: dict[str, Any]) -> list[str]:
    """Where the time went and where cases ended otherwise than well, one line for each phase."""
    spent = told["work"].get("running", {}).get("phases", {})
    ended = told["phases"].get("head", {})
    lines = []
    for phase in _PHASES:
        bad = {verdict: cases for verdict, cases in ended.get(phase, {}).items() if verdict != "pass"}
        if phase not in spent and not bad:
            continue
        time = f"{spent[phase]:8.2f} s" if phase in spent else " " * 10
        lines.append(
            f"  {phase:8} {time}  {', '.join(f'{n} {verdict}' for verdict, n in bad.items())}".rstrip()
        )
    return lines


def _speed(told: dict[str, Any]) -> str:
    work, cached = told["work"].get("running"), told["cached"].get("head", 0)
    known = f"{counted(cached, 'verdict')} from the cache"
    if work is None or not work["runs"]:
        return f"  {known}; nothing was compiled" if cached else "  nothing was run"
    said = f"  {counted(work['runs'], 'case')} in {seconds(work['seconds'])}"
    if work["rate"] is not None:
        said += f", {work['rate']:.3g} a second with {counted(work['workers'], 'worker')}"
    if work["overhead"] is not None:
        said += f", overhead {work['overhead']:.2f} (1 would be the compiler's time alone)"
    return f"{said}; {known}"


def _groups(console: Console, told: dict[str, Any]) -> None:
    groups = [group for group in told["groups"] if group["standing"] != "fixed"]
    for group in groups[:_SHOWN]:
        standing = "failing" if group["standing"] == "unjudged" and not told["base"] else group["standing"]
        case = group["example"]["case"][:_DIGITS]
        console.print(
            f"  {group['cases']:4}  {standing.replace('_', ' '):15} {case}  {escape(group['title'])}"
        )
    if len(groups) > _SHOWN:
        console.print(f"        and {len(groups) - _SHOWN} more kinds of failure")
