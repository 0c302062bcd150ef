"""Whose code may run, and whose configuration holds.

A pull request is code that somebody else wrote and that decides, by its pins and its `.github/assay.yml`,
what is installed and how long it runs. docs/pull-requests.md has the threats that these rules are made
against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.store.models import Pull

#: GitHub's names of the roles that may push; `role_name` of a collaborator's permission.
WRITE_ROLES = frozenset({"admin", "maintain", "write"})
#: Associations whose holders may have write access. It is asked for: members and collaborators may only read.
MEMBER_ASSOCIATIONS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})

APPROVE_COMMAND = "/assay run"  # the command, of somebody with write access, that releases one commit


@dataclass(frozen=True)
class Approval:
    """What may be done with a pull request at its present head.

    may_run   its code may be installed and run
    uses_own_config    the configuration is that of its own head; otherwise that of the branch it is to be merged into
    why    one sentence for people
    """

    may_run: bool
    uses_own_config: bool
    why: str


def check_approval(pull: Pull, permission: Callable[[str], str]) -> Approval:
    """How far `pull` is trusted.

    permission  login → that person's role in the target, such as "write"; asked only where it decides
    """
    if pull.head_repository and pull.head_repository.casefold() == pull.target.casefold():
        return Approval(
            True, True, "its branch is in this repository, where only people with write access push"
        )
    if pull.association in MEMBER_ASSOCIATIONS and permission(pull.author) in WRITE_ROLES:
        return Approval(True, True, f"its author {pull.author} has write access")
    if pull.approved_head and pull.approved_head == pull.head:
        return Approval(True, False, f"{pull.approved_by} released commit {pull.head[:12]}")
    whose = f"the fork {pull.head_repository}" if pull.head_repository else "a fork that is gone"
    return Approval(
        False,
        False,
        f"it comes from {whose}, and nobody with write access has released commit {pull.head[:12]}",
    )
