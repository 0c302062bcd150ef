"""What jobs that propose tests share: the data plane's programs, builds, runs, and the effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.bugs import reproduction
from bot.campaigns.run_with_lease import EventSink, run_with_lease
from bot.config import RepositoryConfig
from bot.config.names import split_signer
from bot.jobs.job_context import JobContext
from bot.proposals.commit_style import signed_off
from bot.proposals.proof import TestBuild
from bot.proposals.proposal import Proposal
from bot.proposals.pull_request_text import PullRequestText
from bot.proposals.writer import ProposalSettings
from bot.runners.repository_test import RunResult
from bot.store import proposals
from bot.store.models import Campaign
from bot.store.models import Proposal as ProposalRow
from bot.store.outbox import EffectDraft


def proposal_settings(config: RepositoryConfig) -> ProposalSettings:
    """Where the repository wants its tests."""
    wanted = config.proposals
    return ProposalSettings(wanted.writer or "", wanted.path, wanted.header or "")


def run_tool(
    job_context: JobContext, module: str, arguments: Sequence[str], on_event: Callable[[dict[str, Any]], None]
) -> None:
    """Runs a program of the data plane and hands on its events."""
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


def test_runner(
    job_context: JobContext,
) -> Callable[[str, Mapping[str, str], Sequence[str], float], RunResult]:
    """Runs a test of the repository while the job keeps its lease (`bot.proposals.proof.RunTest`)."""

    def run(python: str, files: Mapping[str, str], arguments: Sequence[str], timeout_s: float) -> RunResult:
        job_context.heartbeat()
        result: RunResult = run_with_lease(
            job_context, lambda *_: job_context.services.run_test(python, files, arguments, timeout_s)
        )
        return result

    return run


def head_build(job_context: JobContext, campaign: Campaign) -> TestBuild:
    """The build that a campaign tested, made again if it is gone."""
    build = reproduction.build_at_head(job_context, campaign)
    return TestBuild(build.label, build.python, build.commit)


def base_branch(campaign: Campaign) -> str:
    """The branch that a campaign tested, which the pull request is for."""
    return campaign.ref.removeprefix("refs/heads/")


def commit_payload(
    files: Mapping[str, str], texts: PullRequestText, parent: str, signer: str
) -> dict[str, Any]:
    """The commit that writes files, made by who signs it off; "" for the App, which cannot."""
    author = dict(zip(("name", "email"), split_signer(signer), strict=True)) if signer else None
    return {
        "parent": parent,
        "files": dict(files),
        "message": signed_off(texts.title, signer),
        "author": author,
    }


def proposal_row(
    job_context: JobContext,
    target: str,
    signature: str,
    proposal: Proposal,
    texts: PullRequestText,
    effect: str,
    proof: Mapping[str, Any],
) -> ProposalRow:
    """The record of a test whose pull request is not open yet.

    signature  of the bug, or the id of a passing case
    """
    at = job_context.services.clock.now()
    return ProposalRow(
        target=target,
        signature=signature,
        effect=effect,
        reason="waits to be opened",
        branch=texts.branch,
        path=proposal.path,
        test=proposal.name,
        writer=proposal.writer,
        proof=proof,
        requested_by=job_context.job_spec.requested_by,
        created_at=at,
        updated_at=at,
    )


def draft_pull_request(
    target: str,
    key: str,
    texts: PullRequestText,
    base: str,
    commit: dict[str, Any],
    fork: str,
    bug_id: int | None = None,
) -> EffectDraft:
    """The effect that opens a draft pull request; `fork` has its branch, "" for the target."""
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
