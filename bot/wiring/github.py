"""GitHub: who we are there, and where effects go."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from bot.errors import InternalError, SettingsError
from bot.github.repositories import Repositories
from bot.github.requests import Sink
from bot.runners.protocol import Dispatcher
from bot.settings import Settings
from bot.store import Database, now

# What speaks to GitHub imports a library of cryptography and a client of its whole API. Commands that ask
# GitHub nothing do without, which is a fifth of their start.
if TYPE_CHECKING:
    from bot.github.github_api import GitHubApi
    from bot.github.identity import Credentials


def make_sinks(settings: Settings, github_api: GitHubApi | None) -> tuple[Sink, Callable[[], datetime], Sink]:
    """Where effects go, the clock, and where those of targets in dry-run mode go."""
    from bot.github.dry_run import DryRunSink

    dry_run = DryRunSink(settings.data_dir / "outbox")
    if settings.github_mode == "dry-run":
        return dry_run, now, dry_run
    if github_api is None:
        raise InternalError("GitHub's live mode without anything to sign in with")
    from bot.github.live_sink import GitHubSink

    return GitHubSink(github_api), now, dry_run


def make_dispatcher(settings: Settings, github_api: GitHubApi | None) -> Dispatcher | None:
    """What starts the workflow of runners; None where the settings name none."""
    if settings.runner_workflow is None or github_api is None:
        return None
    from bot.github.workflow_dispatch import WorkflowDispatcher

    place, _, ref = settings.runner_workflow.partition("@")
    repository, _, workflow = place.rpartition("/")
    return WorkflowDispatcher(github_api, repository, workflow, ref)


def connect_github(settings: Settings, database: Database | None) -> GitHubApi | None:
    """GitHub as the settings' App or token; None without either. A database makes all processes share limits.

    Raises SettingsError: the private key cannot be read.
    """
    credentials = _credentials(settings)
    if credentials is None:
        return None
    from bot.github.github_api import GitHubApi
    from bot.github.rate_limiter import RateLimiter

    rate_limiter = RateLimiter(database) if database is not None else None
    return GitHubApi(credentials, settings.github_api_url, rate_limiter=rate_limiter)


def _credentials(settings: Settings) -> Credentials | None:
    key_file, token = settings.github_private_key_file, settings.github_token
    if not (settings.github_app_id and key_file) and not token:
        return None
    from bot.github.identity import Credentials

    if settings.github_app_id and key_file:
        try:
            key = key_file.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"ASSAY_GITHUB_PRIVATE_KEY_FILE: cannot read {key_file}: {error}") from None
        return Credentials(app_id=settings.github_app_id, private_key=key)
    assert token is not None
    return Credentials(token=token.get_secret_value())


def repositories(settings: Settings, github_api: GitHubApi | None = None) -> Repositories:
    """Where commits are read from; `github_api` gives the tokens for private ones."""
    github_api = github_api or connect_github(settings, None)
    token = github_api.git_token if github_api is not None else None
    ci = None
    if github_api is not None:
        from bot.github.workflow_artifacts import WorkflowArtifacts

        ci = WorkflowArtifacts(github_api)
    return Repositories(settings.git_url, settings.data_dir / "git", token, ci)
