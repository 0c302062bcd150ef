"""Reporting: gather what the rows say and hand it on, in the transaction that ends the campaign."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bot.campaigns.attend import attend
from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.summary import FindingFacts, Summary, gather
from bot.store.campaigns import chunks
from bot.store.models import CampaignState, Standing

#: Ids of one call of `fuzzing.triage.describe`; a command line holds 2 MiB on Linux, an id 65 bytes.
DESCRIBE = 1000


@step(CampaignState.REPORTING, to=(CampaignState.DONE,))
def report(context: Context) -> None:
    """Reads everything; writes artifacts, then bugs and effects together with the campaign's end."""
    summary = _described(context, gather(context))
    context.services.reports.write(summary)
    with context.transaction() as (session, campaign):
        context.services.reports.publish(session, summary)
        context.move(campaign, CampaignState.DONE)
    ran = summary.planned - summary.not_run
    context.progress(ran, summary.planned, f"{len(summary.findings)} findings in {ran} cases")


def _described(context: Context, summary: Summary) -> Summary:
    """The summary with the program's text in the smallest finding of each signature, and what it became."""
    texts = _Texts()
    for chunk in chunks(dict.fromkeys(_shown(summary)), DESCRIBE):
        _describe(context, chunk, texts)
    return replace(summary, findings=tuple(texts.put(one) for one in summary.findings))


def _shown(summary: Summary) -> Iterator[str]:
    """The cases whose programs are shown: reduced ones, and of each kind of finding the smallest."""
    smallest: dict[tuple[Standing, str], FindingFacts] = {}
    for one in sorted(summary.findings, key=lambda one: (one.origin.size, one.origin.test, one.case_id)):
        smallest.setdefault((one.standing, one.signature), one)
        if one.reduced is not None:
            yield one.reduced.case_id
    yield from (one.case_id for one in smallest.values())


def _describe(context: Context, ids: list[str], texts: _Texts) -> None:
    arguments = ["--corpus", str(context.corpus), *ids]
    run_tool = context.services.run_tool
    attend(context, lambda *ends: run_tool("fuzzing.triage.describe", arguments, *ends), texts)


class _Texts:
    """Collects what `describe` prints."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    def add(self, event: dict[str, Any]) -> None:
        """Takes one program."""
        self.of[str(event["id"])] = str(event["program"])

    def put(self, one: FindingFacts) -> FindingFacts:
        """The finding with its programs' texts, as far as they were asked for."""
        reduced = one.reduced
        if reduced is not None:
            reduced = replace(reduced, program_text=self.of.get(reduced.case_id, ""))
        return replace(one, program_text=self.of.get(one.case_id, ""), reduced=reduced)

    def tick(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """Nothing is written."""
