"""The collaborators of campaigns, for the service and for the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from bot.artifacts import Artifacts
from bot.bugs.publication import CampaignPublisher
from bot.campaigns.plan.catalog import open_catalogs
from bot.campaigns.services import Reports, Services
from bot.config import RepositoryConfig, read_repository_config, resolve_config
from bot.runners import Runner, make_runner, run_tool
from bot.runners.protocol import Dispatcher, OnEvent, RunnerOptions
from bot.runners.repository_test import run_test
from bot.runners.reproducer_run import try_script
from bot.runners.toolchain_archives import ToolchainArchives
from bot.settings import Settings, report_url
from bot.toolchains import provision, resolve
from bot.toolchains.unreachable_sources import read_unreachable_sources
from bot.wiring.github import repositories
from fuzzing.execute.limits import Limits
from fuzzing.execute.shard import Shard
from fuzzing.triage.signature import compute_signature


def campaign_services(settings: Settings, **replaced: Any) -> Services:
    """The services of campaigns; any field of `Services` may be replaced."""
    fields: dict[str, Any] = {
        "repositories": repositories(settings),
        "config_of": resolve_config,
        "own_config": read_repository_config,
        "restore_config": RepositoryConfig.from_json,
        "resolve": partial(resolve, data_dir=settings.data_dir),
        "provision": provision,
        "unreachable_sources": read_unreachable_sources,
        "make_shard": make_shard,
        "try_script": try_script,
        "run_test": run_test,
        "proposal_fork": settings.proposal_fork,
        "run_tool": _run_tool,
        "sign": compute_signature,
        "reports": reports(settings.data_dir, partial(report_url, settings), settings.artifacts_url),
        "catalogs": open_catalogs,
    }
    if "runner" not in replaced:
        fields["runner"] = runner(settings)
    return Services(**(fields | replaced))


def runner(settings: Settings, dispatcher: Dispatcher | None = None) -> Runner:
    """Where shards run; each has as many workers as the settings allow. Raises SettingsError, RunnerError."""
    url = settings.artifacts_url
    archives = ToolchainArchives(url, settings.data_dir) if url else None
    options = RunnerOptions(
        slots=settings.runner_slots,
        data_dir=settings.data_dir,
        labels=settings.runner_labels,
        ray_address=settings.ray_address,
        url=settings.public_url or "",
        key=settings.runner_key.get_secret_value().encode() if settings.runner_key else b"",
        dispatcher=dispatcher,
        archives=archives,
    )
    return make_runner(settings.runner, options)


def reports(data_dir: Path, page: Callable[[int], str] = lambda _: "", artifacts_url: str = "") -> Reports:
    """Publishes campaigns; `page` maps a campaign to the address of its report, or ""."""
    artifacts = Artifacts(artifacts_url, data_dir)
    return CampaignPublisher(data_dir / "corpus", artifacts.folder, page=page, upload=artifacts.publish)


def make_shard(config: RepositoryConfig, *, limit_factor: float = 1.0, **fields: Any) -> Shard:
    """A shard under the limits of a configuration; times and memory are multiplied by `limit_factor`."""
    limits = Limits.from_json(config.limits.overrides()).to_json()
    for name in limits.keys() - {"file_bytes", "scratch_bytes", "processes"}:
        limits[name] = type(limits[name])(limits[name] * limit_factor)
    return Shard(limits=Limits.from_json(limits), **fields)


def _run_tool(module: str, args: Sequence[str], on_event: OnEvent, stop: Event) -> None:
    run_tool(module, args, on_event, stop)
