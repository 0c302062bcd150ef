"""What the App asks of GitHub, and what is lost without each: the one table behind doctor, manifest and docs.

Permissions and events are named as GitHub's API names them. The events of installations and `ping` come to
every App and cannot be subscribed to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_RANK = {"": 0, "read": 1, "write": 2, "admin": 3}


@dataclass(frozen=True)
class Requirement:
    """One permission (with its `level`) or event (level "").

    why       what it is for
    lost      what does not happen without it
    optional  whether Assay is of use without it
    """

    name: str
    level: str
    why: str
    lost: str
    optional: bool = False

    def is_met(self, granted: Mapping[str, str]) -> bool:
        """Whether these permissions hold it."""
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

#: Asked for only where regression tests are to be proposed: they take a branch of our own.
PROPOSAL_PERMISSIONS = (
    Requirement(
        "contents", "write", "branches of proposed regression tests", "no tests are proposed", optional=True
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
    Requirement("check_suite", "", "Re-run all checks", "it does nothing"),
    Requirement("repository", "", "renames, transfers, archiving", "they are noticed an hour later"),
    Requirement(
        "merge_group",
        "",
        "commits of merge queues",
        "a check that a merge queue requires never comes",
        optional=True,
    ),
)

#: Where `bot.webhooks.router` takes deliveries.
WEBHOOK_PATH = "/webhooks/github"


def manifest(url: str, name: str = "Assay", *, webhook: bool = True) -> dict[str, object]:
    """The App manifest for a service at `url` (GitHub, "Registering a GitHub App from a manifest").

    webhook  whether GitHub can reach the service; repositories are polled where it cannot
    """
    base = url.rstrip("/")
    return {
        "name": name,
        "url": base,
        "description": "Tests deep-learning compilers at each commit and says what the change broke.",
        "hook_attributes": {"url": base + WEBHOOK_PATH, "active": webhook},
        "redirect_url": base + "/",
        "public": False,
        "default_permissions": {requirement.name: requirement.level for requirement in PERMISSIONS},
        "default_events": [requirement.name for requirement in EVENTS],
    }


def markdown_tables() -> str:
    """The permissions and events as Markdown, for the page on installing."""
    permissions = ["| permission | level | for | without it |", "|---|---|---|---|"]
    for requirement in (*PERMISSIONS, *PROPOSAL_PERMISSIONS):
        optional = " (optional)" if requirement.optional else ""
        cells = (f"`{requirement.name}`", f"{requirement.level}{optional}", requirement.why, requirement.lost)
        permissions.append(f"| {' | '.join(cells)} |")
    events = ["| event | for | without it |", "|---|---|---|"]
    for requirement in EVENTS:
        optional = " (optional)" if requirement.optional else ""
        events.append(f"| `{requirement.name}`{optional} | {requirement.why} | {requirement.lost} |")
    return "\n".join([*permissions, "", *events]) + "\n"
