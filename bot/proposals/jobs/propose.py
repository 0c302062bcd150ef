"""The job `propose`: writes a test for a bug, proves it on two builds, and posts the pull request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bot.bugs import reproduction
from bot.bugs.reproduction import BugCase
from bot.config import RepositoryConfig
from bot.errors import RefusalError
from bot.jobs.job_context import JobContext
from bot.jobs.registry import job_kind
from bot.proposals.commit_style import asks_for_sign_off, recent_subjects
from bot.proposals.coverage_gap import find_gap
from bot.proposals.job_tools import (
    base_branch,
    commit_payload,
    draft_pull_request,
    head_build,
    proposal_row,
    proposal_settings,
    run_tool,
    test_runner,
)
from bot.proposals.linters import check_proposal
from bot.proposals.proof import Proof, prove
from bot.proposals.proposal import Proposal, propose
from bot.proposals.pull_request_text import PullRequestText, RepositoryHabits, write_text
from bot.proposals.regression import Regression, load_regression
from bot.proposals.suite import read_suite
from bot.proposals.tree import Tree, commit_tree
from bot.proposals.writer import get_writer
from bot.reports import text
from bot.reports.bug_facts import collect_bug_facts
from bot.reports.bug_page import BugFacts
from bot.reports.report import idempotency_key
from bot.store import Session, campaigns, outbox, proposals, targets
from bot.store.models import Bug, BugState, Campaign, ProposalState
from bot.store.models import Proposal as ProposalRow
from bot.store.outbox import EffectDraft

NAME = "propose"
_FIXED = frozenset({BugState.FIXED, BugState.VERIFIED, BugState.CLOSED})


@dataclass(frozen=True)
class _Request:
    """A bug, what is known of it, and the newest campaign, whose commit the test is written for.

    replaces  what the open pull request holds that is written anew; None for a first proposal
    marked    the merged test that is expected to fail, whose mark goes; "" for none
    """

    known: BugCase
    facts: BugFacts
    newest: Campaign
    config: RepositoryConfig
    replaces: Mapping[str, Any] | None = None
    marked: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the bug still fails as far as is known."""
        return BugState(self.known.bug.state) not in _FIXED


@job_kind(NAME)
def propose_test(job_context: JobContext) -> None:
    """Opens a draft pull request with a test for the bug, if the repository wants that."""
    request = _load(job_context)
    target, bug = request.known.bug.target, request.known.bug
    commit = request.newest.head
    tree = commit_tree(job_context.services.repositories, target, commit)
    regression = load_regression(request.facts, job_context.corpus, partial(run_tool, job_context))
    wanted, settings = request.config.proposals, proposal_settings(request.config)
    proposal = propose(regression, tree, settings, is_open=request.is_open)
    if not proposal.is_new:
        raise RefusalError(f"{proposal.path} has {proposal.name} already")
    if request.marked and not proposal.removes_mark:
        raise RefusalError(
            f"{proposal.path} has no {request.marked} as it was proposed, so its mark of an expected failure "
            "has to be removed by hand"
        )
    proof = _prove(job_context, request, proposal, tree, regression)
    subjects = recent_subjects(job_context.services.repositories, target, commit)
    habits = RepositoryHabits(
        subjects,
        not wanted.sign_off and asks_for_sign_off(tree),
        check_proposal(proposal, tree),
        find_gap(read_suite(tree, get_writer(proposal.writer), proposal.place), regression),
    )
    with job_context.transaction() as (session, job):
        kind = proposals.PULL_REQUEST if request.replaces is None else proposals.BRANCH_REWRITE
        key = idempotency_key(kind, targets.stable_name(session, target), bug.signature, job.key)
        texts = write_text(regression, proposal, proof, bug.id, bug.title, key, habits)
        base = base_branch(request.newest)
        written = commit_payload({proposal.path: proposal.after}, texts, commit, wanted.sign_off or "")
        at = job_context.services.clock.now()
        if request.replaces is None:
            _require_wanted(session, bug, request.config)
            row = proposal_row(job_context, target, bug.signature, proposal, texts, key, proof.to_json())
            proposals.record(session, row)
            fork = job_context.services.proposal_fork(target)
            draft = draft_pull_request(target, key, texts, base, written, fork, bug.id)
        else:
            row = _open(session, bug)
            draft = _rewrite(row, key, texts, base, written, bug.id, request.replaces)
            row.effect, row.proof, row.updated_at = key, proof.to_json(), at
        outbox.post(session, [draft], campaign_id=request.newest.id, issues_per_day=0, at=at)
        follows = (
            "a pull request follows" if request.replaces is None else f"its branch moves to {commit[:12]}"
        )
        summary = f"{proposal.name} of {proposal.path} passes on {proof.good.label}; {follows}"
        job_context.done(
            session, job, summary, test=proposal.name, path=proposal.path, answer=text.plain(summary)
        )


def _load(job_context: JobContext) -> _Request:
    with job_context.database.reading() as session:
        known = reproduction.load_bug_case(session, job_context)
        newest = campaigns.newest(session, known.bug.target, "")
        if newest is None:
            raise RefusalError("no commit of the repository was tested yet")
        config = RepositoryConfig.from_json(newest.config)
        _require_enabled(config)
        replaces, marked = None, None
        if job_context.job_spec.arguments.get("rebase"):
            replaces = proposals.last_content(session, _open(session, known.bug))
            if replaces is None:
                raise RefusalError("the commit of this branch is not known any more: rebase it by hand")
        else:
            _require_wanted(session, known.bug, config)
            marked = proposals.expected_to_fail(session, known.bug.target, known.bug.signature)
        facts = collect_bug_facts(session, known.bug, job_context.corpus)
        session.expunge_all()
    return _Request(known, facts, newest, config, replaces, marked.test if marked is not None else "")


def _require_enabled(config: RepositoryConfig) -> None:
    """Raises RefusalError if the repository does not ask for tests."""
    if not config.proposals.enabled:
        raise RefusalError(
            "this repository does not ask for tests: set `proposals: {enabled: true}` in .github/assay.yml"
        )


def _require_wanted(session: Session, bug: Bug, config: RepositoryConfig) -> None:
    """Raises RefusalError if no test may be proposed for the bug now."""
    if why := proposals.obstacle(session, bug.target, bug.signature, config.proposals.open):
        raise RefusalError(why)


def _open(session: Session, bug: Bug) -> ProposalRow:
    """The open proposal for a bug. Raises RefusalError if it was closed or merged meanwhile."""
    row = proposals.find(session, bug.target, bug.signature)
    if row is None or row.state != ProposalState.OPEN.value or row.number is None:
        raise RefusalError("the pull request with this test is not open any more")
    return row


def _prove(
    job_context: JobContext, request: _Request, proposal: Proposal, tree: Tree, regression: Regression
) -> Proof:
    writer = get_writer(proposal.writer)
    if not writer.is_provable:
        raise RefusalError(
            f"the tests that {proposal.path} lists are not in this repository, so the change cannot be "
            f"proved; `assay propose {request.known.bug.id} --dry-run` writes it"
        )
    good = head_build(job_context, request.newest)
    if request.is_open and writer.expects_failures:
        return prove(proposal, tree, None, good, test_runner(job_context))
    bad = head_build(job_context, request.known.campaign)
    before = _written_before(job_context, request, regression)
    return prove(proposal, tree, bad, good, test_runner(job_context), before)


def _written_before(
    job_context: JobContext, request: _Request, regression: Regression
) -> tuple[Proposal, Tree] | None:
    """The test in the files of the commit with the bug; None if they have no place for it."""
    campaign = request.known.campaign
    tree = commit_tree(job_context.services.repositories, campaign.target, campaign.head)
    try:
        proposal = propose(regression, tree, proposal_settings(request.config))
    except RefusalError:
        return None
    return (proposal, tree) if proposal.is_new else None


def _rewrite(
    row: ProposalRow,
    key: str,
    texts: PullRequestText,
    base: str,
    commit: dict[str, Any],
    bug_id: int,
    replaces: Mapping[str, Any],
) -> EffectDraft:
    """The branch goes on where it is, whatever fork the settings name now."""
    before = dict(replaces)
    place = {"fork": fork} if (fork := before.pop("fork", "")) else {}
    payload = {
        "number": row.number,
        "head": row.branch,
        "base": base,
        "body": texts.body,
        "commit": commit,
        "replaces": before,
        **place,
    }
    return EffectDraft(proposals.BRANCH_REWRITE, key, row.target, payload, bug_id=bug_id)
