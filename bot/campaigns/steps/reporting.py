"""Reporting: gathers the summary and publishes it, in the transaction that ends the campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from bot.campaigns.context import Context
from bot.campaigns.reduce import program_text
from bot.campaigns.registry import step
from bot.campaigns.report.gather import gather
from bot.campaigns.report.summary import NO_TEXT, FindingFacts, ProgramText, Summary
from bot.campaigns.run.shards import find_environment
from bot.campaigns.run_with_lease import run_with_lease
from bot.campaigns.services import Config, Script
from bot.runners.reproducer_run import Ending
from bot.store import outcomes
from bot.store.campaigns import Session
from bot.store.models import Campaign, CampaignState, Classification, Side

#: Most reproducers tried by one campaign; each imports the compiler twice.
MAX_SCRIPTS = 10
#: The exit code of a reproducer that shows its bug.
BUG_SHOWN = 1


@step(CampaignState.REPORTING, to=(CampaignState.DONE,))
def report(context: Context) -> None:
    """Reads all rows; writes artifacts, then bugs and effects with the end of the campaign."""
    summary = _with_reproducer_results(context, _with_program_texts(context, gather(context)))
    context.services.reports.write(summary)
    with context.transaction() as (session, campaign):
        context.services.reports.publish(session, summary)
        _forget_infrastructure_outcomes(session, campaign, context.config(campaign), summary)
        context.move(campaign, CampaignState.DONE)
    ran = summary.planned - summary.not_run
    context.progress(ran, summary.planned, f"{len(summary.findings)} findings in {ran} cases")


def _forget_infrastructure_outcomes(
    session: Session, campaign: Campaign, config: Config, summary: Summary
) -> None:
    """Deletes outcomes that are infrastructure failures: the next campaign runs those cases again."""
    head = find_environment(session, campaign, config, Side.HEAD)
    if head is not None:
        cases = [one.case_id for one in summary.classification(Classification.INFRASTRUCTURE)]
        outcomes.delete_outcomes(session, campaign.id, head.key, cases)


def _with_program_texts(context: Context, summary: Summary) -> Summary:
    """Adds the programs as text: of the smallest finding of each signature, and of reduced cases."""
    program_texts = program_text.program_texts(context, _cases_to_show(summary))
    return replace(summary, findings=tuple(_with_texts(one, program_texts) for one in summary.findings))


def _with_texts(one: FindingFacts, texts: Mapping[str, ProgramText]) -> FindingFacts:
    reduced = one.reduced
    if reduced is not None:
        reduced = replace(reduced, program=texts.get(reduced.case_id, NO_TEXT))
    return replace(one, program=texts.get(one.case_id, NO_TEXT), reduced=reduced)


def _with_reproducer_results(context: Context, summary: Summary) -> Summary:
    """Adds the exit codes of the reproducers; none is tried for a campaign that is to end early."""
    python = summary.toolchains[Side.HEAD].python
    tried: dict[str, int] = {}
    short_failed: set[str] = set()
    chosen = context.services.reports.scripts(summary)
    for at, scripts in enumerate(chosen[:MAX_SCRIPTS]):
        if context.end_early.is_set():
            break
        context.progress(
            at, len(chosen[:MAX_SCRIPTS]), f"trying reproducer {at + 1} of {len(chosen[:MAX_SCRIPTS])}"
        )
        for script in scripts:
            arguments = (script.text, python) if script.text else (script.short, python, script.ending)
            tried[script.case] = _run_script(context, *arguments)
            if tried[script.case] == BUG_SHOWN:
                if script.text and script.short and not _short_shows(context, script, python):
                    short_failed.add(script.case)
                break
    return replace(summary, tried=tried, short_failed=frozenset(short_failed))


def _short_shows(context: Context, script: Script, python: str) -> bool:
    """Whether the short script shows the bug; a hang, which has no limit in it, is not tried."""
    return script.ending is None or _run_script(context, script.short, python, script.ending) == BUG_SHOWN


def _run_script(context: Context, *arguments: str | Ending | None) -> int:
    return run_with_lease(context, lambda *_: context.services.try_script(*arguments))


def _cases_to_show(summary: Summary) -> Iterator[str]:
    """Cases whose programs are shown: reduced ones, and the smallest of each kind of finding."""
    smallest: dict[tuple[Classification, str], FindingFacts] = {}
    for one in sorted(summary.findings, key=lambda one: (one.origin.size, one.origin.test, one.case_id)):
        smallest.setdefault((one.classification, one.signature), one)
        if one.reduced is not None:
            yield one.reduced.case_id
    yield from (one.case_id for one in smallest.values())
