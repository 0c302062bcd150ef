"""A repository of the double: pushes, pull requests, comments, buttons."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from tests.github import app_installations, checks, operations, pushes
from tests.github.git import ZERO
from tests.github.state import (
    CheckRun,
    Comment,
    Installation,
    Issue,
    Reaction,
    Repository,
    Status,
    WorkflowRun,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.github.core import GitHubCore

P = ParamSpec("P")
R = TypeVar("R")
Files = Mapping[str, str | None]


def _locked(
    act: Callable[Concatenate[RepositoryDouble, P], R],
) -> Callable[Concatenate[RepositoryDouble, P], R]:
    @wraps(act)
    def locked(self: RepositoryDouble, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.hub.lock:
            return act(self, *args, **kwargs)

    return locked


class RepositoryDouble:
    """A repository as its users see it. Accounts are named by login."""

    def __init__(self, hub: GitHubCore, record: Repository) -> None:
        self.hub, self.record = hub, record

    @property
    def name(self) -> str:
        """owner/name."""
        return self.record.full_name

    @property
    def issues(self) -> list[Issue]:
        """Issues that are no pull requests."""
        return [one for one in self.record.issues.values() if one.pull is None]

    @property
    def pulls(self) -> list[Issue]:
        """Pull requests."""
        return [one for one in self.record.issues.values() if one.pull is not None]

    @property
    def check_runs(self) -> list[CheckRun]:
        """Check runs, oldest first."""
        return list(self.record.check_runs.values())

    @property
    def reactions(self) -> list[Reaction]:
        """All reactions to issues and comments."""
        return list(self.record.reactions.values())

    @property
    def statuses(self) -> list[Status]:
        """Statuses of commits, oldest first."""
        return list(self.record.statuses)

    def comments(self, number: int) -> list[Comment]:
        """The comments on an issue or pull request."""
        return [one for one in self.record.comments.values() if one.issue == number]

    def head(self, branch: str = "main") -> str:
        """The commit of a branch."""
        return self.record.git.head(branch)

    @property
    def installation(self) -> Installation:
        """The App's installation here."""
        found = self.hub.world.installation_of(self.record)
        assert found is not None, f"the App is not installed in {self.name}"
        return found

    @_locked
    def commit(
        self,
        files: Files,
        branch: str = "main",
        message: str = "Change files",
        author: str = "",
        *,
        start: str = "",
        quiet: bool = False,
    ) -> str:
        """Pushes a commit, to a new branch from `start` (or the default branch); `quiet` sends no event."""
        author = author or self.record.owner.login
        by, before = self.hub.world.account(author), self.head(branch)
        start = start or self.head(self.record.default_branch)
        sha = self.record.git.commit(files, branch, message, author, start)
        if not quiet:
            pushes.pushed(self.hub, self.record, branch, before, by)
        return sha

    @_locked
    def force(self, branch: str, sha: str, by: str = "") -> None:
        """Force-pushes a branch."""
        before = self.head(branch)
        self.record.git.point(f"refs/heads/{branch}", sha)
        pushes.pushed(self.hub, self.record, branch, before, self._account(by))

    def delete_branch(self, branch: str, by: str = "") -> None:
        """Deletes a branch."""
        self.force(branch, ZERO, by)

    @_locked
    def open_pull(
        self,
        files: Files | None = None,
        *,
        branch: str = "change",
        base: str = "main",
        title: str = "Change files",
        body: str | None = None,
        author: str = "",
        fork: RepositoryDouble | None = None,
        draft: bool = False,
    ) -> int:
        """Opens a pull request from a branch here or in a fork, after pushing `files`; returns its number."""
        source = fork or self
        author = author or source.record.owner.login
        if files:
            source.commit(files, branch, title, author, start=source.head(base) or self.head(base))
        head = (source.record, branch)
        by = self.hub.world.account(author)
        return pushes.open_pull(self.hub, self.record, by, head, base, (title, body), draft).number

    @_locked
    def push_pull(self, number: int, files: Files, message: str = "Mend it", author: str = "") -> str:
        """Pushes a commit to a pull request; returns its new head."""
        one = self.pull(number).pull
        assert one is not None
        assert one.head_repository is not None
        source = RepositoryDouble(self.hub, one.head_repository)
        return source.commit(files, one.head_ref, message, author or self.pull(number).author.login)

    def pull(self, number: int) -> Issue:
        """A pull request."""
        return self.record.issues[number]

    @_locked
    def close_pull(self, number: int, by: str = "") -> None:
        """Closes a pull request unmerged."""
        pushes.close_pull(self.hub, self.record, self.pull(number), self._account(by))

    @_locked
    def reopen_pull(self, number: int, by: str = "") -> None:
        """Opens a closed pull request again."""
        pushes.reopen_pull(self.hub, self.record, self.pull(number), self._account(by))

    @_locked
    def merge_pull(self, number: int, by: str = "") -> str:
        """Merges a pull request; returns the merge commit."""
        return pushes.merge_pull(self.hub, self.record, self.pull(number), self._account(by))

    @_locked
    def set_draft(self, number: int, draft: bool, by: str = "") -> None:
        """Makes a pull request a draft, or ready."""
        pushes.set_draft(self.hub, self.record, self.pull(number), self._account(by), draft)

    @_locked
    def start_workflow(self, workflow: str, sha: str) -> WorkflowRun:
        """A workflow runs for a commit."""
        run = WorkflowRun(next(self.hub.world.ids), workflow, sha)
        self.record.workflow_runs.append(run)
        return run

    @_locked
    def end_workflow(
        self, run: WorkflowRun, artifacts: Mapping[str, bytes], conclusion: str = "success"
    ) -> None:
        """A run ends with artifacts, name → archive."""
        run.status, run.conclusion = "completed", conclusion
        run.artifacts = {(next(self.hub.world.ids), name): data for name, data in artifacts.items()}

    @_locked
    def merge_group(self, number: int, by: str = "") -> str:
        """Adds a pull request to a merge queue; returns the commit to check."""
        return pushes.merge_group(self.hub, self.record, number, self._account(by))

    @_locked
    def open_issue(self, title: str, body: str = "", author: str = "", labels: tuple[str, ...] = ()) -> int:
        """Opens an issue; returns its number."""
        by = self._account(author)
        return operations.open_issue(self.hub, self.record, by, title, body, list(labels)).number

    @_locked
    def close_issue(self, number: int, by: str = "", reason: str = "completed") -> None:
        """Closes an issue: completed, not_planned or duplicate."""
        operations.set_state(
            self.hub, self.record, self.record.issues[number], self._account(by), "closed", reason
        )

    @_locked
    def reopen_issue(self, number: int, by: str = "") -> None:
        """Reopens an issue."""
        operations.set_state(self.hub, self.record, self.record.issues[number], self._account(by), "open")

    @_locked
    def label(self, number: int, *names: str, by: str = "") -> None:
        """Replaces an issue's labels."""
        operations.set_labels(
            self.hub, self.record, self.record.issues[number], self._account(by), list(names)
        )

    @_locked
    def comment(self, number: int, author: str, body: str) -> int:
        """Adds a comment; returns its id."""
        by = self.hub.world.account(author)
        return operations.comment(self.hub, self.record, self.record.issues[number], by, body).id

    @_locked
    def edit_comment(self, comment: int, by: str, body: str) -> None:
        """Edits a comment."""
        operations.edit_comment(self.hub, self.record, self.record.comments[comment], self._account(by), body)

    @_locked
    def delete_comment(self, comment: int, by: str = "") -> None:
        """Deletes a comment."""
        operations.delete_comment(self.hub, self.record, self.record.comments[comment], self._account(by))

    @_locked
    def press(self, run: CheckRun, identifier: str, by: str = "") -> None:
        """Presses a button of a check run."""
        assert identifier in [action["identifier"] for action in run.fields.get("actions", ())]
        pressed = {"requested_action": {"identifier": identifier}}
        checks.tell(self.hub, self.record, run, "requested_action", self._account(by), **pressed)

    @_locked
    def rerequest(self, run: CheckRun, by: str = "") -> None:
        """Requests a re-run of a check run."""
        checks.tell(self.hub, self.record, run, "rerequested", self._account(by))

    @_locked
    def rename(self, name: str, by: str = "") -> None:
        """Renames the repository."""
        app_installations.rename(self.hub, self.record, name, self._account(by))

    @_locked
    def transfer(self, owner: str) -> None:
        """Transfers the repository."""
        by = self.record.owner
        app_installations.transfer(self.hub, self.record, self.hub.world.account(owner), by)

    @_locked
    def archive(self, archived: bool = True, by: str = "") -> None:
        """Archives the repository, or unarchives it."""
        self.record.archived = archived
        action = "archived" if archived else "unarchived"
        app_installations.tell_repository(self.hub, self.record, action, self._account(by))

    @_locked
    def delete(self, by: str = "") -> None:
        """Deletes the repository."""
        app_installations.delete(self.hub, self.record, self._account(by))

    @_locked
    def disable_issues(self) -> None:
        """Disables issues; GitHub sends no event."""
        self.record.has_issues = False

    @_locked
    def collaborator(self, login: str, role: str) -> None:
        """Sets a collaborator's role: read, triage, write, maintain, admin; none removes it."""
        self.hub.world.account(login)
        self.record.roles.pop(login, None)
        if role != "none":
            self.record.roles[login] = role

    @_locked
    def fork(self, owner: str, name: str = "") -> RepositoryDouble:
        """A fork, without the App."""
        by = self.hub.world.account(owner)
        made = self.hub.create(by, name or self.record.name, self.record, private=self.record.private)
        return RepositoryDouble(self.hub, made)

    def told(self) -> dict[str, Any]:
        """The public texts without ids and times, to compare the results of two services."""
        runs = [
            run.fields | {"head": run.head_sha, "annotations": run.annotations} for run in self.check_runs
        ]
        return {
            "issues": [(one.title, one.body, one.state, sorted(one.labels)) for one in self.issues],
            "comments": [(one.issue, one.author.login, one.body) for one in self.record.comments.values()],
            "reactions": sorted((one.issue, one.author.login, one.content) for one in self.reactions),
            "check_runs": runs,
        }

    def _account(self, login: str) -> Any:
        return self.hub.world.account(login) if login else self.record.owner
