"""Searches the release and the commit that introduced or fixed a bug: `bot.bisection` for jobs."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from packaging.version import Version

from bot.approval import require_approval
from bot.bisection.commit_plan import CommitQuestion
from bot.bisection.commit_range import CommitRange, release_commit, tagged_range
from bot.bisection.commit_search import list_stages, search_commits
from bot.bisection.decision_rule import DecisionRule
from bot.bisection.journal import Journal
from bot.bisection.release_probe import BisectionQuery, MakeToolchain, ReleaseProbe, bisect_releases
from bot.bisection.releases import Range, releases
from bot.bisection.report import result_to_json
from bot.bisection.search import ResultKind
from bot.bugs.reproduction import BugCase
from bot.campaigns.run_with_lease import LeaseHolder, run_with_lease
from bot.commit_files import CommitFiles, ReadFile
from bot.config import RepositoryConfig
from bot.config.names import provisioners
from bot.errors import InternalError, RefusalError, UsageError
from bot.file_lock import file_lock
from bot.github.mirrored_repository import MirroredRepository
from bot.github.repositories import Repositories
from bot.jobs.job_context import JobContext
from bot.runners.protocol import OnEvent
from bot.store import Session, campaigns, retests
from bot.store.models import Bug
from bot.toolchains import ToolchainSpec
from bot.toolchains.installer import Installer
from fuzzing import backends
from fuzzing.cases import Corpus
from fuzzing.execute.shard import Shard

Result = TypeVar("Result")

#: Provisioners whose packages are versions that an index has.
_INDEXED = ("release", "overlay", "index")
#: How far back the default range goes. Calendar versions count years.
YEARS = 3


@dataclass(frozen=True)
class ReleaseBisection:
    """A bug's case and the range of releases.

    seconds       after which no further release is tried; None for no limit
    lease_holder  renews the lease meanwhile; None for the job itself
    """

    job_context: JobContext
    known: BugCase
    wanted: Range
    seconds: float | None = None
    lease_holder: LeaseHolder | None = None

    def find_first_bad(self) -> dict[str, Any]:
        """The first bad release, in the form of `bot.bisection.report.result_to_json`."""
        return self._ask(fixed_by=False)

    def find_first_fixed(self) -> dict[str, Any]:
        """The first fixed release, in the same form."""
        return self._ask(fixed_by=True)

    def find_commit(
        self, since: Mapping[str, Any] | None, *, fixed_by: bool = False
    ) -> dict[str, Any] | None:
        """The commit of the campaign's own repository that brought or fixed the bug, in the same form.

        since  what the releases told: the commits between the two that it names are searched, or those after
               the newest one if that passes; None for the commits from the campaign's base to its head

        None if the repository is not the compiler's, or no commit range is known.
        """
        return self._in_background(lambda on_event, stop: self._commit(since, fixed_by, on_event, stop))

    def _ask(self, *, fixed_by: bool) -> dict[str, Any]:
        def search(on_event: OnEvent, stop: threading.Event) -> dict[str, Any]:
            folder = self._folder()
            found = releases(self.wanted, Installer(folder), folder / "releases")
            return self._bisect(
                replace(self._question(), fixed_by=fixed_by), self.wanted, found, on_event, stop
            )

        return self._in_background(search)

    def _in_background(self, work: Callable[[OnEvent, threading.Event], Result]) -> Result:
        return run_with_lease(self.lease_holder or self.job_context, work)

    def _folder(self) -> Path:
        folder = self.job_context.settings.data_dir / "bisections"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _bisect(
        self,
        query: BisectionQuery,
        wanted: Range | CommitRange,
        found: Sequence[str],
        on_event: OnEvent,
        stop: threading.Event,
    ) -> dict[str, Any]:
        job_context, began = self.job_context, time.monotonic()
        ordered = found[::-1] if query.fixed_by else found
        journal = Journal(self._folder(), query.identity)
        with file_lock(journal.path.with_suffix(".lock")):
            release_probe = ReleaseProbe(
                query,
                ordered,
                job_context.settings.data_dir,
                journal,
                _StoppableRunner(job_context, stop),
                lambda line: on_event({"note": line}),
                make=cast("MakeToolchain", job_context.services.provision),
                out_of_time=lambda: self.seconds is not None and time.monotonic() - began > self.seconds,
            )
            answer, probed = bisect_releases(release_probe, len(ordered), DecisionRule())
        return result_to_json(query, wanted, ordered, answer, probed, time.monotonic() - began)

    def _commit(
        self, since: Mapping[str, Any] | None, fixed_by: bool, on_event: OnEvent, stop: threading.Event
    ) -> dict[str, Any] | None:
        services, campaign = self.job_context.services, self.known.campaign
        if not isinstance(services.repositories, Repositories):
            return None
        history = MirroredRepository(services.repositories, campaign.target, campaign.head)
        try:
            between = self._commit_range(history, since)
        except UsageError as error:  # base and head are of different lines
            on_event({"note": str(error)})
            return None
        if between is None:
            return None
        for end in (between.good, between.bad):  # before anything is looked up
            require_approval(self.job_context, campaign.target, end, campaign)

        def note(line: str) -> None:
            on_event({"note": line})

        stages = list_stages(
            history,
            between,
            self.known.config,
            self.job_context.settings.data_dir,
            resolve=self._resolve_approved,
            provision=services.provision,
        )
        question = CommitQuestion(
            history,
            replace(self._question(), fixed_by=fixed_by),
            lambda query, wanted, found: self._bisect(query, wanted, found, on_event, stop),
            note,
        )
        return search_commits(stages, between, question)

    def _resolve_approved(self, config: RepositoryConfig, read: ReadFile, _data_dir: Path) -> ToolchainSpec:
        """The toolchain of a commit, of which all that is searched are made. Raises NotApprovedError.

        Approval of a fork's head covers none of the commits below it.
        """
        if not isinstance(read, CommitFiles):
            raise InternalError("the files of no commit: its approval cannot be checked")
        campaign = self.known.campaign
        require_approval(self.job_context, campaign.target, read.sha, campaign)
        return cast("ToolchainSpec", self.job_context.services.resolve(config, read))

    def _commit_range(
        self, history: MirroredRepository, since: Mapping[str, Any] | None
    ) -> CommitRange | None:
        campaign = self.known.campaign
        if since is None:
            return CommitRange.starting(history, campaign.base, campaign.head)
        if since["kind"] != ResultKind.NEVER.value:
            return tagged_range(history, since)
        newest = release_commit(history, str(since["release"] or since["before"] or ""))
        return CommitRange.starting(history, newest, campaign.head) if newest else None

    def _question(self) -> BisectionQuery:
        corpus, config = self.job_context.corpus, self.known.config
        return BisectionQuery(
            corpus=corpus,
            case=Corpus(corpus).get(self.known.case),
            backend=config.backend,
            package=self.wanted.package,
            device=config.device,
            options=dict(config.options),
            profile=config.profile,
        )


def is_bisectable(provisioner: str) -> bool:
    """Whether its toolchains are releases, or commits of a compiler's own repository."""
    return provisioner in provisioners()


def is_of_commits(provisioner: str) -> bool:
    """Whether its toolchains are commits of a compiler's own repository."""
    return is_bisectable(provisioner) and provisioner != "release"


def release_range(job_context: JobContext, known: BugCase, requested: str = "") -> Range:
    """The releases to search: those in `requested`, else up to the last one that showed the bug.

    The range starts at the last release that passed a retest, else YEARS back.
    Raises RefusalError if the bug's builds are neither releases nor commits.
    """
    shown = job_context.job_spec.arguments.get("toolchain") or known.campaign.head_toolchain
    package = known.config.toolchain.package or backends.get(known.config.backend).package
    with job_context.database.reading() as session:
        toolchain = campaigns.toolchain(session, str(shown or ""))
        passed = _last_passing_release(session, known.bug, package)
    if not is_bisectable(toolchain.provisioner) or package not in toolchain.versions:
        raise RefusalError(
            f"its builds are neither releases nor commits of {package}; the provisioner is "
            f"{toolchain.provisioner!r}"
        )
    if requested:
        return Range.parse(f"{package}:{requested}")
    version = _newest_release(toolchain.versions[package], toolchain.provisioner)
    if passed and Version(passed) < Version(version):
        return Range.parse(f"{package}:{passed}..{version}")
    major = int(version.partition(".")[0])
    oldest = major - YEARS if major > 2000 else 0
    return Range.parse(f"{package}:{oldest}..{version}")


def _newest_release(version: str, provisioner: str) -> str:
    """The end of a range up to a version: a release, or a nightly build that an index has.

    What a commit was built as, such as 0.27.dev0+gabc1234, no index has; its release comes after it.
    """
    parsed = Version(version)
    nightly = parsed.is_prerelease and provisioner in _INDEXED
    return parsed.public if nightly else parsed.base_version


def _last_passing_release(session: Session, bug: Bug, package: str) -> str:
    """The release of the bug's last passing retest; "" if there is none or its build is not a release."""
    for row in reversed(retests.of_bug(session, bug.id)):
        if row.purpose != "asked" and retests.passed(row):
            build = campaigns.toolchain(session, row.toolchain)
            if is_of_commits(build.provisioner):
                continue  # no release passed
            version = build.versions.get(package, "") if build.provisioner == "release" else ""
            return version if re.fullmatch(r"\d+(\.\d+)*", version) else ""
    return ""


class _StoppableRunner:
    """The service's runner, stopped with the job."""

    def __init__(self, job_context: JobContext, stop: threading.Event) -> None:
        self._runner, self._stop = job_context.services.runner, stop

    def run(self, shard: Shard, on_event: OnEvent, _stop: threading.Event, /) -> None:
        """Runs a shard; ignores the given stop event in favor of the job's."""
        self._runner.run(shard, on_event, self._stop)
