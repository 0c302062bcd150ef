"""The job `propose_batch`: tests from passing cases of a scheduled campaign, as one pull request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bot.bugs.publication import PROPOSE_BATCH
from bot.config import RepositoryConfig
from bot.jobs.job_context import JobContext
from bot.jobs.registry import job_kind
from bot.proposals.batch_proof import BatchProof
from bot.proposals.batch_text import write_batch_text
from bot.proposals.commit_style import asks_for_sign_off, recent_subjects
from bot.proposals.coverage_batch import (
    Addition,
    PassingCase,
    batch_checks,
    batch_files,
    load_passing,
    passing_cases,
    propose_batch,
)
from bot.proposals.coverage_gap import Covered
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
from bot.proposals.proof import Proof
from bot.proposals.pull_request_text import RepositoryHabits
from bot.proposals.tree import commit_tree
from bot.reports.report import idempotency_key
from bot.store import Session, campaigns, outbox, proposals, targets
from bot.store.models import Campaign

NAME = PROPOSE_BATCH
#: Tests of one pull request: what a maintainer reads in one sitting.
MOST = 5


@dataclass(frozen=True)
class _Request:
    """A campaign, its passing cases that were not proposed yet, and what maintainers did not want."""

    campaign: Campaign
    config: RepositoryConfig
    cases: tuple[PassingCase, ...]
    declined: frozenset[Covered]


@dataclass(frozen=True)
class _Batch:
    """Tests, their proofs, and the repository's habits."""

    additions: Sequence[Addition]
    proofs: Sequence[Proof]
    habits: RepositoryHabits


@job_kind(NAME, answers=False)
def propose_tests(job_context: JobContext) -> None:
    """Opens a draft pull request with the tests that add most, if one may be opened and some add."""
    with job_context.database.reading() as session:
        request = _load(session, job_context)
        why = _obstacle(session, request)
    batch = why or _write(job_context, request)
    with job_context.transaction() as (session, job):
        summary = _obstacle(session, request) or (
            batch if isinstance(batch, str) else _post(session, job_context, request, batch, job.key)
        )
        job_context.done(session, job, summary)


def _load(session: Session, job_context: JobContext) -> _Request:
    assert job_context.job_spec.campaign_id is not None
    campaign = campaigns.get(session, job_context.job_spec.campaign_id)
    known = proposals.known_cases(session, campaign.target)
    request = _Request(
        campaign,
        RepositoryConfig.from_json(campaign.config),
        tuple(one for one in passing_cases(session, campaign) if one.id not in known),
        proposals.declined(session, campaign.target),
    )
    session.expunge_all()
    return request


def _obstacle(session: Session, request: _Request) -> str:
    return proposals.open_obstacle(session, request.campaign.target, request.config.proposals.open)


def _write(job_context: JobContext, request: _Request) -> _Batch | str:
    """The tests with their proofs, or why there are none."""
    campaign, repositories = request.campaign, job_context.services.repositories
    tree = commit_tree(repositories, campaign.target, campaign.head)
    proof = BatchProof(tree, head_build(job_context, campaign), test_runner(job_context))
    additions = propose_batch(
        load_passing(request.cases, job_context.corpus, partial(run_tool, job_context)),
        tree,
        proposal_settings(request.config),
        MOST,
        declined=request.declined,
        accepts=proof.accepts,
    )
    if not additions:
        why = f"none of {len(request.cases)} passing cases gives a test that adds to the suite"
        return f"{why}; of the last one tried: {proof.refusal}" if proof.refusal else why
    habits = RepositoryHabits(
        recent_subjects(repositories, campaign.target, campaign.head),
        not request.config.proposals.sign_off and asks_for_sign_off(tree),
        batch_checks(additions, tree),
    )
    return _Batch(additions, proof.proofs, habits)


def _post(session: Session, job_context: JobContext, request: _Request, batch: _Batch, job_key: str) -> str:
    """Posts the pull request and records its tests; returns what was done."""
    campaign = request.campaign
    stable_name = targets.stable_name(session, campaign.target)
    key = idempotency_key(proposals.PULL_REQUEST, stable_name, NAME, job_key)
    texts = write_batch_text(batch.additions, batch.proofs, campaign.id, key, batch.habits)
    for one, proof in zip(batch.additions, batch.proofs, strict=True):
        covers = [list(covered) for covered in one.gap.covers(one.regression)]
        shown = proof.to_json() | {"covers": covers}
        case = one.regression.outcome.case
        row = proposal_row(job_context, campaign.target, case, one.proposal, texts, key, shown)
        proposals.record(session, row)
    files = batch_files(batch.additions)
    commit = commit_payload(files, texts, campaign.head, request.config.proposals.sign_off or "")
    fork = job_context.services.proposal_fork(campaign.target)
    draft = draft_pull_request(campaign.target, key, texts, base_branch(campaign), commit, fork)
    at = job_context.services.clock.now()
    outbox.post(session, [draft], campaign_id=campaign.id, issues_per_day=0, at=at)
    label = batch.proofs[0].good.label
    return f"{len(batch.additions)} tests of {', '.join(files)} pass on {label}; a pull request follows"
