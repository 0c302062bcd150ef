"""Reporting: gather what the rows say and hand it on, in the transaction that ends the campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from bot.campaigns import describing
from bot.campaigns.attend import attend
from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.services import Config, Script
from bot.campaigns.shards import place_of
from bot.campaigns.summary import FindingFacts, Summary, gather
from bot.store import outcomes
from bot.store.campaigns import Session
from bot.store.models import Campaign, CampaignState, Side, Standing

#: Reproducers that are tried, of one campaign: each costs the compiler's import twice.
SCRIPTS = 10
#: The exit code of a reproducer that shows its bug.
SHOWS = 1


@step(CampaignState.REPORTING, to=(CampaignState.DONE,))
def report(context: Context) -> None:
    """Reads everything; writes artifacts, then bugs and effects together with the campaign's end."""
    summary = _tried(context, _described(context, gather(context)))
    context.services.reports.write(summary)
    with context.transaction() as (session, campaign):
        context.services.reports.publish(session, summary)
        _forget(session, campaign, context.config(campaign), summary)
        context.move(campaign, CampaignState.DONE)
    ran = summary.planned - summary.not_run
    context.progress(ran, summary.planned, f"{len(summary.findings)} findings in {ran} cases")


def _forget(session: Session, campaign: Campaign, config: Config, summary: Summary) -> None:
    """What was the machine's doing is no verdict: the next campaign on the toolchain runs it anew."""
    head = place_of(session, campaign, config, Side.HEAD)
    if head is not None:
        cases = [one.case_id for one in summary.standing(Standing.INFRASTRUCTURE)]
        outcomes.forget(session, campaign.id, head.key, cases)


def _described(context: Context, summary: Summary) -> Summary:
    """The summary with the program's text in the smallest finding of each signature, and what it became."""
    texts = describing.texts(context, _shown(summary))
    return replace(summary, findings=tuple(_told(one, texts) for one in summary.findings))


def _told(one: FindingFacts, texts: Mapping[str, str]) -> FindingFacts:
    reduced = one.reduced
    if reduced is not None:
        reduced = replace(reduced, program_text=texts.get(reduced.case_id, ""))
    return replace(one, program_text=texts.get(one.case_id, ""), reduced=reduced)


def _tried(context: Context, summary: Summary) -> Summary:
    """The summary with the exit codes of its reproducers: what is offered has shown the bug once more."""
    python = summary.toolchains[Side.HEAD].python
    tried: dict[str, int] = {}
    chosen = context.services.reports.scripts(summary)
    for at, scripts in enumerate(chosen[:SCRIPTS]):
        context.progress(at, len(chosen[:SCRIPTS]), f"trying reproducer {at + 1} of {len(chosen[:SCRIPTS])}")
        for script in scripts:
            tried[script.case] = _try(context, script, python)
            if tried[script.case] == SHOWS:
                break
    return replace(summary, tried=tried)


def _try(context: Context, script: Script, python: str) -> int:
    return attend(context, lambda *_: context.services.try_script(script.text, python))


def _shown(summary: Summary) -> Iterator[str]:
    """The cases whose programs are shown: reduced ones, and of each kind of finding the smallest."""
    smallest: dict[tuple[Standing, str], FindingFacts] = {}
    for one in sorted(summary.findings, key=lambda one: (one.origin.size, one.origin.test, one.case_id)):
        smallest.setdefault((one.standing, one.signature), one)
        if one.reduced is not None:
            yield one.reduced.case_id
    yield from (one.case_id for one in smallest.values())
