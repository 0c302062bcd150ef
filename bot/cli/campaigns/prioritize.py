"""Show the order in which cases would run, and why."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from bot.campaigns.plan.case_source import CaseSource
from bot.campaigns.plan.catalog import CorpusCases, SourceCatalog
from bot.campaigns.plan.collection import Collector, missing
from bot.campaigns.plan.ranking import (
    CaseOrder,
    Change,
    Ranking,
    RankingInput,
    merge_order,
    resolve_frontends,
)
from bot.campaigns.provenance import origin
from bot.cli.common.case_lookup import open_corpus
from bot.cli.common.console import stdout
from bot.cli.common.options import program_kinds, select_configuration, selection_options
from bot.cli.common.progress import StatusLine
from bot.config import RepositoryConfig
from bot.errors import InfrastructureError, UsageError
from bot.github.changes import read_local_change, resolve_range
from bot.github.diffs import parse_unified_diff
from bot.reports.plan_summary import describe_ranking
from bot.runners import run_tool
from bot.settings import Settings, load_settings
from bot.terminal import echo
from bot.verdict_cache import read_past_verdicts

#: Ten times the diff between two releases of a compiler.
_MAX_DIFF_BYTES = 64 << 20


@click.command()
@selection_options
@click.option(
    "--diff",
    type=click.Path(path_type=Path, dir_okay=False, exists=True, allow_dash=True),
    help="The change: a unified diff or JSON; - reads standard input.",
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Repository of --range. [default: the current folder]",
)
@click.option("--range", "commits", metavar="BASE..HEAD", help="The change: two commits of --repo.")
@click.option(
    "--coverage",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Covered lines of each case, for the strategies coverage-total and coverage-additional.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an option of the strategy, such as fast.shingles=tokens; may be repeated.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the strategy.")
@click.option("--top", default=20, show_default=True, type=click.IntRange(0), help="Number of cases to show.")
@click.option("--explain", is_flag=True, help="Show the reason for each case's rank.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    backend: str,
    frontend: str | None,
    sources: tuple[str, ...],
    cases: Path | None,
    strategy: str | None,
    diff: Path | None,
    repo: Path | None,
    commits: str | None,
    coverage: Path | None,
    options: tuple[str, ...],
    seed: int,
    top: int,
    explain: bool,
    as_json: bool,
) -> None:
    """Show the order in which cases would run, and why.

    Ranks the cases of `assay run` without running them. Sources are collected first if necessary. Results of
    earlier runs on the backend are the history.
    """
    if diff and (commits or repo):
        raise UsageError("--diff and --range exclude each other; keep one")
    if repo and not commits:
        raise UsageError("--repo needs --range BASE..HEAD, such as HEAD~1..HEAD")
    config = select_configuration(backend, frontend, sources, cases, strategy)
    change = _change(diff, repo, commits)
    settings = load_settings()
    corpus = open_corpus(cases) if cases else settings.data_dir / "corpus"
    with StatusLine() as line:
        found = _cases(config, settings, cases and corpus, line)
        question = RankingInput(
            strategy=config.strategy or "",
            backend=config.backend,
            frontends=resolve_frontends(config.backend, config.frontend, config.sources),
            seed=seed,
            cases=found,
            corpus=corpus,
            change=change,
            past={one.case: one for one in read_past_verdicts(settings.data_dir, config.backend)},
            coverage=coverage,
            options=options,
        )
        ranked = _rank(question, top, explain, line)
    if as_json:
        echo(json.dumps(ranked.to_json()))
    else:
        _show(ranked, explain)


def _change(diff: Path | None, repo: Path | None, commits: str | None) -> Change | None:
    """The change, if one was given."""
    if commits:
        folder = repo or Path.cwd()
        return Change(read_local_change(folder, *resolve_range(folder, commits)))
    if diff is None:
        return None
    with click.open_file(str(diff), encoding="utf-8", errors="replace") as file:
        text = file.read(_MAX_DIFF_BYTES + 1)
    if len(text) > _MAX_DIFF_BYTES:
        raise UsageError(f"--diff {diff}: larger than {_MAX_DIFF_BYTES >> 20} MiB; give a smaller diff")
    return Change(_from_json(diff, text) if text.lstrip().startswith("{") else parse_unified_diff(text))


def _from_json(path: Path, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
        return {name: content[name] for name in ("base", "head", "files", "truncated")}
    except (ValueError, KeyError) as error:
        raise UsageError(f"--diff {path} is not a change as JSON: {error!r}; give a unified diff") from None


def _cases(
    config: RepositoryConfig, settings: Settings, folder: Path | None, line: StatusLine
) -> list[CaseSource]:
    """The cases to rank; collects sources first."""
    if folder is not None:
        return [CorpusCases(folder, program_kinds(config))]
    corpus = settings.data_dir / "corpus"
    if not config.sources:
        raise UsageError(
            f"no source has cases for {config.frontend or config.backend}; name some with --source"
        )
    cases: list[CaseSource] = [SourceCatalog(corpus, source) for source in config.sources]
    collector = Collector(corpus, run_tool, settings.workers, monotonic)
    collector.collect(missing(cases), None, line.note, threading.Event())
    for account in collector.accounts(cases):
        if account.failed:
            line.print_line(f"{account.source} collection failed: {account.failed}")
    return cases


@dataclass
class _RankedCases:
    """A ranking and its first cases.

    top  one mapping for each: rank, id, operator, test, source, why
    """

    ranking: Ranking
    cases: int = 0
    seconds: float = 0.0
    top: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        ranking = {
            name: value for name, value in self.ranking.to_json().items() if name not in ("asked", "failed")
        }
        return ranking | {"cases": self.cases, "seconds": self.seconds, "top": self.top}


def _rank(question: RankingInput, top: int, explain: bool, line: StatusLine) -> _RankedCases:
    reasons: dict[str, Mapping[str, Any]] = {}
    with CaseOrder() as order, question.arguments() as (words, ranking):
        ranked = _RankedCases(ranking)

        def take(event: dict[str, Any]) -> None:
            order.add(event)
            if event.get("event") == "end":
                ranked.seconds = float(event["seconds"])
            elif "id" in event and "why" in event and len(reasons) < top:
                reasons[event["id"]] = event["why"]

        line.show(f"ranking by {ranking.strategy}")
        run_tool("fuzzing.prioritize", [*words, *(["--explain"] if explain else [])], take)
        if not order.ended:
            raise InfrastructureError("the ranking ended without an end event; see its log")
        for rank, case_id in enumerate(merge_order(order.ids(), question.cases), 1):
            ranked.cases = rank
            if rank <= top:
                place = {"rank": rank, "id": case_id, **_provenance(question.corpus, case_id)}
                ranked.top.append(place | ({"why": reasons.get(case_id, {})} if explain else {}))
    return ranked


def _provenance(corpus: Path, case_id: str) -> dict[str, str]:
    found = origin(corpus, case_id)
    return {"operator": found.operator, "test": found.test, "source": found.source}


def _show(ranked: _RankedCases, explain: bool) -> None:
    console = stdout()
    table = Table("rank", "case", "operator", "why" if explain else "test", box=None, pad_edge=False)
    table.columns[0].justify = "right"
    for place in ranked.top:
        last = _reason(place["why"]) if explain else str(place["test"])
        table.add_row(str(place["rank"]), place["id"][:12], escape(place["operator"]), escape(last))
    console.print(table)
    if len(ranked.top) < ranked.cases:
        console.print(f"and {ranked.cases - len(ranked.top):,} more; use --top to show them")
    console.print(
        escape(f"{ranked.cases:,} cases ranked in {ranked.seconds:.1f} s. {describe_ranking(ranked.ranking)}")
    )


def _reason(why: Mapping[str, Any]) -> str:
    """A strategy's reasons in one line: changed code, past failures, then other values."""
    touched = why.get("touched") or []
    texts = [touched] if isinstance(touched, str) else _shorten(list(map(str, touched)), 2)
    past = why.get("history")
    if isinstance(past, Mapping) and past.get("runs"):
        texts.append(_past(past))
    others = {name: value for name, value in why.items() if name not in ("touched", "history")}
    return "; ".join([*texts, *_pairs(others)])


def _past(past: Mapping[str, Any]) -> str:
    """Past failures of a case."""
    days = past.get("last_finding_days")
    last = "" if days is None else f", last {days:.0f} days ago"
    return f"failed {past.get('findings', 0)} of {past['runs']} times{last}"


def _pairs(values: Mapping[str, Any]) -> list[str]:
    """Names with their values; true values by name alone, empty ones left out."""
    return [name if value is True else f"{name} {_value(value)}" for name, value in values.items() if value]


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, Mapping):
        return ", ".join(_pairs(value))
    return ", ".join(_shorten(list(map(_value, value)), 4)) if isinstance(value, list) else str(value)


def _shorten(texts: list[str], count: int) -> list[str]:
    return texts[:count] + [f"and {len(texts) - count} more"] * (len(texts) > count)
