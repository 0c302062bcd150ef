"""Reducing: make failing cases small, see that the small ones show the same at head and base, sign by them.

Regressions come first, one of each kind before others of it. What was broken already is reduced only while
the step has taken less than the campaign's budget, and only if no earlier reduction of it holds. A case that
cannot be reduced is reported as it is, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bot.campaigns import choosing
from bot.campaigns.attend import attend
from bot.campaigns.context import Context
from bot.campaigns.reducing import Reducing
from bot.campaigns.reductions import traits_from_json
from bot.campaigns.registry import step
from bot.campaigns.services import Signature
from bot.campaigns.shards import places
from bot.campaigns.signing import Known, behind, keys_of, suspects
from bot.store import bugs, findings, outcomes
from bot.store.campaigns import chunks
from bot.store.models import Bug, CampaignState, Standing
from fuzzing.triage.traits import Traits

#: Ids of one call of `fuzzing.triage.describe`; a command line holds 2 MiB on Linux, an id 65 bytes.
DESCRIBE = 1000


@step(CampaignState.REDUCING, to=(CampaignState.REPORTING,))
def reduce(context: Context) -> None:
    """Reads the findings; writes reductions as they come, then the findings with their bugs."""
    config, head, base = places(context)
    with context.reading() as (session, campaign):
        found = {row.case_id: row for row in findings.copies(session, campaign.id)}
        there = _known(bugs.of_target(session, campaign.target))
    work = Reducing(context, config, head, base, found)
    if config.reduction.cases:
        work.reduce(choosing.wanted(found.values(), work.size))
        work.reduce(work.settle())  # what was met on the way and is new
        work.settle()
    _sign(context, work, there)
    with context.transaction() as (session, campaign):
        findings.replace(session, campaign.id, work.found.values())
        context.move(campaign, CampaignState.REPORTING)


def _known(target: Iterable[Bug]) -> list[Known]:
    """The bugs that are known by a reduced case, whose signature says what they need."""
    return [Known(one.signature, one.facts["signature"]) for one in target if "signature" in one.facts]


def _sign(context: Context, work: Reducing, there: list[Known]) -> None:
    """Gives each finding the key of the bug it belongs to."""
    reduced = {
        case: work.sign(case, examined.head, work.small[case].traits)
        for case, examined in work.adopted.items()
    }
    keys = dict(zip(reduced, keys_of(list(reduced.values()), there), strict=True))
    for case, key in keys.items():
        work.found[case].signature, work.found[case].reduced = key, work.small[case].case
    _join(
        context,
        work,
        there,
        [(work.found[case].standing, Known(keys[case], reduced[case].fields)) for case in keys],
    )
    for case, why in work.why.items():
        row = work.found[case]
        row.reason = f"{row.reason}; not reduced: {why}"


def _join(context: Context, work: Reducing, there: list[Known], here: list[tuple[str, Known]]) -> None:
    """Findings that were not reduced join the bug that is behind them, if one is known."""
    raw = dict(_raw(work))
    may = {
        case: [*there, *(one for standing, one in here if standing == work.found[case].standing)]
        for case in raw
    }
    asked = [case for case, signature in raw.items() if suspects(signature, may[case])]
    traits = _traits(context, asked)
    for case in asked:
        key = behind(raw[case], traits[case], may[case])
        work.found[case].signature = key or work.found[case].signature


def _raw(work: Reducing) -> Iterator[tuple[str, Signature]]:
    """The signatures of the findings whose cases were not reduced."""
    for case, row in work.found.items():
        if row.reduced or Standing(row.standing) is Standing.SUPPORT_LOST:
            continue
        place = work.base if Standing(row.standing) is Standing.FIXED else work.head
        assert place is not None
        with work.context.reading() as (session, _):
            outcome = outcomes.get(session, case, place.key)
        assert outcome is not None
        yield case, work.sign(case, outcome)


def _traits(context: Context, cases: list[str]) -> dict[str, Traits]:
    """What the programs of these cases show."""
    found: dict[str, Traits] = {}
    run_tool = context.services.run_tool
    for chunk in chunks(cases, DESCRIBE):
        arguments = ["--corpus", str(context.corpus), "--traits", *chunk]
        sink = _Traits(found)
        attend(
            context, lambda *ends, given=arguments: run_tool("fuzzing.triage.describe", given, *ends), sink
        )
    return found


class _Traits:
    """Collects what `describe` tells of programs."""

    def __init__(self, found: dict[str, Traits]) -> None:
        self._found = found

    def add(self, event: dict[str, Any]) -> None:
        """Takes one program's."""
        self._found[str(event["id"])] = traits_from_json(event["traits"])

    def tick(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """Nothing is written."""
