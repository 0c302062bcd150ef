"""What the App asks of GitHub, and what is lost without each: the one table behind doctor, manifest and docs.

Permissions and events are named as GitHub's API names them. The events of installations and `ping` come to
every App and cannot be subscribed to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_RANK = {"": 0, "read": 1, "write": 2, "admin": 3}


@dataclass(frozen=True)
class Need:
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

    def met(self, granted: Mapping[str, str]) -> bool:
        """Whether these permissions hold it."""
        return _RANK.get(granted.get(self.name, ""), 0) >= _RANK[self.level]


PERMISSIONS = (
    Need("metadata", "read", "names, branches and who may give commands", "nothing works"),
    Need(
        "contents",
        "read",
        "`.github/assay.yml`, the pins, and the diff of a change",
        "private repositories are not tested",
    ),
    Need("checks", "write", "the check run on each commit", "no check runs, no annotations, no buttons"),
    Need(
        "issues",
        "write",
        "issues about bugs, comments, reactions and labels",
        "nothing is filed, and no command is answered",
    ),
    Need(
        "pull_requests",
        "write",
        "the pull requests to test, and the one comment on each",
        "pull requests are not tested, and get no comment",
    ),
    Need(
        "merge_queues",
        "read",
        "commits of merge queues",
        "a check that a merge queue requires never comes",
        optional=True,
    ),
)

#: Asked for only where regression tests are to be proposed: they take a branch of our own.
PROPOSING = (
    Need(
        "contents", "write", "branches of proposed regression tests", "no tests are proposed", optional=True
    ),
)

EVENTS = (
    Need("push", "", "commits to test", "commits are found by polling, minutes later"),
    Need("pull_request", "", "pull requests to test", "pull requests are found by polling, minutes later"),
    Need(
        "issue_comment", "", "commands such as `/assay run`", "commands are found by polling, minutes later"
    ),
    Need("issues", "", "our issues as people close and label them", "a closed issue is noticed hours later"),
    Need("check_run", "", "the buttons of a check run, and Re-run", "its buttons do nothing"),
    Need("check_suite", "", "Re-run all checks", "it does nothing"),
    Need("repository", "", "renames, transfers, archiving", "they are noticed an hour later"),
    Need(
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
        "default_permissions": {need.name: need.level for need in PERMISSIONS},
        "default_events": [need.name for need in EVENTS],
    }


def tables() -> str:
    """The permissions and events as Markdown, for the page on installing."""
    permissions = ["| permission | level | for | without it |", "|---|---|---|---|"]
    for need in (*PERMISSIONS, *PROPOSING):
        optional = " (optional)" if need.optional else ""
        permissions.append(f"| `{need.name}` | {need.level}{optional} | {need.why} | {need.lost} |")
    events = ["| event | for | without it |", "|---|---|---|"]
    for need in EVENTS:
        optional = " (optional)" if need.optional else ""
        events.append(f"| `{need.name}`{optional} | {need.why} | {need.lost} |")
    return "\n".join([*permissions, "", *events]) + "\n"
