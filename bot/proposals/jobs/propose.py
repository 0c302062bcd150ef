"""The job `propose`: writes a test for a bug, proves it on two builds, and posts the pull request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bot.bugs import reproduction
from bot.bugs.reproduction import BugCase, Build
from bot.campaigns.run_with_lease import EventSink, run_with_lease
from bot.config import RepositoryConfig
from bot.config.names import split_signer
from bot.errors import RefusalError
from bot.jobs.job_context import JobContext
from bot.jobs.registry import job_kind
from bot.proposals.commit_style import asks_for_sign_off, recent_subjects, signed_off
from bot.proposals.linters import check_proposal
from bot.proposals.proof import Proof, TestBuild, prove
from bot.proposals.proposal import Proposal, propose
from bot.proposals.pull_request_text import PullRequestText, RepositoryHabits, write_text
from bot.proposals.regression import load_regression
from bot.proposals.tree import Tree
from bot.proposals.writer import ProposalSettings, get_writer
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
    """

    known: BugCase
    facts: BugFacts
    newest: Campaign
    config: RepositoryConfig
    replaces: Mapping[str, Any] | None = None

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
    tree = Tree(partial(job_context.services.repositories.read, target, commit))
    regression = load_regression(request.facts, job_context.corpus, partial(_run_tool, job_context))
    wanted = request.config.proposals
    settings = ProposalSettings(wanted.writer or "", wanted.path, wanted.header or "")
    proposal = propose(regression, tree, settings, is_open=request.is_open)
    if not proposal.is_new:
        raise RefusalError(f"{proposal.path} has {proposal.name} already")
    proof = _prove(job_context, request, proposal, tree)
    subjects = recent_subjects(job_context.services.repositories, target, commit)
    habits = RepositoryHabits(
        subjects, not wanted.sign_off and asks_for_sign_off(tree), check_proposal(proposal, tree)
    )
    with job_context.transaction() as (session, job):
        kind = proposals.PULL_REQUEST if request.replaces is None else proposals.BRANCH_REWRITE
        key = idempotency_key(kind, targets.stable_name(session, target), bug.signature, job.key)
        texts = write_text(regression, proposal, proof, bug.id, bug.title, key, habits)
        base = request.newest.ref.removeprefix("refs/heads/")
        written = _commit(proposal, texts, commit, wanted.sign_off or "")
        at = job_context.services.clock.now()
        if request.replaces is None:
            _require_wanted(session, bug, request.config)
            proposals.record(session, _row(job_context, bug, proposal, proof, texts, key))
            fork = job_context.services.proposal_fork(target)
            draft = _draft(target, key, texts, base, written, bug.id, fork)
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
        replaces = None
        if job_context.job_spec.arguments.get("rebase"):
            replaces = proposals.last_content(session, _open(session, known.bug))
            if replaces is None:
                raise RefusalError("the commit of this branch is not known any more: rebase it by hand")
        else:
            _require_wanted(session, known.bug, config)
        facts = collect_bug_facts(session, known.bug, job_context.corpus)
        session.expunge_all()
    return _Request(known, facts, newest, config, replaces)


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


def _run_tool(
    job_context: JobContext, module: str, arguments: Sequence[str], on_event: Callable[[dict[str, Any]], None]
) -> None:
    run_with_lease(
        job_context,
        lambda take, stop: job_context.services.run_tool(module, list(arguments), take, stop),
        _Events(on_event),
    )


class _Events(EventSink):
    """Hands each event on."""

    def __init__(self, on_event: Callable[[dict[str, Any]], None]) -> None:
        self._on_event = on_event

    def add(self, event: dict[str, Any]) -> None:
        """Hands on one event."""
        self._on_event(event)


def _prove(job_context: JobContext, request: _Request, proposal: Proposal, tree: Tree) -> Proof:
    writer = get_writer(proposal.writer)
    if not writer.is_provable:
        raise RefusalError(
            f"the tests that {proposal.path} lists are not in this repository, so the change cannot be "
            f"proved; `assay propose {request.known.bug.id} --dry-run` writes it"
        )
    good = _build(reproduction.build_at_head(job_context, request.newest))
    bad = None
    if not (request.is_open and writer.expects_failures):
        bad = _build(reproduction.build_at_head(job_context, request.known.campaign))

    def run(*arguments: Any) -> Any:
        job_context.heartbeat()
        return run_with_lease(job_context, lambda *_: job_context.services.run_test(*arguments))

    return prove(proposal, tree, writer.companions, bad, good, run, writer.timeout_s)


def _build(build: Build) -> TestBuild:
    return TestBuild(build.label, build.python, build.commit)


def _row(
    job_context: JobContext, bug: Bug, proposal: Proposal, proof: Proof, texts: PullRequestText, key: str
) -> ProposalRow:
    at = job_context.services.clock.now()
    return ProposalRow(
        target=bug.target,
        signature=bug.signature,
        effect=key,
        reason="waits to be opened",
        branch=texts.branch,
        path=proposal.path,
        test=proposal.name,
        writer=proposal.writer,
        proof=proof.to_json(),
        requested_by=job_context.job_spec.requested_by,
        created_at=at,
        updated_at=at,
    )


def _commit(proposal: Proposal, texts: PullRequestText, parent: str, signer: str) -> dict[str, Any]:
    """The commit, made by who signs it off; "" for the App, which cannot."""
    author = dict(zip(("name", "email"), split_signer(signer), strict=True)) if signer else None
    return {
        "parent": parent,
        "path": proposal.path,
        "content": proposal.after,
        "message": signed_off(texts.title, signer),
        "author": author,
    }


def _draft(
    target: str,
    key: str,
    texts: PullRequestText,
    base: str,
    commit: dict[str, Any],
    bug_id: int,
    fork: str,
) -> EffectDraft:
    payload: dict[str, Any] = {
        "title": texts.title,
        "body": texts.body,
        "head": texts.branch,
        "base": base,
        "draft": True,
        "maintainer_can_modify": True,
        "commit": commit,
    }
    if fork:
        payload["fork"] = fork
    return EffectDraft(proposals.PULL_REQUEST, key, target, payload, bug_id=bug_id)


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
