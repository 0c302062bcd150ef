"""Pushes the commits of a real repository, one by one, to the whole service beside the double of GitHub."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from bot.config import CONFIG_PATH
from bot.store import findings
from bot.store.models import Campaign, CampaignState, OutcomeRow
from tests.github.repository_double import RepositoryDouble
from tests.scenarios.deployment import Deployment

_POLL_S = 0.5  # looking costs the service's processor time
_TIMEOUT_S = 3600.0
_BRANCH = "main"


@dataclass(frozen=True)
class RealCommit:
    """A commit; `touches` says whether it changes the paths that were asked for."""

    sha: str
    subject: str
    touches: bool


@dataclass(frozen=True)
class PushResult:
    """What one push led to.

    seconds    from the webhook to the end, when all effects are published
    processor  seconds of the service and of the processes that it started
    cases      that ran at head, cached verdicts included
    new        verdicts that were not cached: at head, and at base
    found      findings by classification
    named      test name and title of each regression
    said       conclusion and title of the check run
    reason     why the campaign failed
    posts      requests that wrote anything else than a check run: issues, comments, labels
    memory     resident bytes of the service after it
    database   bytes of its database
    """

    seconds: float
    processor: float
    cases: int
    new: tuple[int, int]
    found: dict[str, int]
    named: tuple[tuple[str, str], ...]
    said: str
    reason: str
    posts: tuple[str, ...]
    memory: int
    database: int


def list_commits(repository: Path, paths: Sequence[str], until: str, count: int) -> list[RealCommit]:
    """The first-parent line up to `until`, oldest first, with `count` commits that change one of `paths`.

    It begins with the first of these; commits between them are there too.
    """
    log = ("log", "--first-parent", "--format=%H %s")
    touching = [line[:40] for line in _git(repository, *log, f"-{count}", until, "--", *paths).splitlines()]
    if not touching:
        return []
    span = _git(repository, *log, f"{touching[-1]}^..{until}").splitlines()
    return [RealCommit(line[:40], line[41:], line[:40] in touching) for line in reversed(span)]


@dataclass
class PushedHistory:
    """A repository of the double that has the history of a real one, and our configuration in each commit.

    source  the real one's clone; its objects are used where they lie
    config  the text of `.github/assay.yml`
    tags    a regular expression of the tags that the repository has
    """

    deployment: Deployment
    double: RepositoryDouble
    source: Path
    config: str
    tags: str
    _written: int = field(default=0)

    def begin(self, at: str) -> None:
        """Sets the branch to a commit of the real history; nobody is told."""
        git = self.double.record.git
        objects = _git(self.source, "rev-parse", "--path-format=absolute", "--git-path", "objects").strip()
        (git.path / "objects/info/alternates").write_text(f"{objects}\n")
        listed = _git(self.source, "for-each-ref", "--format=%(refname) %(objectname)", "refs/tags")
        for name, sha in map(str.split, listed.splitlines()):
            if self.tags and re.search(self.tags, name):
                git.point(name, sha)
        git.point(f"refs/heads/{_BRANCH}", self._with_config(at, f"{at}^"))

    def push(self, sha: str) -> PushResult:
        """Pushes a commit of the real history onto the one before, and waits until nothing is left to do."""
        made = self._with_config(sha, self.double.head())
        before, used, seen = self._verdicts(), self._processor_s(), len(self.deployment.hub.seen)
        begun = time.monotonic()
        self.double.force(_BRANCH, made)
        while self.deployment.pending_work():
            if time.monotonic() - begun > _TIMEOUT_S:
                raise AssertionError(f"{sha[:12]} did not end; {self.deployment.describe_activity()}")
            time.sleep(_POLL_S)
        seconds = time.monotonic() - begun
        (campaign,) = [one for one in self.deployment.campaigns(self.double.name) if one.head == made]
        new = Counter(self._verdicts())
        new.subtract(before)
        report = self._report(campaign)
        groups = [one for one in report.get("groups", ()) if one["classification"] == "regression"]
        with self.deployment.rows.reading() as session:
            found = {kind.value: count for kind, count in findings.counts(session, campaign.id).items()}
        writes = [one for one in self.deployment.hub.seen[seen:] if one.method != "GET"]
        return PushResult(
            seconds,
            self._processor_s() - used,
            sum(sum(one["head"].values()) for one in report.get("operators", ())),
            (new[campaign.head_toolchain or ""], new[campaign.base_toolchain or ""]),
            found,
            tuple((one["example"]["test"], one["title"]) for one in groups),
            self._said(made),
            campaign.reason if campaign.state != CampaignState.DONE.value else "",
            tuple(
                f"{one.method} {one.path}"
                for one in writes
                if "/check-runs" not in one.path and "/access_tokens" not in one.path
            ),
            _resident_bytes(self.deployment.service_pid),
            sum(path.stat().st_size for path in self.deployment.data_dir.glob("assay.db*")),
        )

    def _with_config(self, sha: str, parent: str) -> str:
        """A child of `parent` with the files, the author and the message of `sha`, and our configuration."""
        git = self.double.record.git
        tree = git.tree_with(sha, {CONFIG_PATH: self.config})
        name, email, at, message = git.run("log", "-1", "--format=%an%x00%ae%x00%ct%x00%B", sha).split("\0")
        who = {
            f"GIT_{person}_{key}": value
            for person in ("AUTHOR", "COMMITTER")
            for key, value in (("NAME", name), ("EMAIL", email), ("DATE", f"{at} +0000"))
        }
        return _git(git.path, "commit-tree", tree, "-p", parent, "-m", message.strip(), **who).strip()

    def _verdicts(self) -> dict[str, int]:
        """Verdicts by toolchain."""
        with self.deployment.rows.reading() as session:
            rows = session.execute(select(OutcomeRow.toolchain, func.count()).group_by(OutcomeRow.toolchain))
            return {toolchain: int(count) for toolchain, count in rows}

    def _report(self, campaign: Campaign) -> dict[str, Any]:
        path = self.deployment.data_dir / "artifacts" / str(campaign.id) / "report.json"
        read: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return read

    def _said(self, head: str) -> str:
        runs = [one.fields for one in self.double.check_runs if one.head_sha == head]
        return "; ".join(f"{one.get('conclusion')}: {one['output']['title']}" for one in runs)

    def _processor_s(self) -> float:
        """Processor time of the service and of its ended children."""
        stat = Path(f"/proc/{self.deployment.service_pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")  # proc(5): utime … cstime


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def _git(folder: Path, *arguments: str, **variables: str) -> str:
    command = ["git", "-c", "safe.directory=*", *arguments]
    done = subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, env=os.environ | variables
    )
    return done.stdout
