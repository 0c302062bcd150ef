"""Decides which commits may run, and whose configuration is in force.

A pull request is code whose pins and `.github/assay.yml` decide what is installed and run. Every path from an
event, a comment, a button, a schedule or a job to the code of a commit goes through `check_approval` or
`require_approval`, which compare the id of the approved commit. docs/pull-requests.md lists the threats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bot.errors import RefusalError
from bot.jobs.job_context import JobContext
from bot.store import pulls
from bot.store.models import Campaign, Pull

#: Values of `role_name` in GitHub's collaborator permission with push access.
WRITE_ROLES = frozenset({"admin", "maintain", "write"})
#: Associations that may have write access. The role is read too: members may be read-only.
MEMBER_ASSOCIATIONS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})

APPROVE_COMMAND = "/assay run"

#: Login → role in the target, such as "write".
ReadRole = Callable[[str], str]


class RoleReader(Protocol):
    """Reads roles from GitHub (`bot.github.reader.Reader`)."""

    def permission(self, target: str, login: str) -> str:
        """The role of a login in the target: admin, maintain, write, triage, read or none."""


class NotApprovedError(RefusalError):
    """The commit may not run: nobody with write access pushed or approved it."""


@dataclass(frozen=True)
class Approval:
    """Whether one commit may run. Only this module creates approvals.

    may_run        its code may be installed and run
    config_commit  the commit whose configuration is in force: its own, or that of the base branch;
                   "" for the configuration of the campaign that tested it
    why            one sentence for people
    """

    commit: str
    may_run: bool
    config_commit: str
    why: str


def read_role(github_reader: RoleReader | None, target: str, login: str) -> str:
    """The role of a login in the target; "none" without access to GitHub."""
    return github_reader.permission(target, login) if github_reader is not None else "none"


def check_approval(pull: Pull, commit: str, permission: ReadRole) -> Approval:
    """Whether `commit` may run as the head of `pull`; `permission` is called only if it matters."""
    if commit == pull.head:
        if pull.head_repository and pull.head_repository.casefold() == pull.target.casefold():
            why = "its branch is in this repository, where only people with write access push"
            return Approval(commit, True, commit, why)
        if pull.association in MEMBER_ASSOCIATIONS and permission(pull.author) in WRITE_ROLES:
            return Approval(commit, True, commit, f"its author {pull.author} has write access")
    if commit and pull.approved_head == commit:
        return Approval(commit, True, pull.base, f"{pull.approved_by} approved commit {commit[:12]}")
    source = f"the fork {pull.head_repository}" if pull.head_repository else "a deleted fork"
    why = f"it comes from {source}, and nobody with write access has approved commit {commit[:12]}"
    return Approval(commit, False, pull.base, why)


def require_approval(
    job_context: JobContext, target: str, commit: str, campaign: Campaign | None = None
) -> Approval:
    """The approval of a commit that a job is about to build and run. `commit` is a full id.

    A commit may run if a campaign tested it, if it is on a branch of the target, or if it is the approved
    head of a pull request. `campaign` is one whose range base..head may contain the commit.
    Raises NotApprovedError, and RefusalError and InfrastructureError as git and GitHub do.
    """
    if campaign is not None and (found := _check_campaign(job_context, campaign, commit)):
        return found
    with job_context.database.reading() as session:
        heads = pulls.with_head(session, target, commit)
    answers = [
        check_approval(pull, commit, lambda login: _role(job_context, target, login)) for pull in heads
    ]
    for answer in answers:
        if answer.may_run:
            return answer
    if job_context.services.repositories.is_on_branch(target, commit):
        return Approval(commit, True, commit, f"it is on a branch of {target}")
    why = answers[0].why if answers else f"it is on no branch of {target}"
    raise NotApprovedError(
        f"commit {commit[:12]} may not run: {why}; "
        f"`{APPROVE_COMMAND} {commit}` on its pull request approves it"
    )


def _check_campaign(job_context: JobContext, campaign: Campaign, commit: str) -> Approval | None:
    """The approval that follows from a campaign; None if it does not cover the commit.

    A campaign's head was approved when the campaign was created, and its base is on the target's branch.
    Commits between the two may run only if their author has write access: approval covers the head alone.
    """
    if commit == campaign.base:
        return Approval(commit, True, commit, f"it is the base of campaign {campaign.id}")
    trusted = campaign.pull is None or _is_trusted_pull(job_context, campaign)
    if commit == campaign.head:
        return Approval(commit, True, commit if trusted else "", f"campaign {campaign.id} tested it")
    repositories = job_context.services.repositories
    if trusted and repositories.merge_base(campaign.target, commit, campaign.head) == commit:
        return Approval(commit, True, commit, f"it is part of the history of {campaign.head[:12]}")
    return None


def _is_trusted_pull(job_context: JobContext, campaign: Campaign) -> bool:
    """Whether people with write access pushed the head of a pull request's campaign."""
    with job_context.database.reading() as session:
        pull = pulls.get(session, campaign.target, campaign.pull or 0)
    if pull is None or pull.head != campaign.head:
        return False
    approval = check_approval(pull, campaign.head, lambda login: _role(job_context, campaign.target, login))
    return approval.may_run and approval.config_commit == campaign.head


def _role(job_context: JobContext, target: str, login: str) -> str:
    return read_role(job_context.github_reader, target, login)
