"""Searches the release that introduced or fixed a bug: `bot.bisection` for jobs."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

from packaging.version import Version

from bot.bisection.decision_rule import DecisionRule
from bot.bisection.journal import Journal
from bot.bisection.release_probe import BisectionQuery, ReleaseProbe, bisect_releases
from bot.bisection.releases import Range, releases
from bot.bisection.report import result_to_json
from bot.bugs.reproduction import BugCase
from bot.campaigns.run_with_lease import LeaseHolder, run_with_lease
from bot.errors import RefusalError
from bot.file_lock import file_lock
from bot.jobs.job_context import JobContext
from bot.runners.protocol import OnEvent
from bot.store import Session, campaigns, retests
from bot.store.models import Bug
from bot.toolchains.installer import Installer
from fuzzing import backends
from fuzzing.cases import Corpus
from fuzzing.execute.shard import Shard

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

    def _ask(self, *, fixed_by: bool) -> dict[str, Any]:
        minded = self.lease_holder or self.job_context
        return run_with_lease(minded, lambda on_event, stop: self._search(on_event, stop, fixed_by=fixed_by))

    def _search(self, on_event: OnEvent, stop: threading.Event, *, fixed_by: bool) -> dict[str, Any]:
        job_context, began = self.job_context, time.monotonic()
        query = replace(self._question(), fixed_by=fixed_by)
        folder = job_context.settings.data_dir / "bisections"
        folder.mkdir(parents=True, exist_ok=True)
        found = releases(self.wanted, Installer(folder), folder / "releases")
        ordered = found[::-1] if fixed_by else found
        journal = Journal(folder, query.identity)
        with file_lock(journal.path.with_suffix(".lock")):
            release_probe = ReleaseProbe(
                query,
                ordered,
                job_context.settings.data_dir,
                journal,
                _StoppableRunner(job_context, stop),
                lambda line: on_event({"note": line}),
                make=job_context.services.provision,
                out_of_time=lambda: self.seconds is not None and time.monotonic() - began > self.seconds,
            )
            answer, probed = bisect_releases(release_probe, len(ordered), DecisionRule())
        return result_to_json(query, self.wanted, ordered, answer, probed, time.monotonic() - began)

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


def release_range(job_context: JobContext, known: BugCase, requested: str = "") -> Range:
    """The releases to search: those in `requested`, else up to the last one that showed the bug.

    The range starts at the last release that passed a retest, else YEARS back.
    Raises RefusalError if the bug's builds are not releases.
    """
    shown = job_context.job_spec.arguments.get("toolchain") or known.campaign.head_toolchain
    package = known.config.toolchain.package or backends.get(known.config.backend).package
    with job_context.database.reading() as session:
        toolchain = campaigns.toolchain(session, str(shown or ""))
        passed = _last_passing_release(session, known.bug, package)
    if toolchain.provisioner != "release" or package not in toolchain.versions:
        raise RefusalError(
            f"its builds are not releases of {package}; the provisioner is {toolchain.provisioner!r}"
        )
    if requested:
        return Range.parse(f"{package}:{requested}")
    version = toolchain.versions[package]
    if passed and Version(passed) < Version(version):
        return Range.parse(f"{package}:{passed}..{version}")
    major = int(version.partition(".")[0])
    oldest = major - YEARS if major > 2000 else 0
    return Range.parse(f"{package}:{oldest}..{version}")


def _last_passing_release(session: Session, bug: Bug, package: str) -> str:
    """The release of the bug's last passing retest; "" if there is none or its build is not a release."""
    for row in reversed(retests.of_bug(session, bug.id)):
        if row.purpose != "asked" and retests.passed(row):
            build = campaigns.toolchain(session, row.toolchain)
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
