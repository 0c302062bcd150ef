"""Operations on the App's installations and on whole repositories, and their events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.github import views
from tests.github.state import Account, Installation, Repository

if TYPE_CHECKING:
    from tests.github.core import GitHubCore


def install(hub: GitHubCore, account: Account, repositories: list[Repository]) -> Installation:
    """Installs the App with the permissions and events it currently requests."""
    made = Installation(
        next(hub.world.ids), account, dict(hub.permissions), list(hub.events), hub.world.clock()
    )
    made.repositories = {repo.id for repo in repositories}
    hub.world.installations[made.id] = made
    tell(hub, made, "created", account, repositories=_named(repositories))
    return made


def tell(hub: GitHubCore, one: Installation, action: str, by: Account, **more: Any) -> None:
    """Sends the event of an installation."""
    payload = {"action": action, "installation": views.installation(hub, one)}
    hub.emit("installation", payload | more, None, by, one)


def choose(hub: GitHubCore, one: Installation, added: list[Repository], removed: list[Repository]) -> None:
    """Adds repositories to an installation, or removes them."""
    one.repositories |= {repo.id for repo in added}
    one.repositories -= {repo.id for repo in removed}
    for action, changed in (("added", added), ("removed", removed)):
        if changed:
            payload = {
                "action": action,
                "installation": views.installation(hub, one),
                "repository_selection": "selected",
                "repositories_added": _named(added),
                "repositories_removed": _named(removed),
                "requester": None,
            }
            hub.emit("installation_repositories", payload, None, one.account, one)


def suspend(hub: GitHubCore, one: Installation, suspended: bool) -> None:
    """Suspends or resumes an installation."""
    one.suspended_at = hub.world.clock() if suspended else None
    tell(hub, one, "suspend" if suspended else "unsuspend", one.account)


def uninstall(hub: GitHubCore, one: Installation) -> None:
    """Removes the App from an account."""
    one.deleted = True
    repositories = [hub.world.repositories[number] for number in sorted(one.repositories)]
    tell(hub, one, "deleted", one.account, repositories=_named(repositories))


def accept(hub: GitHubCore, one: Installation, permissions: dict[str, str], events: list[str]) -> None:
    """The owner accepts the permissions and events that the App currently requests."""
    one.permissions, one.events = dict(permissions), list(events)
    tell(hub, one, "new_permissions_accepted", one.account)


def tell_repository(hub: GitHubCore, repo: Repository, action: str, by: Account, **more: Any) -> None:
    """Sends the event of a repository."""
    hub.emit("repository", {"action": action} | more, repo, by)


def rename(hub: GitHubCore, repo: Repository, name: str, by: Account) -> None:
    """Renames a repository; the old name redirects."""
    before, repo.name = repo.name, name
    hub.world.names[repo.full_name.lower()] = repo.id
    _move(hub, repo)
    changes = {"repository": {"name": {"from": before}}}
    tell_repository(hub, repo, "renamed", by, changes=changes)


def transfer(hub: GitHubCore, repo: Repository, owner: Account, by: Account) -> None:
    """Transfers a repository; the App counts as installed at the new owner, too."""
    before, repo.owner = repo.owner, owner
    hub.world.names[repo.full_name.lower()] = repo.id
    _move(hub, repo)
    changes = {"owner": {"from": {"user": views.user(hub, before)}}}
    tell_repository(hub, repo, "transferred", by, changes=changes)


def delete(hub: GitHubCore, repo: Repository, by: Account) -> None:
    """Deletes a repository; pull requests from it stay, without their head."""
    tell_repository(hub, repo, "deleted", by)
    repo.deleted = True
    for other in hub.world.repositories.values():
        for issue in other.issues.values():
            if issue.pull and issue.pull.head_repository is repo and other is not repo:
                issue.pull.head_repository = None


def _move(hub: GitHubCore, repo: Repository) -> None:
    """Moves the commits to the path of the new name, with a link from the old one."""
    old, new = repo.git.path, hub.folder / repo.owner.login / f"{repo.name}.git"
    new.parent.mkdir(parents=True, exist_ok=True)
    old.rename(new)
    old.symlink_to(new)
    repo.git.path = new


def _named(repositories: list[Repository]) -> list[dict[str, Any]]:
    return [
        {
            "id": repo.id,
            "node_id": views.node("R", repo.id),
            "name": repo.name,
            "full_name": repo.full_name,
            "private": repo.private,
        }
        for repo in repositories
    ]
