"""The summary that `assay run` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bot.campaigns.plan.case_source import SourceReport
from bot.campaigns.plan.ranking import Ranking
from bot.cli.common.console import stdout
from bot.reports.plan_summary import describe_ranking, describe_source_state
from bot.reports.templates import pluralize, seconds

_SHOWN = 15  # groups listed on the terminal; the report has them all
_DIGITS = 8  # of a case's id: unique in a corpus of ten thousand
_PHASES = ("import", "convert", "compile", "run")


def print_summary(
    result: dict[str, Any], report: Path | None, replay_arguments: Callable[[str], str | None]
) -> None:
    """Prints a report.json.

    report            its folder, None if no report was requested
    replay_arguments  further options of `assay replay` for a case; None if it cannot be replayed
    """
    console = stdout()
    counts = ", ".join(f"{cases} {verdict}" for verdict, cases in result["verdicts"]["head"].items())
    label = result["toolchains"]["head"]["label"]
    how = f" ({result['configuration']})" if result["configuration"] else ""
    console.print(
        f"[bold]{escape(label)}[/]{escape(how)}: "
        f"{result['cases']['run']} of {result['cases']['planned']} cases ran: {counts or 'none'}"
    )
    for line in _sources(result):
        console.print(escape(line))
    for line in _phases(result):
        console.print(escape(line))
    console.print(escape(_speed(result)))
    _rules(console, result)
    _groups(console, result)
    console.print(escape(result["headline"]))
    if report is not None:
        console.print(f"report: {report / 'report.html'}  reproducers: {report / 'reproducers'}")
    elif result["groups"]:
        console.print("use --report FOLDER for a report with a reproducer for each failure")
    again = next((group for group in result["groups"] if group["replay"]), None)
    if again and (extra_arguments := replay_arguments(again["example"]["case"])) is not None:
        line = escape(again["replay"] + extra_arguments)
        console.print(f"next: {line} (or compare, reduce, localize)")


def _sources(result: dict[str, Any]) -> list[str]:
    """The sources of the cases, if several or incomplete, and how the cases were ordered."""
    accounts = [SourceReport.from_json(one) for one in result["sources"]]
    lines = []
    for one in accounts:
        state = describe_source_state(one)
        if state or len(accounts) > 1:
            skipped = f", {pluralize(sum(one.skipped.values()), 'test')} not converted" if one.skipped else ""
            lines.append(
                f"  {one.source}: {pluralize(one.cases, 'case')}{skipped}{'; ' * bool(state)}{state}"
            )
    ranking = result["ranking"] and Ranking.from_json(result["ranking"])
    return [*lines, *(f"  {order}" for order in [describe_ranking(ranking)] if order)]


def _phases(result: dict[str, Any]) -> list[str]:
    """Time and failures by phase, one line each."""
    spent = result["work"].get("running", {}).get("phases", {})
    ended = result["phases"].get("head", {})
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


def _speed(result: dict[str, Any]) -> str:
    work, cached = result["work"].get("running"), result["cached"].get("head", 0)
    known = f"{pluralize(cached, 'verdict')} from the cache"
    if work is None or not work["runs"]:
        return f"  {known}; nothing was compiled" if cached else "  no case was run"
    line = f"  {pluralize(work['runs'], 'case')} in {seconds(work['seconds'])}"
    if work["rate"] is not None:
        line += f", {work['rate']:.3g} a second with {pluralize(work['workers'], 'worker')}"
    if work["overhead"] is not None:
        line += f", overhead {work['overhead']:.2f} (wall time / compiler time)"
    return f"{line}; {known}"


def _rules(console: Console, result: dict[str, Any]) -> None:
    """The pairs of each rule of equivalence, one line each; `eagle` are those that differ by its bounds."""
    totals: dict[str, tuple[int, Counter[str], int, int]] = {}
    for row in result["rules"]:
        apis, verdicts, eagle, bugs = totals.get(row["rule"], (0, Counter(), 0, 0))
        totals[row["rule"]] = (
            apis + bool(row["api"]),
            verdicts + Counter(row["head"]),
            eagle + row["eagle"],
            bugs + bool(row["bugs"]),
        )
    if not totals:
        return
    table = Table("  rule", "APIs", "pairs", "eagle", "bugs", "verdicts", box=None, pad_edge=False)
    for rule, (apis, verdicts, eagle, bugs) in sorted(totals.items()):
        counts = ", ".join(f"{pairs} {verdict}" for verdict, pairs in sorted(verdicts.items()))
        table.add_row(f"  {escape(rule)}", str(apis), str(verdicts.total()), str(eagle), str(bugs), counts)
    console.print(table)


def _groups(console: Console, result: dict[str, Any]) -> None:
    groups = [group for group in result["groups"] if group["classification"] != "fixed"]
    for group in groups[:_SHOWN]:
        classification = (
            "failing"
            if group["classification"] == "inconclusive" and not result["base"]
            else group["classification"]
        )
        case = group["example"]["case"][:_DIGITS]
        console.print(
            f"  {group['cases']:4}  {classification.replace('_', ' '):15} {case}  {escape(group['title'])}"
        )
    if len(groups) > _SHOWN:
        console.print(f"        and {len(groups) - _SHOWN} more groups")
