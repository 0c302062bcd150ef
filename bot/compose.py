"""Composition: the rooms plugged into one another, for the service and for the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from bot import service as service_parts
from bot.campaigns import intents
from bot.campaigns.catalogue import catalogued
from bot.campaigns.engine import Engine
from bot.campaigns.services import OnEvent, Reports, Services
from bot.config import RepositoryConfig, default_config, parse_config
from bot.config.parse import CONFIG_PATH
from bot.errors import InternalError, SettingsError
from bot.github.dry_run import DryRun
from bot.github.governor import Governor
from bot.github.hub import Hub
from bot.github.identity import Credentials
from bot.github.live import GitHub
from bot.github.publisher import Publisher
from bot.github.reading import Reader
from bot.github.repositories import Repositories
from bot.github.requests import Sink
from bot.pulls import intake
from bot.pulls.checking import Checks
from bot.pulls.deciding import Decider
from bot.pulls.forge import Forge
from bot.pulls.looking import Looker
from bot.pulls.watch import CheckRuns, Desk
from bot.reports.campaign import CampaignReports
from bot.runners import Runner, make_runner, run_tool
from bot.settings import Settings
from bot.store import Database, Session, now
from bot.store.pulls import LOOK
from bot.targets import installations, merge_groups
from bot.targets import repositories as whole_repositories
from bot.targets.gate import Gate
from bot.targets.keeper import Keeper
from bot.targets.merge_groups import Start
from bot.targets.world import Keeping, World
from bot.toolchains import provision, resolve
from bot.webhooks.intents import (
    CampaignIntent,
    InstallationIntent,
    Intent,
    MergeGroupIntent,
    PullIntent,
    RepositoryIntent,
)
from bot.webhooks.reader import Handler
from fuzzing.execute.limits import Limits
from fuzzing.execute.shard import Shard
from fuzzing.triage.signature import sign

#: A second push to the same branch within this time spares the first one's campaign; people do it to mend a
#: slip, tools when they push many commits one by one.
SETTLE = timedelta(seconds=1)


def campaign_services(settings: Settings, **replaced: Any) -> Services:
    """What campaigns work with; any field of `Services` may be replaced."""
    fields: dict[str, Any] = {
        "repositories": repositories(settings),
        "parse_config": parse_config,
        "default_config": default_config,
        "restore_config": RepositoryConfig.from_json,
        "resolve": resolve,
        "provision": provision,
        "make_shard": make_shard,
        "runner": runner(),
        "run_tool": _run_tool,
        "sign": sign,
        "reports": reports(settings.data_dir),
        "catalogues": catalogued,
    }
    return Services(**(fields | replaced))


def service(settings: Settings, database: Database) -> service_parts.Services:
    """A whole Assay process: deliveries become campaigns, campaigns run, effects are published."""
    hub = github_hub(settings, database)
    services = campaign_services(settings, repositories=repositories(settings, hub))
    engine = Engine(database, settings, services)
    # The embedded database belongs to one process, which holds the lock on its folder by now.
    engine.start(steal=database.is_sqlite)
    publisher = Publisher(database, *_sinks(settings, hub))

    def test(session: Session, intent: CampaignIntent) -> None:
        intents.handle(session, intent, wake=engine.wake, settle=SETTLE)

    desk = pull_desk(settings, database, None, engine.wake)
    desk.start(steal=database.is_sqlite)

    def hear(session: Session, intent: PullIntent) -> None:
        intake.handle(session, intent, wake=desk.wake)

    handle = Gate(
        dispatch({CampaignIntent: test, PullIntent: hear, **watching_handlers(test)}),
        app=settings.github_app_id or "",
        asks=hub is not None,
    )
    keeper = Keeper(watched_world(settings, database, services, hub, handle, test))
    keeper.start(steal=database.is_sqlite)
    checks = CheckRuns(Checks(database, settings.data_dir / "corpus"))
    return service_parts.Services(
        handle=handle,
        backgrounds=(
            *((Thread("github", hub.run_forever),) if hub is not None else ()),
            Thread("campaigns", engine.run_forever),
            Thread("publisher", publisher.run_forever),
            desk,
            checks,
            keeper,
        ),
    )


def watching_handlers(start: Start) -> dict[type[Any], Callable[[Session, Any], object]]:
    """Who carries out what happens to installations, repositories and merge queues."""
    return {
        InstallationIntent: installations.handle,
        RepositoryIntent: whole_repositories.handle,
        MergeGroupIntent: partial(merge_groups.handle, start=start),
    }


def watched_world(
    settings: Settings, database: Database, services: Services, hub: Hub | None, handle: Handler, start: Start
) -> World:
    """What the duties work with; without a hub they do what needs no GitHub."""

    def configure(target: str, commit: str) -> RepositoryConfig | None:
        read = partial(services.repositories.read, target, commit)
        text = read(CONFIG_PATH)
        return default_config(read) if text is None else parse_config(text, CONFIG_PATH)

    keeping = Keeping(
        timedelta(days=settings.forget_after_days), timedelta(days=settings.keep_deliveries_days)
    )
    return World(
        database=database,
        carry_out=handle,
        start=start,
        configure=configure,
        data_dir=settings.data_dir,
        github=Reader(hub) if hub is not None else None,
        watch=settings.watch,
        keeping=keeping,
    )


def pull_desk(settings: Settings, database: Database, forge: Forge | None, wake: Callable[[], None]) -> Desk:
    """What looks at pull requests; `forge` is GitHub, where it can be asked."""
    decider = Decider(repositories(settings), parse_config, default_config, forge)
    looker = Looker(database, decider, forge, wake)
    return Desk(database, {LOOK: looker.look})


def dispatch(handlers: Mapping[type[Any], Callable[[Session, Any], object]]) -> Handler:
    """Carries out each intent by the handler of its class."""

    def handle(session: Session, intent: Intent) -> object:
        handler = handlers.get(type(intent))
        if handler is None:
            raise InternalError(f"nothing carries out a {type(intent).__name__}")
        return handler(session, intent)

    return handle


@dataclass(frozen=True)
class Thread:
    """Something that runs as long as the service does, under a name."""

    name: str
    run_forever: Callable[[Event], None]


def _sinks(settings: Settings, hub: Hub | None) -> tuple[Sink, Callable[[], datetime], Sink]:
    """Where effects go, the clock, and where those of targets in dry-run mode go."""
    rehearsal = DryRun(settings.data_dir / "outbox")
    if settings.github_mode == "dry-run":
        return rehearsal, now, rehearsal
    if hub is None:
        raise InternalError("GitHub's live mode without anything to sign in with")
    return GitHub(hub), now, rehearsal


def github_hub(settings: Settings, database: Database | None) -> Hub | None:
    """GitHub as the settings' App or token; None without either. A database makes all processes share limits.

    Raises SettingsError: the private key cannot be read.
    """
    credentials = _credentials(settings)
    if credentials is None:
        return None
    governor = Governor(database) if database is not None else None
    return Hub(credentials, settings.github_api_url, governor=governor)


def _credentials(settings: Settings) -> Credentials | None:
    key_file = settings.github_private_key_file
    if settings.github_app_id and key_file:
        try:
            key = key_file.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"ASSAY_GITHUB_PRIVATE_KEY_FILE: cannot read {key_file}: {error}") from None
        return Credentials(app_id=settings.github_app_id, private_key=key)
    token = settings.github_token
    return Credentials(token=token.get_secret_value()) if token else None


def repositories(settings: Settings, hub: Hub | None = None) -> Repositories:
    """Where commits are read from; `hub` gives the tokens for private ones."""
    hub = hub or github_hub(settings, None)
    token = hub.git_token if hub is not None else None
    return Repositories(settings.git_url, settings.data_dir / "git", token)


def runner() -> Runner:
    """Where shards run: one at a time here, each with as many workers as the settings allow."""
    return make_runner("local", 1)


def reports(data_dir: Path) -> Reports:
    """How campaigns are told of."""
    return CampaignReports(data_dir / "corpus", lambda campaign: artifacts(data_dir, campaign))


def artifacts(data_dir: Path, campaign: int) -> Path:
    """Where the files of a campaign lie."""
    return data_dir / "artifacts" / str(campaign)


def make_shard(config: RepositoryConfig, **fields: Any) -> Shard:
    """A shard under the limits of a configuration."""
    return Shard(limits=Limits.from_json(config.limits.overrides()), **fields)


def _run_tool(module: str, args: Sequence[str], on_event: OnEvent, stop: Event) -> None:
    run_tool(module, args, on_event, stop)
