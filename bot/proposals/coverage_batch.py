"""Batches of tests from passing cases: those that cover what the target's own tests leave out.

The idea is OPERA's: a compiler's own tests neglect some operators and parameters. A batch is chosen greedily:
each test is the one that adds most to the files with the tests chosen before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.errors import RefusalError
from bot.proposals.coverage_gap import Gap, find_gap
from bot.proposals.proposal import Proposal, choose_place, file_patch, propose
from bot.proposals.regression import Regression, load_program
from bot.proposals.tree import Tree
from bot.proposals.writer import ProposalSettings
from bot.reports.campaign_view import ToolchainView
from bot.store import Session, campaigns, outcomes
from bot.store.outcomes import CacheKey
from fuzzing.cases import Corpus
from fuzzing.outcomes import Outcome, Verdict

#: Passing cases of a campaign that are looked at, in its order, which puts neglected operators first.
MAX_CASES = 200


@dataclass(frozen=True)
class Addition:
    """A test of a batch, and what it adds to its file."""

    proposal: Proposal
    gap: Gap


@dataclass(frozen=True)
class PassingCase:
    """A case that passes on the newest build of a target."""

    id: str
    outcome: Outcome
    toolchain: ToolchainView


def passing_cases(session: Session, target: str) -> tuple[list[PassingCase], str]:
    """The first MAX_CASES cases that passed in the target's newest campaign, and its commit.

    Raises RefusalError if nothing was tested yet.
    """
    newest = campaigns.newest(session, target, "")
    if newest is None or not newest.head_toolchain:
        raise RefusalError(f"no commit of {target} was tested yet; `assay serve` or `assay run` tests one")
    key = CacheKey.of(newest.head_toolchain, newest.config)
    row = campaigns.toolchain(session, newest.head_toolchain)
    view = ToolchainView(
        row.label,
        {str(name): str(version) for name, version in row.versions.items()},
        tuple(map(str, row.requirements)),
    )
    found = []
    for case_id in outcomes.cases_with_verdict(session, newest.id, key, [Verdict.PASS])[:MAX_CASES]:
        outcome = outcomes.get(session, case_id, key)
        if outcome is not None:
            found.append(PassingCase(case_id, outcome, view))
    return found, newest.head


def load_passing(
    cases: Iterable[PassingCase],
    corpus: Path,
    run_tool: Callable[[str, Sequence[str], Callable[[dict[str, Any]], None]], None],
) -> list[Regression]:
    """What tests of the cases state; cases that the corpus lost, or of other kinds, are left out."""
    store = Corpus(corpus)
    there = [one for one in cases if store.folder(one.id).exists()]
    records: list[dict[str, Any]] = []
    if there:
        ids = [one.id for one in there]
        run_tool("fuzzing.triage.program_text", ["--corpus", str(corpus), "--outline", *ids], records.append)
    texts = {str(one.get("id", "")): one for one in records}
    found = []
    for one in there:
        try:
            found.append(load_program(store.get(one.id), one.outcome, one.toolchain, corpus, texts[one.id]))
        except RefusalError:
            continue
    return found


def propose_batch(
    regressions: Sequence[Regression], tree: Tree, settings: ProposalSettings, most: int
) -> list[Addition]:
    """At most `most` tests, the one that adds most first: new operators count before new parameters."""
    written: dict[str, str] = {}

    def read(path: str) -> bytes | None:
        return written[path].encode() if path in written else tree.reader(path)

    grown, left, batch = Tree(read), list(regressions), list[Addition]()
    while left and len(batch) < most:
        gaps = [_gap(one, grown, settings) for one in left]
        best = max(range(len(left)), key=lambda at: (len(gaps[at].operators), len(gaps[at].parameters), -at))
        if not gaps[best]:
            break
        chosen = left.pop(best)
        try:
            proposal = propose(chosen, grown, settings)
        except RefusalError:
            continue
        if proposal.is_new:
            written[proposal.path] = proposal.after
            batch.append(Addition(proposal, gaps[best]))
    return batch


def _gap(regression: Regression, tree: Tree, settings: ProposalSettings) -> Gap:
    try:
        _, place = choose_place(regression, tree, settings)
    except RefusalError:
        return Gap()
    return find_gap(tree.read(place.path), regression)


def batch_patch(batch: Sequence[Addition], tree: Tree) -> str:
    """All tests as one patch for `git apply`."""
    after = {one.proposal.path: one.proposal.after for one in batch}
    return "".join(file_patch(path, tree.read(path), text) for path, text in after.items())
