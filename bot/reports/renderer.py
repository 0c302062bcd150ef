"""A report as files, and as effects on GitHub."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from bot.reports.campaign_view import Tally, ToolchainView
from bot.reports.check_runs import CHECK_RUN, CheckRunOptions, build_check_run, check_run_key_of
from bot.reports.issue import collapse_blank_lines, issue_body, issue_key, issue_labels, issue_title
from bot.reports.report import Group, Report
from bot.reports.search_chart import build_curves, build_tree
from bot.reports.sections import context, sections
from bot.reports.templates import render
from bot.reports.text import clean
from bot.reports.verdict_chart import build_chart
from bot.store.models import Classification, Side
from bot.store.outbox import ISSUE, EffectDraft
from bot.store.step_cost import StepCost
from fuzzing.outcomes import Phase, Verdict

FORMAT = 2  # of report.json
HELD_REASON = "reports.mode is held: each report waits for a maintainer's approval"


class ReportsPolicy(Protocol):
    """`reports:` of a repository's configuration."""

    @property
    def mode(self) -> str:
        """`dry-run`, `held` or `auto`."""

    @property
    def labels(self) -> Sequence[str]:
        """Of issues."""


class Config(Protocol):
    """The part of a repository's configuration that affects effects."""

    @property
    def reports(self) -> ReportsPolicy:
        """Its `reports` section."""


def draft_effects(report: Report, config: Config, page: str = "") -> list[EffectDraft]:
    """The check run, then one issue for each new bug of a branch; in held mode the issues wait.

    `page` is the URL of the report, "" for none.
    """
    view = report.view
    hold = HELD_REASON if config.reports.mode == "held" else ""
    run = build_check_run(report, CheckRunOptions(page=page, held=bool(hold)))
    drafts = [EffectDraft(CHECK_RUN, check_run_key_of(view), view.target, run)]
    for group in report.with_classification(Classification.REGRESSION) if view.pull is None else ():
        payload = {
            "title": issue_title(group),
            "body": issue_body(report, group),
            "labels": issue_labels(report, group, config.reports.labels),
        }
        key = issue_key(view.stable_name, group.signature)
        drafts.append(EffectDraft(ISSUE, key, view.target, payload, group.signature, hold))
    return drafts


def write_artifacts(report: Report, folder: Path) -> tuple[Path, ...]:
    """Writes report.md, report.html, report.json and reproducers/; returns their paths, without stored cases.

    Idempotent; each file is written atomically.
    """
    write_json(report, folder)
    files = {"report.md": markdown(report), "report.html": html(report)}
    for group in report.groups:
        if group.script or group.replay_instructions:
            files[f"reproducers/{group.filename}"] = group.script or group.replay_instructions
        if group.guarded:
            files[f"reproducers/{group.guarded_filename}"] = group.guarded
        for name, data in group.kept.items():
            _write(folder / "reproducers" / group.folder / name, data)
        if group.classification is Classification.REGRESSION:
            text = f"# {issue_title(group)}\n\n{issue_body(report, group)}"
            files[f"reproducers/{group.signature}.md"] = text
    for name, text in files.items():
        _write(folder / name, text)
    return tuple(folder / name for name in ("report.json", *files))


def write_json(report: Report, folder: Path) -> None:
    """Writes report.json alone."""
    serialized = json.dumps(_clean_strings(as_json(report)), indent=1, ensure_ascii=False, allow_nan=False)
    _write(folder / "report.json", serialized + "\n")


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(content if isinstance(content, bytes) else content.encode(errors="replace"))
    part.replace(path)


def markdown(report: Report) -> str:
    """The report as Markdown."""
    return collapse_blank_lines(render("reports/report.md.j2", **context(report)))


def html(report: Report) -> str:
    """The report as one self-contained page."""
    searches = [
        (source.source, curves, build_tree(source.search))
        for source in report.view.sources
        if (curves := build_curves(source.search)) is not None
    ]
    return render("reports/report.html.j2", **context(report), picture=build_chart(report), searches=searches)


def as_json(report: Report) -> dict[str, Any]:
    """The report as JSON; docs/reports.md describes it."""
    view = report.view
    return {
        "format": FORMAT,
        "target": view.target,
        "campaign": view.campaign,
        "head": view.head,
        "base": view.base,
        "ref": view.ref,
        "trigger": view.trigger,
        "seed": view.seed,
        "backend": view.backend,
        "device": view.device,
        "headline": report.headline,
        "toolchains": {"head": _toolchain(view.head_toolchain), "base": _toolchain(view.base_toolchain)},
        "note": view.note,
        "library": view.library,
        "cases": {"planned": view.planned, "run": report.cases_run(), "not_run": report.not_run},
        "stopped": view.stopped,
        "verdicts": {
            side.value: {verdict.value: cases for verdict, cases in report.verdicts(side).items()}
            for side in Side
        },
        "sections": {section.name: section.count for section in sections(report)},
        "groups": [_group(group) for group in report.groups],
        "operators": [
            {
                "operator": row.operator,
                "head": _by_value(row.head),
                "base": _by_value(row.base),
                "findings": _by_value(row.standings),
            }
            for row in report.operators
        ],
        "rules": [
            {
                "rule": row.rule,
                "api": row.api,
                "head": _by_value(row.verdicts),
                "eagle": row.eagle,
                "bugs": list(row.bugs),
            }
            for row in report.rules
        ],
        "skipped": dict(view.skipped),
        "sources": [account.to_json() for account in view.sources],
        "ranking": view.ranking.to_json() if view.ranking else None,
        "durations": dict(view.durations),
        "phases": {side.value: _by_phase(phases) for side, phases in view.phases.items()},
        "noise": {"differed": view.noise.failed, "runs": view.noise.runs},
        "cached": {side.value: cases for side, cases in view.cached.items()},
        "work": {step: _work(costs) for step, costs in view.costs.items()},
        "configuration": view.configuration,
        "config": dict(view.config),
    }


def _clean_strings(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(name)): _clean_strings(item) for name, item in value.items()}
    return [_clean_strings(item) for item in value] if isinstance(value, list | tuple) else value


def _by_value(counts: Mapping[Any, int]) -> dict[str, int]:
    return {name.value: number for name, number in counts.items()}


def _by_phase(phases: Mapping[Phase, Mapping[Verdict, int]]) -> dict[str, dict[str, int]]:
    return {phase.value: _by_value(verdicts) for phase, verdicts in phases.items()}


def _work(costs: StepCost) -> dict[str, Any]:
    """The cost of a step's shards, with cases per second and overhead; None if nothing ran."""
    return costs.to_json() | {"rate": _rounded(costs.rate), "overhead": _rounded(costs.overhead)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _toolchain(toolchain: ToolchainView | None) -> dict[str, Any] | None:
    if toolchain is None:
        return None
    return {
        "label": toolchain.label,
        "versions": dict(toolchain.versions),
        "requirements": list(toolchain.requirements),
        "sources": toolchain.sources,
        "python": toolchain.python,
        "platform": toolchain.platform,
    }


def _group(group: Group) -> dict[str, Any]:
    example = group.example
    return {
        "signature": group.signature,
        "title": group.title,
        "classification": group.classification.value,
        "cases": group.cases,
        "reproducer": f"reproducers/{group.filename}" if group.script or group.replay_instructions else None,
        "guarded": f"reproducers/{group.guarded_filename}" if group.guarded else None,
        "replay": group.replay or None,
        "tried": group.tried,
        "example": {
            "case": example.case,
            "test": example.test,
            "operator": example.operator,
            "head": example.head.to_json() if example.head else None,
            "base": example.base.to_json() if example.base else None,
            "reason": example.reason,
        },
        "reduction": {"from": group.original_case, "history": group.history} if group.history else None,
        "shown": [
            {
                "case": row.case,
                "test": row.test,
                "operator": row.operator,
                "head": _tally(row.head_runs),
                "base": _tally(row.base_runs),
            }
            for row in group.shown
        ],
    }


def _tally(tally: Tally) -> dict[str, int]:
    return {"failed": tally.failed, "runs": tally.runs}
