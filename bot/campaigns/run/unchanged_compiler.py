"""Campaigns that end without a report, above all those of a change that leaves the compiler as it was."""

from __future__ import annotations

from collections.abc import Sequence

from bot.campaigns.context import Context
from bot.campaigns.run_with_lease import run_with_lease
from bot.campaigns.services import CampaignProblem, Config, ToolchainSpec
from bot.commit_files import CommitFiles
from bot.errors import ConfigError, ProvisionError
from bot.store.models import Campaign, CampaignState

_SHOWN = 10  # files that are named


def find_unchanged(context: Context, config: Config, campaign: Campaign) -> ToolchainSpec | None:
    """What head and base are both tested with if they are the same compiler; makes no toolchain.

    None too where this is not known before the toolchains are made, and where one of them is not possible,
    which the step that makes them reports.
    """
    if not campaign.base:
        return None
    services = context.services

    def resolve(sha: str) -> ToolchainSpec:
        read = CommitFiles(services.repositories, campaign.target, sha)
        return run_with_lease(context, lambda *_: services.resolve(config, read))

    try:
        head = resolve(campaign.head)
        return head if head.commit is not None and head == resolve(campaign.base) else None
    except (ConfigError, ProvisionError):
        return None


def end_unchanged(context: Context, campaign: Campaign, spec: ToolchainSpec, notes: Sequence[str]) -> None:
    """Ends the campaign of two commits that are both tested with `spec`."""
    if spec.predates:
        end_without_report(context, "outdated", join_notes([f"nothing was tested: {spec.predates}", *notes]))
        return
    equal = (
        "the Python code of head's compiler and of base's is the same"
        if spec.overlay
        else f"both head and base are tested with {spec.label}"
    )
    if untested := untested_files(context, campaign, spec):
        reason = join_notes([f"nothing was tested: {equal}, but not its other code", *notes, untested])
        end_without_report(context, "unreached", reason)
        return
    reason = join_notes([f"nothing here that a case could reach: {equal}", *notes])
    end_without_report(context, "unchanged", reason)


def end_without_report(context: Context, kind: str, reason: str) -> None:
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


def untested_files(context: Context, campaign: Campaign, spec: ToolchainSpec) -> str:
    """Which changed files of the compiler the toolchain does not have, "" if it has all."""
    if not campaign.base or not spec.overlay:
        return ""
    files = context.services.repositories.changed_files
    changed = run_with_lease(context, lambda *_: files(campaign.target, campaign.base, campaign.head))
    missing = [path for path in changed if spec.is_out_of_reach(path)]
    shown = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" * (len(missing) > _SHOWN))
    return f"not tested, because only a build of the compiler has it: {shown}" if missing else ""


def join_notes(notes: Sequence[str]) -> str:
    """The notes that are not empty, a line each."""
    return "\n".join(filter(None, notes))
