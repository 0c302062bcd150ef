"""Provisioning: makes the toolchains of head and base.

Base's comes first, and head's is made in the same way. A toolchain that cannot be made ends the campaign; a
head whose own sources break the compiler is a result, one whose build fails is none. A base that pins nothing
is left out, which makes the findings inconclusive.
"""

from __future__ import annotations

from bot.campaigns.classify.out_of_reach import explain_by_unreachable
from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.run.out_of_reach import read_unreachable
from bot.campaigns.run.toolchain_build import build_toolchain, toolchain_row
from bot.campaigns.run.unchanged_compiler import (
    end_unchanged,
    end_without_report,
    join_notes,
    untested_files,
)
from bot.campaigns.services import Config, ReadyToolchain, ToolchainSpec
from bot.commit_files import CommitFiles
from bot.errors import BrokenSourcesError, BuildFailedError, ConfigError, ProvisionError
from bot.store import campaigns
from bot.store.models import Campaign, CampaignState, Side, Toolchain


@step(CampaignState.PROVISIONING, to=(CampaignState.RUNNING, CampaignState.DONE))
def provision(context: Context) -> None:
    """Reads the configuration; writes the toolchains and links them to the campaign."""
    with context.reading() as (_, campaign):
        config = context.config(campaign)
    base = None
    try:
        base, note = _base(context, config, campaign.target, campaign.base)
        head = _make(context, config, campaign.target, campaign.head, base)
    except BrokenSourcesError as error:
        if base is None:
            raise
        native = _native_need(context, config, campaign, base.spec, str(error))
        if native:  # the sources may need it: it is not known whether the change breaks anything
            end_without_report(context, "native", f"nothing was tested: {error}\n{native}")
        else:
            reason = f"this change breaks importing or compiling everything: {error}"
            end_without_report(context, "broken", reason)
        return
    except BuildFailedError as error:  # its own CI reports it, too
        end_without_report(context, "unbuilt", f"nothing was tested: {error}")
        return
    notes = [note, *head.passed_over]
    if base is not None and head.spec.commit is not None and head.digest == base.digest:
        end_unchanged(context, campaign, head.spec, notes)
        return
    notes.append(untested_files(context, campaign, head.spec))
    with context.transaction() as (session, campaign):
        campaigns.set_toolchain(session, campaign, Side.HEAD, _row(context, head))
        if base is not None:
            campaigns.set_toolchain(session, campaign, Side.BASE, _row(context, base))
        context.move(campaign, CampaignState.RUNNING, join_notes(notes))


def _native_need(
    context: Context, config: Config, campaign: Campaign, spec: ToolchainSpec, failure: str
) -> str:
    """What head may lack beside its own sources, "" if it has all that it needs.

    Either the commit changes it, too, or one after the wheel did, and this is the first to use it.
    """
    if untested := untested_files(context, campaign, spec):
        return untested
    if not spec.overlay:
        return ""
    sources = read_unreachable(context, config, campaign.target, campaign.head, campaign.base)
    return "" if sources is None else explain_by_unreachable(failure, "", sources)


def _base(context: Context, config: Config, target: str, sha: str) -> tuple[ReadyToolchain | None, str]:
    """Base's toolchain, or None and the reason."""
    if not sha:
        return None, ""
    try:
        return _make(context, config, target, sha), ""
    except ConfigError as error:  # such as a base from before the compiler was pinned
        return None, f"there is no base to compare with: {sha[:12]} pins no toolchain: {error}"
    except BrokenSourcesError as error:
        raise ProvisionError(f"cannot compare, because base {sha[:12]} does not work: {error}") from None
    except BuildFailedError as error:
        raise BuildFailedError(f"base {sha[:12]} does not build, head was not tried: {error}") from None


def _make(
    context: Context, config: Config, target: str, sha: str, like: ReadyToolchain | None = None
) -> ReadyToolchain:
    read = CommitFiles(context.services.repositories, target, sha)
    return build_toolchain(context, context.services, context.settings.data_dir, config, read, like)


def _row(context: Context, ready: ReadyToolchain) -> Toolchain:
    return toolchain_row(ready, context.services.clock.now())
