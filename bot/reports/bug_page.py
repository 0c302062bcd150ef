"""The page of one bug, as one self-contained HTML file.

Output is deterministic: the page does not contain the current time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.reports.bug_plots import Plot, plots
from bot.reports.campaign_view import ToolchainView
from bot.reports.reproducer import pip_command
from bot.reports.templates import render
from bot.store.bug_details import BugSighting
from bot.store.models import AuditEvent, Bug, Proposal, Retest
from fuzzing.cases import TestCase
from fuzzing.outcomes import Outcome


@dataclass(frozen=True)
class Run:
    """The outcome of the bug's case on one toolchain."""

    label: str
    outcome: Outcome


@dataclass(frozen=True)
class BugFacts:
    """The facts of a bug.

    case        the smallest stored case, None if there is none; `reduced` if a reduction made it
    history     how it was reduced, in a line
    unreduced   why it was not reduced, "" if it was not tried
    toolchain   the one that `outcome` was made on
    runs        outcomes on all toolchains, the oldest first
    numbers     its outputs element by element: the events of `fuzzing.execute.output_values`
    comparison  rows of `fuzzing.execute.compiler_comparison`
    proposal    the regression test that was proposed for it
    """

    bug: Bug
    case: TestCase | None = None
    reduced: bool = False
    program: str = ""
    history: str = ""
    unreduced: str = ""
    outcome: Outcome | None = None
    toolchain: ToolchainView | None = None
    script: str = ""
    replay: str = ""
    runs: Sequence[Run] = ()
    numbers: Sequence[Mapping[str, Any]] = ()
    comparison: Sequence[Mapping[str, Any]] = ()
    sightings: Sequence[BugSighting] = ()
    retests: Sequence[Retest] = ()
    audit_events: Sequence[AuditEvent] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # toolchain → label, for retests
    proposal: Proposal | None = None


def page(facts: BugFacts) -> str:
    """The page."""
    outcome, toolchain, case = facts.outcome, facts.toolchain, facts.case
    pip = (
        pip_command(toolchain, outcome.backend, case.program.frontend)
        if toolchain and outcome and case
        else ""
    )
    pictures: list[Plot] = plots(facts.numbers)
    return render("bugs/bug.html.j2", facts=facts, bug=facts.bug, o=outcome, pip=pip, plots=pictures)


def summarize_bug(bug: Bug) -> dict[str, Any]:
    """A bug as JSON, for lists."""
    return {
        "id": bug.id,
        "target": bug.target,
        "signature": bug.signature,
        "title": bug.title,
        "state": bug.state,
        "reason": bug.reason,
        "issue": bug.issue,
        "seen": bug.seen,
        "last_seen": bug.last_seen.isoformat(),
    }


def as_json(facts: BugFacts) -> dict[str, Any]:
    """The content of the page as JSON."""
    bug = facts.bug
    return summarize_bug(bug) | {
        "resolution": bug.resolution,
        "duplicate_of": bug.duplicate_of,
        "fixed_by": bug.fixed_by,
        "first_seen": bug.first_seen.isoformat(),
        "case": facts.case.id if facts.case else None,
        "reduced": facts.reduced,
        "history": facts.history,
        "traits": bug.traits,
        "outcome": facts.outcome.to_json() if facts.outcome else None,
        "replay": facts.replay or None,
        "runs": [
            {"toolchain": run.label, "verdict": run.outcome.verdict.value, "summary": run.outcome.summary}
            for run in facts.runs
        ],
        "numbers": list(facts.numbers),
        "comparison": list(facts.comparison),
        "campaigns": [
            {
                "campaign": one.campaign.id,
                "head": one.campaign.head,
                "trigger": one.campaign.trigger,
                "classification": one.classification,
                "cases": one.cases,
            }
            for one in facts.sightings
        ],
        "retests": [
            {
                "purpose": one.purpose,
                "commit": one.commit,
                "toolchain": one.toolchain,
                "failed": one.failed,
                "runs": one.runs,
                "control_passed": one.control_passed,
                "at": one.at.isoformat(),
            }
            for one in facts.retests
        ],
        "proposal": _proposal_json(facts.proposal) if facts.proposal else None,
        "audit_events": [
            {"at": a.at.isoformat(), "who": a.actor, "what": a.action, "why": a.reason}
            for a in facts.audit_events
        ],
        "facts": {name: value for name, value in bug.facts.items() if name != "signature"},
    }


def _proposal_json(one: Proposal) -> dict[str, Any]:
    return {
        "state": one.state,
        "reason": one.reason,
        "number": one.number,
        "url": one.url or None,
        "path": one.path,
        "test": one.test,
        "proof": one.proof,
    }
