"""Choosing: which failing cases are made small, and in which order. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from bot.campaigns.judging import NO_BASE
from bot.store.models import Finding, Standing

#: Whose cases are worth it, the most wanted first. Where there is no base, what is unjudged is all there is.
_ORDER = (Standing.REGRESSION, Standing.UNJUDGED, Standing.ALREADY_BROKEN)


def wanted(findings: Iterable[Finding], size: Callable[[str], int]) -> list[Finding]:
    """The findings to be reduced, in order: what is new first, and of each kind of failure one before others.

    Kinds are told apart by the signatures that findings have before they are reduced. The smallest program of
    a kind goes first: it costs least. Of what was broken already one of a kind is enough.

    size  case id → bytes of its program
    """
    by_standing: dict[Standing, list[Finding]] = {standing: [] for standing in _ORDER}
    for one in findings:
        if reducible(one):
            by_standing[Standing(one.standing)].append(one)
    chosen: list[Finding] = []
    for standing, rows in by_standing.items():
        rows.sort(key=lambda one: (size(one.case_id), one.case_id))
        firsts = list(_firsts(rows))
        rest = [one for one in rows if one not in firsts]
        chosen += firsts + (rest if standing is not Standing.ALREADY_BROKEN else [])
    return chosen


def reducible(finding: Finding) -> bool:
    """Whether a finding is sure enough to be reduced, and about head."""
    standing = Standing(finding.standing)
    return standing in _ORDER and (standing is not Standing.UNJUDGED or finding.reason == NO_BASE)


def _firsts(rows: Iterable[Finding]) -> Iterator[Finding]:
    seen: set[str] = set()
    for one in rows:
        if one.signature not in seen:
            seen.add(one.signature)
            yield one
