"""Operations on issues, comments, labels and statuses; they change records and send events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.github import pull_views, views
from tests.github.calls import invalid
from tests.github.state import Account, Comment, Issue, Label, Reaction, Repository, Status

if TYPE_CHECKING:
    from tests.github.core import GitHubCore

#: Characters ("Issue bodies and comments", and GitHub's own error messages).
LONGEST_BODY, LONGEST_TITLE, LONGEST_LABEL = 65_536, 256, 50
#: Characters of a status's description, and statuses of one commit and context ("Commit statuses").
LONGEST_DESCRIPTION, MOST_STATUSES = 140, 1000


def check_text(resource: str, name: str, text: str | None, most: int) -> None:
    """Raises RefusedError 422 as GitHub does."""
    if text is not None and len(text) > most:
        raise invalid(resource, name, f"{name} is too long (maximum is {most} characters)")


def open_issue(
    hub: GitHubCore, repo: Repository, author: Account, title: str, body: str | None, labels: list[str]
) -> Issue:
    """A new issue."""
    issue = new_issue(hub, repo, author, title, body)
    issue.labels = [ensure_label(hub, repo, name).name for name in labels]
    tell_issue(hub, repo, issue, "opened", author)
    for name in issue.labels:
        tell_issue(
            hub, repo, issue, "labeled", author, label=views.label(hub, repo, repo.labels[name.lower()])
        )
    return issue


def new_issue(hub: GitHubCore, repo: Repository, author: Account, title: str, body: str | None) -> Issue:
    """A new issue or pull request, without an event."""
    if not title.strip():
        raise invalid("Issue", "title", code="missing_field")
    check_text("Issue", "title", title, LONGEST_TITLE)
    check_text("Issue", "body", body, LONGEST_BODY)
    number, at = len(repo.issues) + 1, hub.world.clock()
    repo.issues[number] = Issue(next(hub.world.ids), number, author, title, body, at, at)
    return repo.issues[number]


def edit_issue(hub: GitHubCore, repo: Repository, issue: Issue, by: Account, changes: dict[str, Any]) -> None:
    """Changes an issue's title, text, labels or state."""
    check_text("Issue", "title", changes.get("title"), LONGEST_TITLE)
    check_text("Issue", "body", changes.get("body"), LONGEST_BODY)
    if "labels" in changes:
        names = [one if isinstance(one, str) else one["name"] for one in changes["labels"] or ()]
        set_labels(hub, repo, issue, by, names)
    edited = {name: changes[name] for name in ("title", "body") if name in changes}
    if edited:
        before = {name: {"from": getattr(issue, name) or ""} for name in edited}
        for name, value in edited.items():
            setattr(issue, name, value)
        touch(hub, issue)
        tell_issue(hub, repo, issue, "edited", by, changes=before)
    wanted = changes.get("state")
    if wanted and wanted != issue.state:
        set_state(hub, repo, issue, by, wanted, changes.get("state_reason"))
    elif wanted == "closed" and changes.get("state_reason"):
        issue.state_reason = changes["state_reason"]


def set_state(
    hub: GitHubCore, repo: Repository, issue: Issue, by: Account, state: str, reason: str | None = None
) -> None:
    """Closes or opens an issue again."""
    closing = state == "closed"
    issue.state = state
    issue.closed_at, issue.closed_by = (hub.world.clock(), by) if closing else (None, None)
    if issue.pull is None:
        issue.state_reason = reason or ("completed" if closing else "reopened")
    touch(hub, issue)
    tell_issue(hub, repo, issue, "closed" if closing else "reopened", by)


def ensure_label(hub: GitHubCore, repo: Repository, name: str, color: str = "ededed") -> Label:
    """A label, created if it is missing."""
    check_text("Label", "name", name, LONGEST_LABEL)
    if name.lower() not in repo.labels:
        repo.labels[name.lower()] = Label(next(hub.world.ids), name, color)
    return repo.labels[name.lower()]


def set_labels(hub: GitHubCore, repo: Repository, issue: Issue, by: Account, names: list[str]) -> None:
    """Replaces an issue's labels; sends an event for each added or removed one."""
    wanted = list(dict.fromkeys(ensure_label(hub, repo, name).name for name in names))
    gone = [name for name in issue.labels if name not in wanted]
    come = [name for name in wanted if name not in issue.labels]
    issue.labels = wanted
    for action, changed in (("unlabeled", gone), ("labeled", come)):
        for name in changed:
            touch(hub, issue)
            label = views.label(hub, repo, repo.labels[name.lower()])
            tell_issue(hub, repo, issue, action, by, label=label)


def comment(hub: GitHubCore, repo: Repository, issue: Issue, author: Account, body: str) -> Comment:
    """A new comment."""
    check_body(body)
    at = hub.world.clock()
    made = Comment(next(hub.world.ids), issue.number, author, body, at, at)
    repo.comments[made.id] = made
    touch(hub, issue)
    tell_comment(hub, repo, made, "created", author)
    return made


def edit_comment(hub: GitHubCore, repo: Repository, one: Comment, by: Account, body: str) -> None:
    """Changes a comment's text."""
    check_body(body)
    before, one.body, one.updated_at = one.body, body, hub.world.clock()
    tell_comment(hub, repo, one, "edited", by, changes={"body": {"from": before}})


def delete_comment(hub: GitHubCore, repo: Repository, one: Comment, by: Account) -> None:
    """Takes a comment away."""
    tell_comment(hub, repo, one, "deleted", by)
    del repo.comments[one.id]


def check_body(body: str) -> None:
    """Raises RefusedError 422 for an empty or too long comment."""
    if not body.strip():
        raise invalid("IssueComment", "body", code="missing_field")
    check_text("IssueComment", "body", body, LONGEST_BODY)


def react(
    hub: GitHubCore, repo: Repository, author: Account, content: str, number: int, comment_id: int | None
) -> tuple[Reaction, bool]:
    """A reaction, and whether it is new: repeated reactions are one."""
    if content not in views.CONTENTS:
        raise invalid("Reaction", "content", code="invalid")
    for one in views.reactions(repo, number, comment_id):
        if (one.author, one.content) == (author, content):
            return one, False
    made = Reaction(next(hub.world.ids), author, content, number, comment_id, hub.world.clock())
    repo.reactions[made.id] = made
    return made, True


def touch(hub: GitHubCore, issue: Issue) -> None:
    """Sets the issue's update time."""
    issue.updated_at = hub.world.clock()


def tell_issue(
    hub: GitHubCore, repo: Repository, issue: Issue, action: str, by: Account, **more: Any
) -> None:
    """Sends the event of an issue; pull requests have their own."""
    if issue.pull is None:
        payload = {"action": action, "issue": views.issue(hub, repo, issue)}
        hub.emit("issues", payload | more, repo, by)
    elif action in ("edited", "closed", "reopened"):
        tell_pull(hub, repo, issue, action, by, **more)


def tell_pull(hub: GitHubCore, repo: Repository, issue: Issue, action: str, by: Account, **more: Any) -> None:
    """Sends the event of a pull request."""
    seen = pull_views.pull(hub, repo, issue)
    hub.emit(
        "pull_request", {"action": action, "number": issue.number, "pull_request": seen} | more, repo, by
    )


def tell_comment(
    hub: GitHubCore, repo: Repository, one: Comment, action: str, by: Account, **more: Any
) -> None:
    """Sends the event of a comment."""
    issue = views.issue(hub, repo, repo.issues[one.issue])
    payload = {"action": action, "issue": issue, "comment": views.comment(hub, repo, one)}
    hub.emit("issue_comment", payload | more, repo, by)


def set_status(hub: GitHubCore, repo: Repository, by: Account, sha: str, output: dict[str, Any]) -> Status:
    """Adds a status to a commit."""
    check_text("Status", "description", output.get("description"), LONGEST_DESCRIPTION)
    context, before = output.get("context", "default"), repo.statuses
    if sum(one.sha == sha and one.context == context for one in before) >= MOST_STATUSES:
        raise invalid("Status", "base", "This SHA and context has reached the maximum number of statuses.")
    reported = (output["state"], output.get("description"), output.get("target_url"))
    repo.statuses.append(Status(next(hub.world.ids), sha, by, context, *reported, hub.world.clock()))
    return repo.statuses[-1]
