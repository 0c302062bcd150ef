"""Provisioning: makes the toolchains of head and base.

A toolchain that cannot be made, on either side, ends the campaign. A base that pins nothing is left out; the
findings are inconclusive then.
"""

from __future__ import annotations

from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.run.toolchain_build import build_toolchain, toolchain_row
from bot.campaigns.services import Config, ReadyToolchain
from bot.commit_files import CommitFiles
from bot.errors import ConfigError
from bot.store import campaigns
from bot.store.models import CampaignState, Side, Toolchain


@step(CampaignState.PROVISIONING, to=(CampaignState.RUNNING,))
def provision(context: Context) -> None:
    """Reads the configuration; writes the toolchains and links them to the campaign."""
    with context.reading() as (_, campaign):
        config = context.config(campaign)
    head = _make(context, config, campaign.target, campaign.head)
    base, note = _base(context, config, campaign.target, campaign.base)
    with context.transaction() as (session, campaign):
        campaigns.set_toolchain(session, campaign, Side.HEAD, _row(context, head))
        if base is not None:
            campaigns.set_toolchain(session, campaign, Side.BASE, _row(context, base))
        context.move(campaign, CampaignState.RUNNING, note)


def _base(context: Context, config: Config, target: str, sha: str) -> tuple[ReadyToolchain | None, str]:
    """Base's toolchain, or None and the reason."""
    if not sha:
        return None, ""
    try:
        return _make(context, config, target, sha), ""
    except ConfigError as error:  # such as a base from before the compiler was pinned
        return None, f"there is no base to compare with: {sha[:12]} pins no toolchain: {error}"


def _make(context: Context, config: Config, target: str, sha: str) -> ReadyToolchain:
    read = CommitFiles(context.services.repositories, target, sha)
    return build_toolchain(context, context.services, context.settings.data_dir, config, read)


def _row(context: Context, ready: ReadyToolchain) -> Toolchain:
    return toolchain_row(ready, context.services.clock.now())
