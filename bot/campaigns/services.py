"""The collaborators of campaigns, as protocols; `bot.wiring` supplies them.

The queue and its steps use other packages, except the store, only through `Services`, so the same steps
serve the service, `assay run` and the tests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bot.campaigns.classify.out_of_reach import UnreachableSources
from bot.campaigns.plan.case_source import CaseSource
from bot.campaigns.plan.sample import Sample
from bot.campaigns.report.summary import Summary
from bot.commit_files import ReadFile
from bot.runners.protocol import OnEvent, Runner
from bot.runners.repository_test import RunResult
from bot.runners.reproducer_run import Ending
from bot.store import now
from bot.store.campaigns import Session
from fuzzing.outcomes import Outcome
from fuzzing.triage.signature import Signature
from fuzzing.triage.traits import Traits


class Settings(Protocol):
    """The settings used here (`bot.settings.Settings` has them)."""

    @property
    def data_dir(self) -> Path:
        """Where the corpus, the toolchains and the artifacts lie."""

    @property
    def workers(self) -> int:
        """Worker processes of one shard."""


class ReductionConfig(Protocol):
    """Limits of reductions."""

    @property
    def budget(self) -> float:
        """Seconds for one case."""

    @property
    def cases(self) -> int:
        """Cases of one campaign, at most."""


class Config(Protocol):
    """A repository's configuration in force (`bot.config.RepositoryConfig`)."""

    @property
    def backend(self) -> str:
        """Name of the backend."""

    @property
    def sources(self) -> Sequence[str]:
        """Names of the case sources."""

    @property
    def frontend(self) -> str | None:
        """The frontend asked for; None for whatever the sources need."""

    @property
    def strategy(self) -> str | None:
        """Name of the strategy that ranks the cases; None for what fits the campaign."""

    @property
    def budget(self) -> float:
        """Seconds of wall time for the head; the base comparison may take as many again."""

    @property
    def branches(self) -> Sequence[str] | None:
        """Globs of the branches to watch; None for the default branch alone."""

    @property
    def device(self) -> str:
        """The device, such as CPU."""

    @property
    def options(self) -> Mapping[str, str]:
        """The backend's options that are not at their default."""

    @property
    def profile(self) -> str:
        """The tolerance profile."""

    @property
    def repeats(self) -> int:
        """Fresh-process runs behind an accusation, at least 1."""

    def with_overrides(self, changes: Mapping[str, Any]) -> Config:
        """The configuration with some fields set otherwise; raises ConfigError if they do not go together."""

    @property
    def reduction(self) -> ReductionConfig:
        """How much is spent on making failing cases small."""

    def to_json(self) -> dict[str, Any]:
        """The configuration as JSON, which `Services.restore_config` reads back."""


class ToolchainSpec(Protocol):
    """A toolchain to be made (`bot.toolchains.ToolchainSpec`)."""

    @property
    def provisioner(self) -> str:
        """Name of the provisioner."""

    @property
    def backend(self) -> str:
        """Name of the backend."""

    @property
    def label(self) -> str:
        """For people, such as "openvino 2024.0.0"."""

    @property
    def commit(self) -> object:
        """The commit that it is made of; None for a release."""

    @property
    def overlay(self) -> Sequence[Any]:
        """The folders of the commit that are laid over a wheel; none for a release."""

    @property
    def predates(self) -> str:
        """Why two commits with this toolchain are not thereby equal, "" if they are."""

    @property
    def digest(self) -> str:
        """Its name for ever."""

    def candidates(self) -> Iterator[ToolchainSpec]:
        """The spec and its alternatives in order."""

    def like(self, other: Any, /) -> ToolchainSpec:
        """The same commit, made as `other` is."""

    def is_out_of_reach(self, path: str, /) -> bool:
        """Whether a file is the compiler's own and not in the toolchain."""


class ReadyToolchain(Protocol):
    """A toolchain that runs (`bot.toolchains.ReadyToolchain`)."""

    @property
    def spec(self) -> ToolchainSpec:
        """What it was made from."""

    @property
    def digest(self) -> str:
        """Its name for ever."""

    @property
    def python(self) -> str | Path:
        """Path of its interpreter."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Package → version."""

    @property
    def requirements(self) -> Sequence[str]:
        """What a stranger pip-installs to get the same."""

    @property
    def passed_over(self) -> Sequence[str]:
        """Why other ways to make it were not taken."""


class Repositories(Protocol):
    """Files of commits (`bot.github.repositories.Repositories`)."""

    def read(self, target: str, sha: str, path: str) -> bytes | None:
        """The file at that commit; None if it is not there."""

    def default_branch(self, target: str) -> str:
        """The name of the repository's default branch."""

    def commits(self, target: str, base: str, head: str, paths: Sequence[str]) -> Sequence[str]:
        """The commits after base up to head, by first parents, that change one of the files; oldest first."""

    def changed_files(self, target: str, base: str, head: str) -> Sequence[str]:
        """The paths that differ between two commits."""

    def is_on_branch(self, target: str, commit: str) -> bool:
        """Whether a branch of the repository itself contains the commit."""

    def merge_base(self, target: str, base: str, head: str) -> str:
        """The commit at which two parted; "" if they have no history in common."""

    def change(self, target: str, base: str, head: str) -> Mapping[str, Any] | None:
        """What differs between two commits, as `fuzzing.prioritize` reads it; None if they are no commits."""


class ShardMaker(Protocol):
    """Makes a `fuzzing.execute.shard.Shard`; takes its limits from the configuration."""

    def __call__(
        self,
        config: Any,
        *,
        corpus: str,
        cases: tuple[str, ...],
        backend: str,
        toolchain: str,
        python: str,
        device: str,
        profile: str,
        options: dict[str, str],
        workers: int,
        fresh: bool,
        repeats: int,
        ablate: bool,
        budget_s: float | None,
        forked: bool = False,
        unforked: tuple[str, ...] = (),
        limit_factor: float = 1.0,
    ) -> Any:
        """The shard; `limit_factor` multiplies the configuration's limits of time and memory."""


class Sign(Protocol):
    """What makes an outcome the same bug as others (`fuzzing.triage.signature.compute_signature`)."""

    def __call__(
        self, outcome: Outcome, operator: str, frontend: str, reduced: Traits | None = None
    ) -> Signature:
        """The signature; `frontend` as people call it, `reduced` if the case is what a reduction left."""


@dataclass(frozen=True)
class CampaignProblem:
    """Why a campaign ends without running cases.

    kind    "infrastructure" (the operator's to fix), "configuration" (the repository's), "refusal"
            (GitHub's), "unchanged" (head's compiler is base's), "unreached" (it differs in code that the
            toolchains do not have), "outdated" (the same wheel, older than both,
            is all there is for head and base), "broken" (head's compiler cannot be used, base's can),
            "native" (nor can it, but the commit changes native code that its toolchain lacks) or "unbuilt"
            (the commit's own build fails)
    reason  what happened, why, and what to do next
    """

    campaign_id: int
    target: str
    head: str
    ref: str
    trigger: str
    kind: str
    reason: str


class Script(NamedTuple):
    """The reproducer of a case.

    text    the guarded script; "" where there is none
    short   the short one, "" where there is none
    ending  how the short one ends; None where it does not end by itself, as in a hang
    """

    case: str
    text: str
    short: str = ""
    ending: Ending | None = None


class Reports(Protocol):
    """Turns a campaign's end into files and effects (`bot.reports`)."""

    def scripts(self, summary: Summary) -> Sequence[Sequence[Script]]:
        """For each bug that is reported, its reproducers; the first that works is offered."""

    def write(self, summary: Summary) -> None:
        """Writes the artifacts; outside any transaction, may be repeated after a crash."""

    def publish(self, session: Session, summary: Summary) -> None:
        """Writes bugs and effects, idempotently by key, in the transaction that ends the campaign."""

    def publish_problem(self, session: Session, problem: CampaignProblem) -> None:
        """Adds one check-run effect that gives the reason."""


class Clock(Protocol):
    """The time."""

    def now(self) -> datetime:
        """The present, in UTC."""

    def monotonic(self) -> float:
        """Seconds that only grow."""


class SystemClock:
    """The clock of the machine it runs on."""

    def now(self) -> datetime:
        """The present, in UTC."""
        return now()

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()


@dataclass(frozen=True)
class Services:
    """The collaborators of every step.

    `resolve`, `provision`, `restore_config` and `make_shard` get back objects of their own packages, hence
    `Any`.

    config_of   the configuration at a commit: the repository's own, else the default; None if nothing is
                pinned. Raises ConfigError
    own_config  the same without the default
    unreachable_sources  (toolchain, base) → the sources of its commit that it does not have
    sign        the signature of an outcome
    catalogs    (corpus, names of sources) → the sources, migrated or not
    corpus      folder of the cases; None for the one in the data folder
    sample      which cases of the sources are planned; None for all
    try_script  (script, interpreter) → exit code, in a confined process; for a short script, whose
                Ending is the third argument, 1 if it ended so
    run_test    runs a test of the repository, confined: (interpreter, files by path, arguments of Python,
                timeout in s)
    proposal_fork  the fork through which tests are proposed to a target; "" for none
    run_tool    runs `python -m MODULE ARGS...` of the data plane, passes on its events, ends soon after
                `stop`
    """

    repositories: Repositories
    config_of: Callable[[ReadFile], Config | None]
    own_config: Callable[[ReadFile], Config | None]
    restore_config: Callable[[dict[str, Any]], Config]
    resolve: Callable[[Any, ReadFile], ToolchainSpec]
    provision: Callable[[Any, Path, Callable[[str], None]], ReadyToolchain]
    unreachable_sources: Callable[[Any, str], UnreachableSources]
    make_shard: ShardMaker
    runner: Runner
    try_script: Callable[..., int]
    run_test: Callable[[str, Mapping[str, str], Sequence[str], float], RunResult]
    proposal_fork: Callable[[str], str]
    run_tool: Callable[[str, Sequence[str], OnEvent, threading.Event], None]
    sign: Sign
    reports: Reports
    catalogs: Callable[[Path, Sequence[str]], Sequence[CaseSource]]
    corpus: Path | None = None
    sample: Sample | None = None
    clock: Clock = field(default_factory=SystemClock)
