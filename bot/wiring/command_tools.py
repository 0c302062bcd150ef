"""What commands use of pull requests and jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from bot.errors import RefusalError
from bot.pulls import pull_lifecycle
from bot.store import Session, jobs, now
from bot.store.campaigns import after_commit
from bot.store.models import Pull

Wake = Callable[[], None]


class CommandTools:
    """`bot.commands.command_context.Tools` over pull requests and jobs."""

    def __init__(self, *, wake: Wake, wake_jobs: Wake) -> None:
        self._wake, self._wake_jobs = wake, wake_jobs

    def run(
        self, session: Session, pull: Pull, *, requested_by: str, name: str, overrides: Mapping[str, Any]
    ) -> str:
        """Approves the head of a pull request and requests its test, once for each `name`; a summary."""
        at = now()
        pull_lifecycle.approve(session, pull, pull.head, requested_by, at)
        pull_lifecycle.schedule_evaluation(
            session,
            pull.target,
            pull.number,
            at,
            at,
            again=f"requested by {requested_by} ({name})",
            requested_by=requested_by,
            overrides=overrides,
            wake=self._wake,
        )
        return f"{requested_by} approved commit {pull.head[:12]} and requested its test"

    def stop(self, session: Session, pull: Pull, reason: str, commented_at: datetime) -> int:
        """Ends the campaigns and pending requests of a pull request; returns their number."""
        return pull_lifecycle.stop_testing(session, pull, reason, commented_at, now(), wake=self._wake)

    def enqueue(
        self,
        session: Session,
        kind: str,
        target: str,
        key: str,
        *,
        bug_id: int | None = None,
        arguments: Mapping[str, Any] | None = None,
        requested_by: str = "",
    ) -> object:
        """Enqueues a job, once for each key."""
        after_commit(session, self._wake_jobs)
        return jobs.enqueue(
            session, kind, target, key, now(), bug_id=bug_id, arguments=arguments, requested_by=requested_by
        )


class NoGitHubAccess:
    """GitHub without credentials: permissions are unknown, so nobody has any."""

    def permission(self, target: str, login: str) -> str:
        """Raises RefusalError."""
        raise RefusalError(
            f"whether {login} may give commands in {target} cannot be asked: set ASSAY_GITHUB_APP_ID and "
            "ASSAY_GITHUB_PRIVATE_KEY_FILE, or ASSAY_GITHUB_TOKEN"
        )
