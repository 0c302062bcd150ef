"""Composition: the rooms plugged into one another, for the service and for the command line."""

from bot.compose.campaigns import artifacts, campaign_services, make_shard, reports, runner
from bot.compose.forge import github_hub, repositories, sinks
from bot.compose.service import dispatch, service

__all__ = [
    "artifacts",
    "campaign_services",
    "dispatch",
    "github_hub",
    "make_shard",
    "reports",
    "repositories",
    "runner",
    "service",
    "sinks",
]
