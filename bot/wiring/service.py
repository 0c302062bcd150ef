"""The service: deliveries become rows, rows become work, work becomes effects, effects are published."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from bot.artifacts import Artifacts
from bot.background import ServiceParts
from bot.bugs import issue_events as issues
from bot.campaigns import intents
from bot.campaigns.campaign_queue import CampaignQueue
from bot.commands import comment_events as comments
from bot.commands.command_execution import CommandExecutor
from bot.commands.comment_queue import CommentQueue
from bot.commands.job_reply import post_job_reply
from bot.config import RepositoryConfig, resolve_config
from bot.errors import InternalError
from bot.github.github_api import CacheCleaner
from bot.github.outbox_queue import OutboxQueue
from bot.github.reader import Reader
from bot.github.repositories import Repositories
from bot.jobs.job_queue import JobQueue
from bot.jobs.registry import Lane
from bot.pulls import check_run_actions
from bot.pulls import pull_lifecycle as pulls
from bot.pulls.check_run_loop import CheckRunLoop
from bot.pulls.check_run_updater import CheckRunUpdater
from bot.pulls.pull_evaluation import refresh_pull
from bot.settings import Settings
from bot.store import Database, Session
from bot.targets import installations, merge_groups
from bot.targets import repositories as repository_events
from bot.targets.dependencies import Dependencies, RetentionPolicy
from bot.targets.event_filter import EventFilter
from bot.targets.task_queue import TaskQueue
from bot.toolchains.policy import ToolchainPolicy
from bot.webhooks.inbox_queue import Handler
from bot.webhooks.intents import (
    CampaignIntent,
    CheckIntent,
    CiIntent,
    CommentIntent,
    InstallationIntent,
    Intent,
    IssueIntent,
    MergeGroupIntent,
    PullIntent,
    RepositoryIntent,
)
from bot.wiring.campaigns import campaign_services, runner
from bot.wiring.command_tools import CommandTools, NoGitHubAccess
from bot.wiring.github import connect_github, make_dispatcher, make_sinks, repositories
from bot.worker import Worker

#: A second push to the same branch within this time replaces the first one's campaign.
START_DELAY = timedelta(seconds=1)


def service(settings: Settings, database: Database) -> ServiceParts:
    """All parts. The embedded database belongs to one process, which holds the lock of its folder."""
    github_api = connect_github(settings, database)
    reader = Reader(github_api) if github_api is not None else None
    mirrors = repositories(settings, github_api)
    policy = ToolchainPolicy(
        settings.isolation,
        settings.toolchain_packages,
        data_dir=settings.data_dir,
        urls=settings.toolchain_urls,
    )
    services = campaign_services(
        settings,
        repositories=mirrors,
        resolve=policy.resolve,
        provision=policy.provision,
        runner=runner(settings, make_dispatcher(settings, github_api)),
    )
    campaign_workers = [
        Worker(
            CampaignQueue(database, settings, services, name=f"campaigns-{number}" if number else "campaigns")
        )
        for number in range(settings.runner_slots)
    ]
    job_queue = partial(JobQueue, database, settings, services, github_reader=reader, reply=post_job_reply)
    long = Worker(job_queue(Lane.LONG))

    def wake_campaigns() -> None:
        for worker in campaign_workers:
            worker.wake()

    def wake() -> None:
        wake_campaigns()
        long.wake()

    quick = Worker(job_queue(Lane.QUICK, wake=wake))
    tools = CommandTools(wake=quick.wake, wake_jobs=long.wake)
    refresh = partial(refresh_pull, database, reader)
    executor = CommandExecutor(database, reader or NoGitHubAccess(), refresh, tools)
    commands = Worker(CommentQueue(database, executor))
    start = partial(intents.handle, wake=wake_campaigns, start_delay=START_DELAY)
    handle = dispatch(
        {
            CampaignIntent: start,
            PullIntent: partial(pulls.handle, wake=quick.wake),
            CheckIntent: partial(check_run_actions.handle, wake=quick.wake),
            CiIntent: partial(intents.resume, wake=wake_campaigns),
            IssueIntent: issues.handle,
            CommentIntent: partial(comments.handle, wake=commands.wake),
            InstallationIntent: installations.handle,
            RepositoryIntent: repository_events.handle,
            MergeGroupIntent: partial(merge_groups.handle, start=start),
        }
    )
    event_filter = EventFilter(
        handle,
        app=settings.github_app_id or "",
        forks=frozenset(one.partition("=")[2].lower() for one in settings.proposal_forks),
        can_ask_github=reader is not None,
    )
    dependencies = Dependencies(
        database=database,
        handle_intent=event_filter,
        start=start,
        load_config=partial(_configuration, mirrors),
        data_dir=settings.data_dir,
        artifacts=Artifacts(settings.artifacts_url, settings.data_dir),
        github=reader,
        watch=settings.watch,
        retention_policy=RetentionPolicy(
            removed=timedelta(days=settings.delete_after_days),
            reports=timedelta(days=settings.keep_reports_days) if settings.keep_reports_days else None,
            deliveries=timedelta(days=settings.keep_deliveries_days),
            toolchains=timedelta(days=settings.toolchain_cache_days),
            toolchain_bytes=settings.toolchain_cache_gib << 30,
        ),
    )
    tasks = Worker(TaskQueue(dependencies))
    publisher = Worker(OutboxQueue(database, *make_sinks(settings, github_api)))
    for part in (*campaign_workers, quick, long, commands, tasks, publisher):
        part.start(free_other_leases=database.is_sqlite)
    return ServiceParts(
        handle=event_filter,
        backgrounds=(
            *((CacheCleaner(github_api),) if github_api is not None else ()),
            *campaign_workers,
            publisher,
            quick,
            long,
            commands,
            tasks,
            CheckRunLoop(CheckRunUpdater(database, settings.data_dir / "corpus")),
        ),
    )


def dispatch(handlers: Mapping[type[Any], Callable[[Session, Any], object]]) -> Handler:
    """Handles each intent by the handler of its class."""

    def handle(session: Session, intent: Intent) -> object:
        handler = handlers.get(type(intent))
        if handler is None:
            raise InternalError(f"nothing carries out a {type(intent).__name__}")
        return handler(session, intent)

    return handle


def _configuration(mirrors: Repositories, target: str, commit: str) -> RepositoryConfig | None:
    """The configuration of a repository at a commit; None if nothing is configured or pinned."""
    return resolve_config(partial(mirrors.read, target, commit))
