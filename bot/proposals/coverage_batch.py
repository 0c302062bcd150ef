"""Batches of tests from passing cases: those that cover what the target's own tests leave out.

The idea is OPERA's: a compiler's own tests neglect some operators and parameters. A batch is chosen greedily:
each test is the one that adds most to the files with the tests chosen before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot.errors import RefusalError
from bot.proposals.coverage_gap import Covered, Gap, find_gap
from bot.proposals.linters import check_proposal
from bot.proposals.proposal import Proposal, choose_place, file_patch, propose
from bot.proposals.regression import Regression, load_program
from bot.proposals.suite import Suite, read_suite
from bot.proposals.tree import Tree
from bot.proposals.writer import Place, ProposalSettings, Writer
from bot.reports.campaign_view import ToolchainView
from bot.store import Session, campaigns, outcomes
from bot.store.models import Campaign
from bot.store.outcomes import CacheKey
from fuzzing.cases import Corpus
from fuzzing.outcomes import Outcome, Verdict

#: Passing cases of a campaign that are looked at, in its order, which puts neglected operators first.
MAX_CASES = 200


@dataclass(frozen=True)
class Addition:
    """A test of a batch, its case, and what it adds to its suite."""

    regression: Regression
    proposal: Proposal
    gap: Gap


@dataclass(frozen=True)
class PassingCase:
    """A case that passes on the newest build of a target."""

    id: str
    outcome: Outcome
    toolchain: ToolchainView


def newest_tested(session: Session, target: str) -> Campaign:
    """The target's newest campaign with a build. Raises RefusalError if nothing was tested yet."""
    newest = campaigns.newest(session, target, "")
    if newest is None:
        raise RefusalError(f"no commit of {target} was tested yet; `assay serve` or `assay run` tests one")
    return newest


def passing_cases(session: Session, campaign: Campaign) -> list[PassingCase]:
    """The first MAX_CASES cases that passed on the build of a campaign's head."""
    assert campaign.head_toolchain is not None
    key = CacheKey.of(campaign.head_toolchain, campaign.config)
    row = campaigns.toolchain(session, campaign.head_toolchain)
    view = ToolchainView(
        row.label,
        {str(name): str(version) for name, version in row.versions.items()},
        tuple(map(str, row.requirements)),
    )
    found = []
    for case_id in outcomes.cases_with_verdict(session, campaign.id, key, [Verdict.PASS])[:MAX_CASES]:
        outcome = outcomes.get(session, case_id, key)
        if outcome is not None:
            found.append(PassingCase(case_id, outcome, view))
    return found


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
    regressions: Sequence[Regression],
    tree: Tree,
    settings: ProposalSettings,
    most: int,
    *,
    declined: Collection[Covered] = (),
    accepts: Callable[[Proposal], bool] | None = None,
) -> list[Addition]:
    """At most `most` tests, the one that adds most first: new operators count before new parameters.

    declined  what maintainers did not want tests of
    accepts   whether a test may be added
    """
    suites = _Suites(tree, settings)
    left, batch = list(regressions), list[Addition]()
    while left and len(batch) < most:
        gaps = [suites.gap(one, declined) for one in left]
        best = max(range(len(left)), key=lambda at: (len(gaps[at].operators), len(gaps[at].parameters), -at))
        if not gaps[best]:
            break
        chosen = left.pop(best)
        try:
            proposal = propose(chosen, suites.tree, settings)
        except RefusalError:
            continue
        if not proposal.is_new or (accepts is not None and not accepts(proposal)):
            continue
        suites.add(proposal)
        batch.append(Addition(chosen, proposal, gaps[best]))
    return batch


class _Suites:
    """The suites of a tree, with the tests of a batch."""

    def __init__(self, tree: Tree, settings: ProposalSettings) -> None:
        self._written: dict[str, str] = {}
        self._suites: dict[tuple[str, ...], Suite] = {}
        self._places: dict[int, tuple[Writer, Place] | None] = {}
        self._before, self._settings = tree, settings
        self.tree = Tree(self._read, tree.lister)

    def gap(self, regression: Regression, declined: Collection[Covered]) -> Gap:
        """What a test of the regression adds; nothing without a place for it."""
        found = self._place(regression)
        if found is None:
            return Gap()
        writer, place = found
        key = writer.suite_files(place) or (place.path,)
        if key not in self._suites:
            self._suites[key] = read_suite(self.tree, writer, place)
        if place.path not in self._suites[key].files:
            own = self.tree.read(place.path) or ""
            self._suites[key] = self._suites[key].with_file(place.path, own)
        return find_gap(self._suites[key], regression, declined)

    def add(self, proposal: Proposal) -> None:
        """Adds a test."""
        self._written[proposal.path] = proposal.after
        self._suites = {
            key: one.with_file(proposal.path, proposal.after) if proposal.path in one.files else one
            for key, one in self._suites.items()
        }

    def _place(self, regression: Regression) -> tuple[Writer, Place] | None:
        key = id(regression)
        if key not in self._places:
            try:
                self._places[key] = choose_place(regression, self._before, self._settings)
            except RefusalError:
                self._places[key] = None
        return self._places[key]

    def _read(self, path: str) -> bytes | None:
        return self._written[path].encode() if path in self._written else self._before.reader(path)


def batch_files(batch: Sequence[Addition]) -> dict[str, str]:
    """The files with all tests, by path."""
    return {one.proposal.path: one.proposal.after for one in batch}


def batch_patch(batch: Sequence[Addition], tree: Tree) -> str:
    """All tests as one patch for `git apply`."""
    return "".join(file_patch(path, tree.read(path), text) for path, text in batch_files(batch).items())


def batch_checks(batch: Sequence[Addition], tree: Tree) -> tuple[str, ...]:
    """What the linters have against the files (`bot.proposals.linters`), each sentence once."""
    last = {one.proposal.path: one.proposal for one in batch}
    whole = (replace(one, before=tree.read(path)) for path, one in last.items())
    return tuple(dict.fromkeys(sentence for one in whole for sentence in check_proposal(one, tree)))
