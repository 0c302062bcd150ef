"""Which failures of a campaign's head are out of its toolchain's reach (`classify.out_of_reach`)."""

from __future__ import annotations

from collections.abc import Iterable

from bot.campaigns.classify.out_of_reach import UnreachableSources, explain_by_unreachable
from bot.campaigns.context import Context
from bot.campaigns.provenance import origin
from bot.campaigns.run.shards import Environment
from bot.campaigns.run_with_lease import run_with_lease
from bot.campaigns.services import Config
from bot.commit_files import CommitFiles
from bot.store import campaigns, outcomes
from fuzzing.outcomes import Outcome, Verdict


def find_out_of_reach(
    context: Context, config: Config, head: Environment, base: Environment | None
) -> dict[str, str]:
    """Planned case → why it may fail or be refused at head, and not at base, although the commit is right."""
    if base is None:
        return {}
    with context.reading() as (session, campaign):
        pairs = outcomes.outcome_pairs(session, campaign.id, head.key, base.key)
        lost = [at_head for at_head, at_base in pairs if _is_lost(at_head, at_base)]
    return explain_failures(context, config, head, lost)


def explain_failures(
    context: Context, config: Config, head: Environment, failures: Iterable[Outcome]
) -> dict[str, str]:
    """Case → why it may fail at head, where the base passes, although the commit is right.

    The sources that head's toolchain does not have are read only if something fails.
    """
    failing = list(failures)
    sources = _unreachable(context, config, head) if failing else None
    if sources is None:
        return {}
    found = {
        one.case: explain_by_unreachable(
            one.evidence.message, origin(context.corpus, one.case).operator, sources
        )
        for one in failing
    }
    return {case: why for case, why in found.items() if why}


def read_unreachable(
    context: Context, config: Config, target: str, head: str, base: str, digest: str = ""
) -> UnreachableSources | None:
    """The sources of a commit that its toolchain does not have; None if it cannot be told.

    digest  of the toolchain, "" for that which is tried first
    """
    services = context.services
    read = CommitFiles(services.repositories, target, head)

    def find() -> UnreachableSources | None:
        found = services.resolve(config, read).candidates()
        spec = next((one for one in found if digest in ("", one.digest)), None)
        return None if spec is None else services.unreachable_sources(spec, base)

    return run_with_lease(context, lambda *_: find())


def _unreachable(context: Context, config: Config, head: Environment) -> UnreachableSources | None:
    """None if head's toolchain is no overlay."""
    digest = head.key.toolchain
    with context.reading() as (session, campaign):
        overlaid = campaign.base and campaigns.toolchain(session, digest).overlay
    if not overlaid:
        return None
    return read_unreachable(context, config, campaign.target, campaign.head, campaign.base, digest)


def _is_lost(at_head: Outcome, at_base: Outcome | None) -> bool:
    """Whether a case passes at base, and fails or is refused at head."""
    refused = at_head.verdict is Verdict.UNSUPPORTED
    return at_base is not None and at_base.verdict is Verdict.PASS and (refused or at_head.verdict.is_failure)
