"""The end of a campaign: findings become bugs, bugs become effects."""

from __future__ import annotations

from dataclasses import asdict

from bot.bugs import issue_filing, transitions
from bot.campaigns.report.summary import Summary
from bot.config import RepositoryConfig
from bot.reports import renderer
from bot.reports.campaign_reports import CampaignReports
from bot.reports.report import Group
from bot.store import Session, bugs, campaigns, findings, outbox
from bot.store.models import Classification
from fuzzing.triage.signature import UNSORTED

#: Classifications of compiler bugs; flaky and fixed findings are excluded.
_BUGS = frozenset({Classification.REGRESSION, Classification.ALREADY_BROKEN})


class CampaignPublisher(CampaignReports):
    """Reports of campaigns that also record bugs and post effects."""

    def publish(self, session: Session, summary: Summary) -> None:
        """Findings → bugs → effects, in one transaction and by key: a second call changes nothing.

        1. Each group of findings that is a bug is recorded, with the reason if no issue is filed. 2. The
        report drafts its effects; issues with such a reason are dropped, others wait for their checks. 3. The
        drafts go to the outbox, and jobs are enqueued for the checks and for retests of unseen bugs.
        """
        report, config, at = self.report(summary), RepositoryConfig.from_json(summary.config), self.clock()
        not_filed = set()
        for group in report.groups:
            if group.classification not in _BUGS:
                continue
            if group.signature.startswith(UNSORTED):
                not_filed.add(group.signature)
                continue
            reason = issue_filing.record_bug(
                session,
                summary.target,
                group.signature,
                group.title,
                group.example.operator,
                at,
                reason_not_filed(summary, group),
                _sighting(summary, group.signature),
            )
            bug = bugs.find(session, summary.target, group.signature)
            assert bug is not None
            findings.assign_bug(session, summary.campaign_id, group.signature, bug.id)
            # Some cases of a bug may have failed before: those do not suppress the new ones.
            if reason and group.classification is Classification.REGRESSION:
                not_filed.add(group.signature)
        drafts = self.draft_effects(session, report, config, at)
        drafts = issue_filing.hold_for_checks(drafts, not_filed, config.reports.mode)
        posted = outbox.post(
            session,
            drafts,
            campaign_id=summary.campaign_id,
            issues_per_day=config.reports.issues_per_day,
            at=at,
        )
        issue_filing.request_all_checks(session, posted, drafts, at)
        transitions.request_retests(session, summary.campaign_id, at)


def reason_not_filed(summary: Summary, group: Group) -> str:
    """Why no issue is filed about a bug of this campaign, "" if one may be.

    Code in a pull request or a merge queue may never be merged: the report informs its author, and the bug is
    filed when a campaign on a watched branch sees it.
    """
    if reason := renderer.reason_not_filed(group.classification):
        return reason
    if summary.pull is not None:
        return f"in a pull request, #{summary.pull}: issues are about watched branches"
    if not campaigns.on_branch(None, summary.ref):
        return "in a merge queue: issues are about watched branches"
    if group.found_by_reduction >= group.cases and not group.history:
        # Found while another case was reduced; counts once it is confirmed and reduced itself.
        return "found while reducing another case, and not reduced itself; shown in the report"
    return ""


def _sighting(summary: Summary, signature: str) -> bugs.Sighting:
    """The campaign's data about a bug, from the reduced case that needs the least to run."""
    pull = not campaigns.on_branch(summary.pull, summary.ref)
    reduced_findings = [one.reduced for one in summary.findings if one.signature == signature and one.reduced]
    if not reduced_findings:
        return bugs.Sighting(summary.campaign_id, pull)
    simplest = min(reduced_findings, key=lambda one: (len(one.traits.needs), one.size, one.case_id))
    return bugs.Sighting(
        summary.campaign_id,
        pull,
        case=simplest.case_id,
        backend=simplest.head.backend,
        device=simplest.head.device,
        configuration=simplest.head.configuration,
        traits=asdict(simplest.traits),
        fields=simplest.fields,
    )
