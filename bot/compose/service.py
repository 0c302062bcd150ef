"""A whole Assay process: deliveries become rows, rows become work, work becomes effects, effects go out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from bot import service as service_parts
from bot.bugs import intake as issues
from bot.campaigns import intents
from bot.campaigns.engine import Engine
from bot.commands import intake as comments
from bot.commands.worker import Worker as Commands
from bot.compose.campaigns import campaign_services
from bot.compose.forge import github_hub, repositories, sinks
from bot.compose.tools import CommandTools, Unasked
from bot.config import RepositoryConfig, config_of
from bot.errors import InternalError
from bot.github.hub import Tending
from bot.github.publisher import Publisher
from bot.github.reading import Reader
from bot.github.repositories import Repositories
from bot.jobs.registry import Lane
from bot.jobs.worker import Worker as Jobs
from bot.pulls import intake as pulls
from bot.pulls import pressing
from bot.pulls.checking import Checks
from bot.pulls.looking import refresh
from bot.pulls.watch import CheckRuns
from bot.settings import Settings
from bot.store import Database, Session
from bot.targets import installations, merge_groups
from bot.targets import repositories as repository_events
from bot.targets.gate import Gate
from bot.targets.keeper import Keeper
from bot.targets.world import Keeping, World
from bot.webhooks.intents import (
    CampaignIntent,
    CheckIntent,
    CommentIntent,
    InstallationIntent,
    Intent,
    IssueIntent,
    MergeGroupIntent,
    PullIntent,
    RepositoryIntent,
)
from bot.webhooks.reader import Handler

#: A second push to the same branch within this time spares the first one's campaign; people do it to mend a
#: slip, tools when they push many commits one by one.
SETTLE = timedelta(seconds=1)


def service(settings: Settings, database: Database) -> service_parts.Services:
    """All of it. The embedded database belongs to one process, which holds the lock on its folder by now."""
    hub = github_hub(settings, database)
    reader = Reader(hub) if hub is not None else None
    mirrors = repositories(settings, hub)
    services = campaign_services(settings, repositories=mirrors)
    engine = Engine(database, settings, services)
    long = Jobs(database, settings, services, Lane.LONG, forge=reader)

    def wake() -> None:
        engine.wake()
        long.wake()

    quick = Jobs(database, settings, services, Lane.QUICK, forge=reader, wake=wake)
    tools = CommandTools(wake=quick.wake, wake_jobs=long.wake)
    commands = Commands(database, reader or Unasked(), partial(refresh, database, reader), tools)
    start = partial(intents.handle, wake=engine.wake, settle=SETTLE)
    handle = dispatch(
        {
            CampaignIntent: start,
            PullIntent: partial(pulls.handle, wake=quick.wake),
            CheckIntent: partial(pressing.handle, wake=quick.wake),
            IssueIntent: issues.handle,
            CommentIntent: partial(comments.handle, wake=commands.wake),
            InstallationIntent: installations.handle,
            RepositoryIntent: repository_events.handle,
            MergeGroupIntent: partial(merge_groups.handle, start=start),
        }
    )
    gate = Gate(handle, app=settings.github_app_id or "", asks=reader is not None)
    world = World(
        database=database,
        carry_out=gate,
        start=start,
        configure=partial(_configuration, mirrors),
        data_dir=settings.data_dir,
        github=reader,
        watch=settings.watch,
        keeping=Keeping(
            timedelta(days=settings.forget_after_days), timedelta(days=settings.keep_deliveries_days)
        ),
    )
    keeper = Keeper(world)
    publisher = Publisher(database, *sinks(settings, hub))
    for part in (engine, quick, long, keeper, publisher):
        part.start(steal=database.is_sqlite)
    return service_parts.Services(
        handle=gate,
        backgrounds=(
            *((Tending(hub),) if hub is not None else ()),
            engine,
            publisher,
            quick,
            long,
            commands,
            keeper,
            CheckRuns(Checks(database, settings.data_dir / "corpus")),
        ),
    )


def dispatch(handlers: Mapping[type[Any], Callable[[Session, Any], object]]) -> Handler:
    """Carries out each intent by the handler of its class."""

    def handle(session: Session, intent: Intent) -> object:
        handler = handlers.get(type(intent))
        if handler is None:
            raise InternalError(f"nothing carries out a {type(intent).__name__}")
        return handler(session, intent)

    return handle


def _configuration(mirrors: Repositories, target: str, commit: str) -> RepositoryConfig | None:
    """The configuration of a repository at a commit; None where it says nothing of us."""
    return config_of(partial(mirrors.read, target, commit))
