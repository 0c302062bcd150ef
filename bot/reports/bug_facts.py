"""Collects the facts of one bug: its rows, its case, and its program as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.reports import reproducer
from bot.reports.bug_page import BugFacts, Run
from bot.reports.campaign_reports import describe_reduction
from bot.reports.campaign_view import ToolchainView
from bot.reports.reference_outputs import add_reference_outputs
from bot.reports.reproducer_pair import render_pair
from bot.reports.reproducer_short import render_short
from bot.store import Session, audit, bug_details, findings, proposals
from bot.store.models import Bug, Toolchain
from fuzzing.cases import Corpus, TestCase
from fuzzing.outcomes import Outcome

#: Runs `python -m MODULE ARGS…` of the data plane and returns its events.
RunTool = Callable[[str, Sequence[str], Callable[[dict[str, Any]], None]], None]


def collect_bug_facts(session: Session, bug: Bug, corpus: Path) -> BugFacts:
    """The facts in the database and the corpus.

    The outcome is from the latest head at which the case fails, else from the oldest toolchain.
    """
    case_id = bug.case_id or bug_details.example_case(session, bug)
    runs, case = bug_details.runs(session, bug, case_id), _read_case(corpus, case_id)
    reduction = bug_details.reduction(session, bug)
    retests = bug_details.retests(session, bug)
    facts = BugFacts(
        bug=bug,
        case=case,
        reduced=bool(bug.case_id),
        history=describe_reduction(reduction.body) if reduction else "",
        unreduced="" if bug.case_id else findings.unreduced(session, bug.id),
        runs=[Run(toolchain.label, outcome) for toolchain, outcome in runs],
        sightings=bug_details.sightings(session, bug),
        retests=retests,
        proposal=proposals.find(session, bug.target, bug.signature),
        audit_events=audit.of(session, bug.target, f"bug:{bug.id}"),
        labels=bug_details.labels(session, [one.toolchain for one in retests]),
    )
    failing = [(toolchain, outcome) for toolchain, outcome in runs if outcome.verdict.is_failure]
    heads = [one.campaign.head_toolchain for one in facts.sightings]
    failing.sort(key=lambda run: heads.index(run[0].digest) if run[0].digest in heads else len(heads))
    return _add_outcome(facts, *failing[0], corpus) if failing and case else facts


def _read_case(corpus: Path, case_id: str) -> TestCase | None:
    """The case, None if the corpus no longer has it."""
    store = Corpus(corpus)
    return store.get(case_id) if case_id and store.folder(case_id).exists() else None


def _add_outcome(facts: BugFacts, toolchain: Toolchain, outcome: Outcome, corpus: Path) -> BugFacts:
    assert facts.case is not None
    view = ToolchainView(
        toolchain.label,
        {str(name): str(version) for name, version in toolchain.versions.items()},
        tuple(map(str, toolchain.requirements)),
    )
    script = ""
    if reproducer.has_guarded_script(outcome.backend, facts.case):
        script = reproducer.render(add_reference_outputs(facts.case, corpus), outcome, view)
    else:
        script = render_pair(facts.case, outcome, view)
    replay = reproducer.replay_command(outcome, facts.case.id[:16])
    return replace(facts, outcome=outcome, toolchain=view, script=script, replay=replay)


def add_program_text(facts: BugFacts, corpus: Path, run_tool: RunTool) -> BugFacts:
    """The facts with the program's text, and the short script instead of the guarded one."""
    if facts.case is None:
        return facts
    events: list[dict[str, Any]] = []
    run_tool("fuzzing.triage.program_text", ["--corpus", str(corpus), facts.case.id], events.append)
    code = "".join(str(one.get("code", "")) for one in events)
    short = ""
    if facts.outcome is not None and facts.toolchain is not None:
        if facts.script:
            case = add_reference_outputs(facts.case, corpus)
            short = render_short(case, facts.outcome, facts.toolchain, code)
        else:
            short = render_pair(facts.case, facts.outcome, facts.toolchain, code)
    program = "".join(str(one["program"]) for one in events)
    return replace(facts, program=program, script=short or facts.script)
