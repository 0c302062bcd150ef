"""The App's permissions and events, and what is lost without each: used by doctor, manifest and docs.

Permissions and events are named as in GitHub's API. Every App gets the installation events and `ping`, which
cannot be subscribed to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_RANK = {"": 0, "read": 1, "write": 2, "admin": 3}


@dataclass(frozen=True)
class Requirement:
    """One permission (with its `level`) or event (level "").

    why       its purpose
    lost      what does not work without it
    optional  whether Assay is useful without it
    """

    name: str
    level: str
    why: str
    lost: str
    optional: bool = False

    def is_met(self, granted: Mapping[str, str]) -> bool:
        """Whether these permissions include it."""
        return _RANK.get(granted.get(self.name, ""), 0) >= _RANK[self.level]


PERMISSIONS = (
    Requirement("metadata", "read", "names, branches and who may give commands", "nothing works"),
    Requirement(
        "contents",
        "read",
        "`.github/assay.yml`, the pins, and the diff of a change",
        "private repositories are not tested",
    ),
    Requirement(
        "checks", "write", "the check run on each commit", "no check runs, no annotations, no buttons"
    ),
    Requirement(
        "issues",
        "write",
        "issues about bugs, comments, reactions and labels",
        "nothing is filed, and no command is answered",
    ),
    Requirement(
        "pull_requests",
        "write",
        "the pull requests to test, and the one comment on each",
        "pull requests are not tested, and get no comment",
    ),
    Requirement(
        "merge_queues",
        "read",
        "commits of merge queues",
        "a check that a merge queue requires never comes",
        optional=True,
    ),
)

#: Needed only to propose regression tests, which takes a branch of ours.
PROPOSAL_PERMISSIONS = (
    Requirement(
        "contents",
        "write",
        "branches of proposed regression tests",
        "tests are proposed only through a fork (`ASSAY_PROPOSAL_FORKS`)",
        optional=True,
    ),
)

#: Needed only where `toolchain.provisioner` names `artifact`.
ARTIFACT_PERMISSIONS = (
    Requirement(
        "actions", "read", "wheels that workflows built", "`artifact` makes no toolchain", optional=True
    ),
)

EVENTS = (
    Requirement("push", "", "commits to test", "commits are found by polling, minutes later"),
    Requirement(
        "pull_request", "", "pull requests to test", "pull requests are found by polling, minutes later"
    ),
    Requirement(
        "issue_comment", "", "commands such as `/assay run`", "commands are found by polling, minutes later"
    ),
    Requirement(
        "issues", "", "our issues as people close and label them", "a closed issue is noticed hours later"
    ),
    Requirement("check_run", "", "the buttons of a check run, and Re-run", "its buttons do nothing"),
    Requirement("check_suite", "", "Re-run all checks, the end of CI", "`artifact` waits a minute longer"),
    Requirement("repository", "", "renames, transfers, archiving", "they are noticed an hour later"),
    Requirement(
        "merge_group",
        "",
        "commits of merge queues",
        "a check that a merge queue requires never comes",
        optional=True,
    ),
)

#: The path of `bot.webhooks.router`.
WEBHOOK_PATH = "/webhooks/github"


def manifest(url: str, name: str = "Assay", *, webhook: bool = True) -> dict[str, object]:
    """The App manifest for a service at `url` (GitHub, "Registering a GitHub App from a manifest").

    webhook  whether GitHub can reach the service; otherwise repositories are polled
    """
    base = url.rstrip("/")
    return {
        "name": name,
        "url": base,
        "description": "Tests deep-learning compilers at each commit and shows what the change broke.",
        "hook_attributes": {"url": base + WEBHOOK_PATH, "active": webhook},
        "redirect_url": base + "/",
        "public": False,
        "default_permissions": {requirement.name: requirement.level for requirement in PERMISSIONS},
        "default_events": [requirement.name for requirement in EVENTS],
    }


def markdown_tables() -> str:
    """The permissions and events as Markdown tables, for docs/install.md."""
    permissions = ["| permission | level | for | without it |", "|---|---|---|---|"]
    for requirement in (*PERMISSIONS, *PROPOSAL_PERMISSIONS, *ARTIFACT_PERMISSIONS):
        optional = " (optional)" if requirement.optional else ""
        cells = (f"`{requirement.name}`", f"{requirement.level}{optional}", requirement.why, requirement.lost)
        permissions.append(f"| {' | '.join(cells)} |")
    events = ["| event | for | without it |", "|---|---|---|"]
    for requirement in EVENTS:
        optional = " (optional)" if requirement.optional else ""
        events.append(f"| `{requirement.name}`{optional} | {requirement.why} | {requirement.lost} |")
    return "\n".join([*permissions, "", *events]) + "\n"
