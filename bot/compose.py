"""Composition: the rooms plugged into one another, for the service and for the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

from bot import service as service_parts
from bot.campaigns import intents
from bot.campaigns.catalogue import catalogued
from bot.campaigns.engine import Engine
from bot.campaigns.services import OnEvent, Reports, Services
from bot.config import RepositoryConfig, default_config, parse_config
from bot.errors import InternalError, SettingsError
from bot.github.dry_run import DryRun
from bot.github.live import Credentials, GitHub
from bot.github.publisher import Publisher
from bot.github.repositories import Repositories
from bot.github.requests import Sink
from bot.reports.campaign import CampaignReports
from bot.runners import Runner, make_runner, run_tool
from bot.runners.scripts import try_script
from bot.settings import Settings
from bot.store import Database, Session, now
from bot.toolchains import provision, resolve
from bot.webhooks.intents import CampaignIntent, Intent
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
        "try_script": try_script,
        "run_tool": _run_tool,
        "sign": sign,
        "reports": reports(settings.data_dir),
        "catalogues": catalogued,
    }
    return Services(**(fields | replaced))


def service(settings: Settings, database: Database) -> service_parts.Services:
    """A whole Assay process: deliveries become campaigns, campaigns run, effects are published."""
    engine = Engine(database, settings, campaign_services(settings))
    # The embedded database belongs to one process, which holds the lock on its folder by now.
    engine.start(steal=database.is_sqlite)
    publisher = Publisher(database, *_sinks(settings))

    def test(session: Session, intent: CampaignIntent) -> None:
        intents.handle(session, intent, wake=engine.wake, settle=SETTLE)

    return service_parts.Services(
        handle=dispatch({CampaignIntent: test}),
        backgrounds=(Thread("campaigns", engine.run_forever), Thread("publisher", publisher.run_forever)),
    )


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


def _sinks(settings: Settings) -> tuple[Sink, Callable[[], datetime], Sink]:
    """Where effects go, the clock, and where those of targets in dry-run mode go."""
    rehearsal = DryRun(settings.data_dir / "outbox")
    if settings.github_mode == "dry-run":
        return rehearsal, now, rehearsal
    return GitHub(_credentials(settings), settings.github_api_url), now, rehearsal


def _credentials(settings: Settings) -> Credentials:
    key_file = settings.github_private_key_file
    if settings.github_app_id and key_file:
        try:
            key = key_file.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"ASSAY_GITHUB_PRIVATE_KEY_FILE: cannot read {key_file}: {error}") from None
        return Credentials(app_id=settings.github_app_id, private_key=key)
    token = settings.github_token
    return Credentials(token=token.get_secret_value() if token else "")


def repositories(settings: Settings) -> Repositories:
    """Where commits are read from."""
    token = settings.github_token
    secret = token.get_secret_value() if token else None
    return Repositories(settings.git_url, settings.data_dir / "git", secret)


def runner() -> Runner:
    """Where shards run: one at a time here, each with as many workers as the settings allow."""
    return make_runner("local", 1)


def reports(data_dir: Path) -> Reports:
    """How campaigns are told of."""
    return CampaignReports(data_dir / "corpus", lambda campaign: artifacts(data_dir, campaign))


def artifacts(data_dir: Path, campaign: int) -> Path:
    """Where the files of a campaign lie."""
    return data_dir / "artifacts" / str(campaign)


def make_shard(config: RepositoryConfig, *, patience: float = 1.0, **fields: Any) -> Shard:
    """A shard under the limits of a configuration; times and memory are multiplied by `patience`."""
    limits = Limits.from_json(config.limits.overrides()).to_json()
    for name in limits.keys() - {"file_bytes"}:
        limits[name] = type(limits[name])(limits[name] * patience)
    return Shard(limits=Limits.from_json(limits), **fields)


def _run_tool(module: str, args: Sequence[str], on_event: OnEvent, stop: Event) -> None:
    run_tool(module, args, on_event, stop)
