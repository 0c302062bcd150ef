"""Reports of campaigns: files, drafts of effects, and reproducers to try."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.campaigns.report.summary import FindingFacts, ReducedFacts, Summary, ToolchainFacts
from bot.campaigns.services import Script
from bot.config import RepositoryConfig
from bot.reports import pull, renderer
from bot.reports.campaign_view import (
    CampaignView,
    FindingView,
    ReducedView,
    Tally,
    ToolchainView,
    VerdictCount,
)
from bot.reports.reference_outputs import add_reference_outputs
from bot.reports.report import Group, Report, build_report
from bot.reports.reproducer import checkout_commands
from bot.reports.reproducer_short import ending
from bot.reports.templates import pluralize
from bot.store import Session, now
from bot.store.models import Classification, Side
from bot.store.outbox import EffectDraft
from fuzzing.cases import Corpus, TestCase


class CampaignReports:
    """Renders the reports of campaigns.

    corpus       folder of their cases
    folder       campaign's id → folder of its artifacts
    page         campaign's id → URL of its report, "" if it has none
    upload       called with a campaign's id when its files are written
    write_pages  False writes only report.json and tries no reproducers
    """

    def __init__(
        self,
        corpus: Path,
        folder: Callable[[int], Path],
        clock: Callable[[], datetime] = now,
        page: Callable[[int], str] = lambda _: "",
        *,
        upload: Callable[[int], None] = lambda _: None,
        write_pages: bool = True,
    ) -> None:
        self._page = page
        self._write_pages = write_pages
        self._corpus = Corpus(corpus)
        self._folder, self._upload = folder, upload
        self.clock = clock

    def write(self, summary: Summary) -> None:
        """Writes report.md, .html, .json and the reproducers; idempotent."""
        write = renderer.write_artifacts if self._write_pages else renderer.write_json
        write(self.report(summary), self._folder(summary.campaign_id))
        self._upload(summary.campaign_id)

    def draft_effects(
        self, session: Session, report: Report, config: RepositoryConfig, at: datetime
    ) -> tuple[list[EffectDraft], pull.CommentDecision | None]:
        """The effects about a campaign: check run, and issues or the pull request's comment.

        Of a pull request also the decision about the comment.
        """
        page = self._page(report.view.campaign)
        if report.view.pull is None:
            return renderer.draft_effects(report, config, page), None
        check, comment = pull.draft_effects(session, report, config, at, page)
        return [check, *([comment.draft] if comment.draft else [])], comment

    def scripts(self, summary: Summary) -> list[list[Script]]:
        """The reproducers of reported groups: of the reduced case, then of the original case."""
        if not self._write_pages:
            return []
        report = self.report(replace(summary, tried={}))
        found = {one.case_id: replace(one, reduced=None) for one in summary.findings}
        made = []
        for group in report.groups:
            if group.classification in _TRIED and group.script:
                scripts = [_script(group)]
                if group.original_case != group.example.case:
                    alone = self.report(replace(summary, tried={}, findings=(found[group.original_case],)))
                    scripts += [_script(one) for one in alone.groups if one.script]
                made.append(scripts)
        return made

    def report(self, summary: Summary) -> Report:
        """The report of a campaign, ready to render."""
        programs = {one.case_id: one.program for one in summary.findings}
        programs |= {one.reduced.case_id: one.reduced.program for one in summary.findings if one.reduced}
        return build_report(
            build_view(summary), self._corpus.get, lambda _ids: programs, self._add_reference_outputs
        )

    def _add_reference_outputs(self, case: TestCase) -> TestCase:
        return add_reference_outputs(case, self._corpus.root)


def _script(group: Group) -> Script:
    assert group.example.head is not None
    case, end = group.example.case, ending(group.example.head)
    if group.guarded:
        return Script(case, group.guarded, group.script, end)
    return Script(case, "", group.script, end) if group.is_short else Script(case, group.script)


#: Classifications whose reproducers are tried: regressions; without a base all failures.
_TRIED = frozenset({Classification.REGRESSION, Classification.INCONCLUSIVE})


def build_view(summary: Summary) -> CampaignView:
    """The view of a campaign's summary."""
    commits = {Side.HEAD: summary.head, Side.BASE: summary.base}
    toolchains = {
        side: _toolchain(facts, checkout_commands(summary.target, commits[side], facts.overlay))
        for side, facts in summary.toolchains.items()
    }
    head = summary.toolchains.get(Side.HEAD)
    return CampaignView(
        target=summary.target,
        stable_name=summary.stable_name,
        campaign=summary.campaign_id,
        head=summary.head,
        base=summary.base,
        ref=summary.ref,
        trigger=summary.trigger,
        pull=summary.pull,
        seed=summary.seed,
        backend=head.backend if head else str(summary.config.get("backend", "")),
        device=str(summary.config.get("device", "")),
        head_toolchain=toolchains.get(Side.HEAD),
        base_toolchain=toolchains.get(Side.BASE),
        planned=summary.planned,
        counts=list(_counts(summary)),
        rules=summary.rules,
        eagle=summary.eagle,
        findings=map(_finding, summary.findings),
        stopped="budget" if summary.not_run else "",
        skipped=summary.skipped,
        library=", ".join(summary.libraries),
        sources=summary.sources,
        ranking=summary.ranking,
        durations=summary.seconds,
        phases=summary.phases,
        cached=summary.cached,
        costs=summary.costs,
        tried=summary.tried,
        short_failed=summary.short_failed,
        noise=Tally(*summary.noise),
        configuration=summary.configuration,
        config=summary.config,
        note=summary.note,
        started_at=summary.created_at,
    )


def _counts(summary: Summary) -> Iterator[VerdictCount]:
    for operator, sides in summary.operators.items():
        for side, tally in sides.items():
            for verdict, cases in tally.items():
                yield VerdictCount(side, operator, verdict, cases)


def _toolchain(facts: ToolchainFacts, sources: str) -> ToolchainView:
    versions = {name: version for name, version in facts.versions.items() if name != "python"}
    machine = f"{platform.system()} {platform.machine()}"
    python = facts.versions.get("python", "")
    return ToolchainView(facts.label, versions, facts.requirements, python, machine, sources)


def _finding(facts: FindingFacts) -> FindingView:
    return FindingView(
        case=facts.case_id,
        test=facts.origin.test,
        operator=facts.origin.operator,
        classification=facts.classification,
        head=facts.head,
        base=facts.base,
        head_runs=Tally(facts.head_failed, facts.head_runs),
        base_runs=Tally(facts.base_failed, facts.base_runs),
        signature=facts.signature,
        title=facts.title,
        size=facts.origin.size,
        reason=facts.reason,
        reduced=_reduced(facts.reduced) if facts.reduced else None,
        found_by_reduction=facts.found_by_reduction,
        rules=facts.origin.rules,
    )


def _reduced(facts: ReducedFacts) -> ReducedView:
    return ReducedView(
        case=facts.case_id,
        head=facts.head,
        base=facts.base,
        head_runs=Tally(facts.head_failed, facts.head_runs),
        base_runs=Tally(facts.base_failed, facts.base_runs),
        size=facts.size,
        history=describe_reduction(facts.history),
        minimal=bool(facts.history.get("minimal", True)),
    )


def describe_reduction(end: Mapping[str, Any]) -> str:
    """How a case was reduced, in a line such as "50 → 2 operators, 120 → 4 edges used in 44 runs".

    end   the last event of `fuzzing.reduce`; names up to three counts that changed
    """
    counts = zip(end.get("words", ()), end.get("before", ()), end.get("after", ()), strict=False)
    changed = [f"{before:g} → {after:g} {word}" for word, before, after in counts if before != after]
    counted = ", ".join(changed[:3]) or "same size, simpler values"
    runs = int(end.get("runs", 0)) + int(end.get("replayed", 0))
    ending = "" if end.get("minimal", True) else "; stopped at the budget, may not be minimal"
    return f"{counted} in {pluralize(runs, 'run')}{ending}"
