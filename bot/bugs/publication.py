"""The end of a campaign: findings become bugs, bugs become effects."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime

from bot.bugs import issue_filing, transitions
from bot.campaigns.report.summary import Summary
from bot.campaigns.services import CampaignProblem
from bot.config import RepositoryConfig
from bot.reports.campaign_reports import CampaignReports
from bot.reports.check_runs import build_untested_check_run
from bot.reports.pull import COMMENTED_EVENT, CommentDecision
from bot.reports.report import Group, Report
from bot.store import Session, audit, bugs, campaigns, findings, jobs, outbox, targets
from bot.store.models import Classification
from fuzzing.triage.signature import UNSORTED

PROPOSE_BATCH = "propose_batch"
#: Classification of compiler bugs → why none is filed, "" if they may be. Other findings, such as flaky
#: and fixed ones, are only shown in the report.
_NOT_FILED = {
    Classification.REGRESSION: "",
    Classification.CHANGED: "fails at base too, in another way",
    Classification.ALREADY_BROKEN: "already broken at base",
}


class CampaignPublisher(CampaignReports):
    """Reports of campaigns that also record bugs and post effects."""

    def publish(self, session: Session, summary: Summary) -> None:
        """Findings → bugs → effects, in one transaction and by key: a second call changes nothing.

        Failures that are unsorted, and those of a campaign in which nothing passes, are no bugs.
        """
        report, config, at = self.report(summary), RepositoryConfig.from_json(summary.config), self.clock()
        suppressed = set()
        for group in report.groups:
            outcome = group.example.outcome
            if group.classification not in _NOT_FILED or outcome is None or not outcome.verdict.is_failure:
                continue
            if report.nothing_passes or group.signature.startswith(UNSORTED):
                suppressed.add(group.signature)
                continue
            reason = _record_bug(session, summary, group, at)
            # Some cases of a bug may have failed before: those do not suppress the new ones.
            if reason and group.classification is Classification.REGRESSION:
                suppressed.add(group.signature)
        drafts, comment = self.draft_effects(session, report, config, at)
        if comment is not None:
            record_comment(session, report, comment, at)
        drafts = issue_filing.hold_for_checks(drafts, suppressed, config.reports.mode)
        per_day = config.reports.issues_per_day
        posted = outbox.post(session, drafts, campaign_id=summary.campaign_id, issues_per_day=per_day, at=at)
        issue_filing.request_all_checks(session, posted, drafts, at)
        transitions.request_retests(session, summary.campaign_id, at)
        _request_tests(session, summary, config, at)

    def publish_problem(self, session: Session, problem: CampaignProblem) -> None:
        """Posts one check run with the error and how to fix it, or with why no case had to run."""
        stable_name = targets.stable_name(session, problem.target)
        config = campaigns.get(session, problem.campaign_id).config
        draft = build_untested_check_run(
            problem.target,
            stable_name,
            problem.head,
            problem.campaign_id,
            problem.reason,
            problem.kind,
            gate=bool(config.get("pull_requests", {}).get("gate")),
        )
        if not config:  # head's cannot be read: an earlier one says whether GitHub is to show that
            known = campaigns.last_config(session, problem.target)
            draft = replace(draft, mode=str(known.get("reports", {}).get("mode", "")))
        outbox.post(session, [draft], campaign_id=problem.campaign_id, issues_per_day=0, at=self.clock())


def _request_tests(session: Session, summary: Summary, config: RepositoryConfig, at: datetime) -> None:
    """Enqueues tests from passing cases after a scheduled campaign, if the repository wants them."""
    wanted = config.proposals.enabled and config.proposals.coverage
    scheduled = campaigns.get(session, summary.campaign_id).trigger.startswith("schedule:")
    if wanted and scheduled:
        name = f"{PROPOSE_BATCH}:{summary.campaign_id}"
        jobs.enqueue(session, PROPOSE_BATCH, summary.target, name, at, campaign_id=summary.campaign_id)


def record_comment(session: Session, report: Report, comment: CommentDecision, at: datetime) -> None:
    """Records in the audit log why the campaign's pull request gets a comment or none."""
    action, subject = COMMENTED_EVENT if comment.draft else "silent", f"pull:{report.view.pull}"
    audit.record(session, report.view.target, action, subject, comment.reason, at, evidence=comment.evidence)


def _record_bug(session: Session, summary: Summary, group: Group, at: datetime) -> str:
    """Records the bug of a group of findings; returns why no issue is filed, "" if one may be."""
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
    return reason


def reason_not_filed(summary: Summary, group: Group) -> str:
    """Why no issue is filed about a bug of this campaign, "" if one may be.

    Code in a pull request or a merge queue may never be merged: the report informs its author, and the bug is
    filed when a campaign on a watched branch sees it.
    """
    if reason := _NOT_FILED[group.classification]:
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
