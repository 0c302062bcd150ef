"""Runs cases in fresh processes on the build of a commit, a release or a campaign."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bot.approval import Approval, require_approval
from bot.bisection.commits import Revision, revisions
from bot.bugs.retest_result import RUNS, RetestResult, count_runs
from bot.campaigns.classify.bug_matching import same_symptom
from bot.campaigns.provenance import origin
from bot.campaigns.run.shards import write_shard
from bot.campaigns.run.toolchain_build import build_toolchain, toolchain_row
from bot.campaigns.run_with_lease import EventSink, run_with_lease
from bot.commit_files import CommitFiles, ReadFile
from bot.config import CONFIG_PATH, RepositoryConfig
from bot.config.defaults import PIN_FILES
from bot.config.sections import exact_pin
from bot.errors import ConfigError, RefusalError, RunnerError
from bot.jobs.job_context import JobContext
from bot.store import campaigns, findings, retests
from bot.store.campaigns import Session
from bot.store.models import Bug, Campaign
from bot.store.outcomes import CacheKey
from fuzzing import backends
from fuzzing.outcomes import Outcome
from fuzzing.triage.similar_failures import explain_similarity

_PIN = "requirements.txt"


@dataclass(frozen=True)
class Build:
    """A build to run cases on; `commit` is the target's commit, "" for a release."""

    toolchain: str
    python: str
    label: str
    commit: str = ""


@dataclass(frozen=True)
class BugCase:
    """A bug, the campaign that saw it last, and its case, reduced or as found."""

    bug: Bug
    campaign: Campaign
    config: RepositoryConfig
    case: str


def load_bug_case(session: Session, job_context: JobContext) -> BugCase:
    """The bug of the job. Raises RefusalError if there is no case to run."""
    assert job_context.job_spec.bug_id is not None
    bug = session.get_one(Bug, job_context.job_spec.bug_id)
    campaign = session.get(Campaign, bug.campaign_id) if bug.campaign_id is not None else None
    case = bug.case_id or findings.case_of(session, bug.id)
    if campaign is None or not case:
        raise RefusalError("the bug has no failing program to run: the campaign that found it is gone")
    return BugCase(bug, campaign, RepositoryConfig.from_json(campaign.config), case)


def build_at_head(job_context: JobContext, campaign: Campaign) -> Build:
    """The build that a campaign tested, rebuilt if it is gone from the disk."""
    digest = campaign.head_toolchain
    if digest is None:
        raise RefusalError(f"campaign {campaign.id} ended before it had a build")
    with job_context.database.reading() as session:
        known = campaigns.toolchain(session, digest)
    if Path(known.python).exists():
        return Build(digest, known.python, known.label, campaign.head)
    return build_of_commit(job_context, campaign, campaign.head)


def build_at_base(job_context: JobContext, campaign: Campaign) -> Build | None:
    """The build that a campaign compared with, rebuilt if it is gone; None if it had none."""
    if campaign.base_toolchain is None:
        return None
    with job_context.database.reading() as session:
        known = campaigns.toolchain(session, campaign.base_toolchain)
    if Path(known.python).exists():
        return Build(known.digest, known.python, known.label, campaign.base)
    return build_of_commit(job_context, campaign, campaign.base)


def build_of_commit(job_context: JobContext, campaign: Campaign, commit: str) -> Build:
    """The build of a commit of the campaign's repository.

    Raises NotApprovedError if the commit may not run, and what the provisioner raises.
    """
    approval = run_with_lease(
        job_context, lambda *_: require_approval(job_context, campaign.target, commit, campaign)
    )
    config = run_with_lease(job_context, lambda *_: _load_config(job_context, campaign, approval))
    read = CommitFiles(job_context.services.repositories, campaign.target, approval.commit)
    return _make_build(job_context, config, read, approval.commit)


def _load_config(job_context: JobContext, campaign: Campaign, approval: Approval) -> Any:
    """The configuration in force for an approved commit; the campaign's if the repository had none there."""
    services = job_context.services
    if approval.config_commit:
        read = partial(services.repositories.read, campaign.target, approval.config_commit)
        if own := services.own_config(read):
            return own
    return services.restore_config(campaign.config)


def build_of_release(job_context: JobContext, campaign: Campaign, release: str) -> Build:
    """The build of a release, as if the campaign's repository pinned it; everything else as at its head."""
    config = RepositoryConfig.from_json(campaign.config)
    package = config.toolchain.package or backends.get(config.backend).package
    with job_context.database.reading() as session:
        requirements = campaigns.toolchain(session, campaign.head_toolchain or "").requirements
    others = [
        str(pin)
        for pin in requirements
        if exact_pin(Requirement(str(pin))) and _name(str(pin)) != _name(package)
    ]
    text = "\n".join([f"{package}=={release}", *others]).encode()
    pinned = config.model_copy(update={"toolchain": config.toolchain.model_copy(update={"pin": _PIN})})
    return _make_build(job_context, pinned, lambda path: text if path == _PIN else None, "")


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def list_revisions(job_context: JobContext, campaign: Campaign) -> list[Revision]:
    """The commits from the campaign's base to its head that change the build, both included."""
    config = RepositoryConfig.from_json(campaign.config)
    paths = tuple(dict.fromkeys((CONFIG_PATH, config.toolchain.pin, *PIN_FILES)))
    files = job_context.services.repositories
    changing = run_with_lease(
        job_context, lambda *_: files.commits(campaign.target, campaign.base, campaign.head, paths)
    )
    return revisions([campaign.base, *changing], partial(_resolve_build, job_context, campaign))


def _resolve_build(job_context: JobContext, campaign: Campaign, commit: str) -> tuple[str, str] | None:
    job_context.heartbeat()
    approval = require_approval(job_context, campaign.target, commit, campaign)
    read = CommitFiles(job_context.services.repositories, campaign.target, commit)
    try:
        spec: Any = job_context.services.resolve(_load_config(job_context, campaign, approval), read)
    except ConfigError:  # its configuration or pins are invalid
        return None
    return spec.digest, spec.label


def shows_bug(job_context: JobContext, known: BugCase, outcome: Outcome) -> bool:
    """Whether an outcome has the symptom of the bug's signature."""
    if not outcome.verdict.is_failure:
        return False
    about = origin(job_context.corpus, outcome.case)
    raw = job_context.services.sign(outcome, about.subject, about.frontend)
    if raw.key == known.bug.signature:
        return True
    # Only reduced cases have signature fields; others match by the key alone.
    return "signature" in known.bug.facts and same_symptom(raw.fields, known.bug.facts["signature"])


def may_show_bug(job_context: JobContext, known: BugCase, outcome: Outcome) -> bool:
    """Whether an outcome may be the bug with a reworded error, as other builds give."""
    if not outcome.verdict.is_failure or "signature" not in known.bug.facts:
        return False
    about = origin(job_context.corpus, outcome.case)
    raw = job_context.services.sign(outcome, about.subject, about.frontend)
    return bool(explain_similarity(raw.fields, known.bug.facts["signature"]))


def _make_build(job_context: JobContext, config: Any, read: ReadFile, commit: str) -> Build:
    services = job_context.services
    ready = build_toolchain(job_context, services, job_context.settings.data_dir, config, read)
    with job_context.database.transaction() as session:
        campaigns.record_toolchain(session, toolchain_row(ready, services.clock.now()))
    return Build(ready.digest, str(ready.python), ready.spec.label, commit)


def run_cases(
    job_context: JobContext, config: RepositoryConfig, place: Build, cases: Sequence[str], repeats: int
) -> dict[str, list[Outcome]]:
    """The outcomes of each case, one process for each run. Raises RunnerError if some are missing."""
    shard = _shard(job_context, config, place, cases, fresh=True, repeats=repeats)
    collector = _OutcomeCollector()
    run_with_lease(
        job_context, lambda on_event, stop: job_context.services.runner.run(shard, on_event, stop), collector
    )
    missing = [case for case in cases if len(collector.outcomes[case]) < repeats]
    if missing:
        raise RunnerError(
            f"{len(missing)} of {len(cases)} cases did not run {repeats} times on {place.label}"
        )
    return dict(collector.outcomes)


def find_control_case(session: Session, known: BugCase) -> str:
    """The control case, which every healthy build passes: the first that passed in the last campaign."""
    key = CacheKey.of(known.campaign.head_toolchain or "", known.campaign.config)
    return retests.control(session, known.campaign.id, key, known.case)


def run_with_control(job_context: JobContext, known: BugCase, control: str, place: Build) -> RetestResult:
    """Runs the bug's case and the control case in fresh processes on a build."""
    seen = run_cases(job_context, known.config, place, [known.case], RUNS)[known.case]
    control_outcomes = run_cases(job_context, known.config, place, [control], 1)[control] if control else []
    shows = [shows_bug(job_context, known, outcome) for outcome in seen]
    reworded = [
        not shown and may_show_bug(job_context, known, one) for one, shown in zip(seen, shows, strict=True)
    ]
    return count_runs(seen, shows, control_outcomes, reworded)


def run_program(
    job_context: JobContext, config: RepositoryConfig, place: Build, case: str, module: str, *arguments: str
) -> list[dict[str, Any]]:
    """The events of a data-plane program for a shard of one case; each is reported as progress."""
    shard = _shard(job_context, config, place, [case], fresh=False, repeats=1)
    collector = _EventCollector(job_context, module)
    with tempfile.TemporaryDirectory(prefix="assay-job-") as folder:
        given = [write_shard(shard, Path(folder) / "shard.json"), *arguments]
        run_with_lease(
            job_context,
            lambda on_event, stop: job_context.services.run_tool(module, given, on_event, stop),
            collector,
        )
    return collector.events


def _shard(
    job_context: JobContext,
    config: RepositoryConfig,
    place: Build,
    cases: Sequence[str],
    *,
    fresh: bool,
    repeats: int,
) -> Any:
    return job_context.services.make_shard(
        config,
        corpus=str(job_context.corpus),
        cases=tuple(cases),
        backend=config.backend,
        toolchain=place.toolchain,
        python=place.python,
        device=config.device,
        profile=config.profile,
        options=dict(config.options),
        workers=1,
        fresh=fresh,
        repeats=repeats,
        ablate=False,
        budget_s=None,
    )


class _EventCollector(EventSink):
    """Collects a program's events and reports progress."""

    def __init__(self, job_context: JobContext, title: str) -> None:
        self._doing, self._title = job_context, title
        self.events: list[dict[str, Any]] = []

    def add(self, event: dict[str, Any]) -> None:
        """Adds one event."""
        self.events.append(event)
        self._doing.progress(len(self.events), 0, f"{self._title}: {event.get('event', '')}")


class _OutcomeCollector(EventSink):
    """Collects the outcomes of a shard."""

    def __init__(self) -> None:
        self.outcomes: defaultdict[str, list[Outcome]] = defaultdict(list)

    def add(self, event: dict[str, Any]) -> None:
        """Adds one outcome; ignores other events."""
        if event.get("event") == "outcome":
            outcome = Outcome.from_json(event.get("outcome", {}))
            self.outcomes[outcome.case].append(outcome)
