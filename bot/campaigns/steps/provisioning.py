"""Provisioning: makes the toolchains of head and base.

Base's comes first, and head's is made in the same way. A toolchain that cannot be made ends the campaign; a
head whose own sources break the compiler is a result, one whose build fails is none. A base that pins nothing
is left out, which makes the findings inconclusive.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.run.toolchain_build import build_toolchain, toolchain_row
from bot.campaigns.run_with_lease import run_with_lease
from bot.campaigns.services import CampaignProblem, Config, ReadyToolchain
from bot.commit_files import CommitFiles
from bot.errors import BrokenSourcesError, BuildFailedError, ConfigError, ProvisionError
from bot.store import campaigns
from bot.store.models import Campaign, CampaignState, Side, Toolchain

_SHOWN = 10  # files that are named


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
        reason = f"this change breaks importing or compiling everything: {error}"
        _end(context, "broken", reason)
        return
    except BuildFailedError as error:  # its own CI reports it, too
        _end(context, "unbuilt", f"nothing was tested: {error}")
        return
    notes = [note, *head.passed_over, _untested(context, campaign, head)]
    if base is not None and head.spec.commit is not None and head.digest == base.digest:
        equal = (
            "the Python code of head's compiler and of base's is the same"
            if head.spec.overlay
            else f"both head and base are tested with {base.spec.label}"
        )
        _end(context, "unchanged", _join([f"nothing here that a case could reach: {equal}", *notes]))
        return
    with context.transaction() as (session, campaign):
        campaigns.set_toolchain(session, campaign, Side.HEAD, _row(context, head))
        if base is not None:
            campaigns.set_toolchain(session, campaign, Side.BASE, _row(context, base))
        context.move(campaign, CampaignState.RUNNING, _join(notes))


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


def _untested(context: Context, campaign: Campaign, head: ReadyToolchain) -> str:
    """Which changed files of the compiler the toolchain does not have, "" if it has all."""
    if not campaign.base or not head.spec.overlay:
        return ""
    files = context.services.repositories.changed_files
    changed = run_with_lease(context, lambda *_: files(campaign.target, campaign.base, campaign.head))
    missing = [path for path in changed if head.spec.is_out_of_reach(path)]
    shown = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" * (len(missing) > _SHOWN))
    return f"not tested, because only a build of the compiler has it: {shown}" if missing else ""


def _end(context: Context, kind: str, reason: str) -> None:
    """Ends the campaign with a check run in place of a report."""
    with context.transaction() as (session, campaign):
        problem = CampaignProblem(
            campaign_id=campaign.id,
            target=campaign.target,
            head=campaign.head,
            ref=campaign.ref,
            trigger=campaign.trigger,
            kind=kind,
            reason=reason,
        )
        context.services.reports.publish_problem(session, problem)
        context.move(campaign, CampaignState.DONE, reason)


def _join(notes: Sequence[str]) -> str:
    return "\n".join(filter(None, notes))


def _row(context: Context, ready: ReadyToolchain) -> Toolchain:
    return toolchain_row(ready, context.services.clock.now())
