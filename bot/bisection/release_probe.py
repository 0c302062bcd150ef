"""Runs a case on releases: made one by one, run in fresh processes, journaled."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bot.bisection.decision_rule import Counts, DecisionRule
from bot.bisection.journal import Journal
from bot.bisection.search import BisectionResult, ResultKind, bisect
from bot.errors import CheckUnfinishedError, ConfigError, ProvisionError, RunnerError, ToolchainError
from bot.runners.protocol import Event, OnEvent
from bot.toolchains import ToolchainSpec, provision
from bot.toolchains.existing import public_version
from bot.toolchains.registry import OnProgress
from fuzzing import backends
from fuzzing.cases import TestCase
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.reduce.symptom_check import has_symptom, symptom_of
from fuzzing.triage.similar_failures import explain_similarity

_MESSAGE_LINES = 3  # of a failure that are shown all

OnLine = Callable[[str], None]
ProbeError = ProvisionError | RunnerError | ToolchainError


class Runner(Protocol):
    """What executes shards: see `bot.runners.protocol.Runner`."""

    def run(self, shard: Shard, on_event: OnEvent, stop: threading.Event, /) -> None:
        """Executes a shard."""
        ...


class Build(Protocol):
    """A toolchain that runs: see `bot.toolchains.ReadyToolchain`."""

    @property
    def digest(self) -> str:
        """Its digest."""
        ...

    @property
    def python(self) -> str | Path:
        """Path of its interpreter."""
        ...

    @property
    def spec(self) -> ToolchainSpec:
        """What was made, of several candidates the one that could be."""
        ...

    @property
    def passed_over(self) -> Sequence[str]:
        """Why the candidates before it could not be made."""
        ...


MakeToolchain = Callable[[ToolchainSpec, Path, OnProgress], Build]


@dataclass(frozen=True)
class BisectionQuery:
    """The question of a bisection.

    corpus, case   the case, and the folder that holds it
    package        the distribution whose releases are tried
    fixed_by       look for the change from failing to passing
    any_failure    any failure of the compiler counts as the bug
    further        releases tried beyond the search where the change shows another failure; ours
    """

    corpus: Path
    case: TestCase
    backend: str
    package: str
    device: str
    options: dict[str, str] = field(default_factory=dict)
    profile: str = "default"
    fixed_by: bool = False
    any_failure: bool = False
    further: int = 3

    @property
    def identity(self) -> dict[str, Any]:
        """What outcomes depend on, beside the toolchain."""
        return {
            "case": self.case.id,
            "backend": self.backend,
            "device": self.device,
            "options": dict(sorted(self.options.items())),
            "profile": self.profile,
        }

    def spec(self, release: str) -> ToolchainSpec:
        """The toolchain of one release, as for a target that pins it.

        The reference library of a torch or Keras case runs in the toolchain, in the version installed here.
        """
        adapter = backends.get(self.backend)
        # The nightly builds of a compiler may be a package of another name.
        own = {self.package, canonicalize_name(adapter.package)}
        needed = [item for item in adapter.requirements(release) if _name(item) not in own]
        named = {self.package, *map(_name, needed)}
        libraries: list[str] = []
        if self.case.program.frontend != "onnx":
            libraries += backends.reference_packages(self.case.program.kind)
        for name in libraries:
            with suppress(PackageNotFoundError):
                needed += [] if name in {"numpy", *named} else [f"{name}=={public_version(version(name))}"]
        pins = (f"{self.package}=={release}", *needed)
        return ToolchainSpec("release", self.backend, pins, f"{self.package} {release}")


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


@dataclass
class ReleaseResult:
    """Result of one release.

    spec         its toolchain; None if there can be none
    outcomes     of its runs, in order
    failure      why there are none, or no more; "" if all ran
    tried        False if the time was spent before
    passed_over  why it was not made by earlier provisioners
    """

    release: str
    spec: ToolchainSpec | None
    outcomes: list[Outcome] = field(default_factory=list)
    failure: str = ""
    tried: bool = True
    passed_over: tuple[str, ...] = ()


@dataclass
class Cost:
    """Toolchains made, runs, and runs taken from the journal."""

    installs: int = 0
    runs: int = 0
    replayed: int = 0


class ReleaseProbe:
    """The probe of `bot.bisection.search` for releases.

    Follows the most frequent failure of the first release that fails.

    releases         in the order of the search
    make             makes toolchains
    out_of_time      whether no further release may be tried
    accept_doubtful  whether the bug with another message counts and, for a fix, another failure
    """

    def __init__(
        self,
        query: BisectionQuery,
        releases: Sequence[str],
        data_dir: Path,
        journal: Journal,
        runner: Runner,
        on_line: OnLine,
        make: MakeToolchain = provision,
        out_of_time: Callable[[], bool] = lambda: False,
        *,
        accept_doubtful: bool = False,
    ) -> None:
        self._question, self._releases = query, releases
        self._data_dir, self._journal = data_dir, journal
        self._runner, self._on_line, self._make, self._out_of_time = runner, on_line, make, out_of_time
        self._accept_doubtful = accept_doubtful
        self.probed: dict[int, ReleaseResult] = {}
        self.wanted: dict[str, Any] | None = None
        self.cost = Cost()

    def __call__(self, revision: int, runs: int) -> Counts:
        """What further `runs` runs of a release did; no runs if it cannot be had, or the time is spent."""
        release = self._releases[revision]
        probed = self.probed.get(revision) or self._begin(release)
        self.probed[revision] = probed
        if probed.spec is None:
            self._on_line(f"{release}: {probed.failure}")
            return Counts()
        known = self._journal.outcomes(probed.spec.digest)[len(probed.outcomes) :][:runs]
        if not known and not probed.outcomes and self._out_of_time():
            probed.tried = False
            return Counts()
        fresh, failure = self._run(probed, runs - len(known))
        probed.outcomes += known + fresh
        probed.failure = "" if failure is None else _on_one_line(failure, probed.spec.label)
        self.cost.replayed += len(known)
        self.cost.runs += len(fresh)
        self._on_line(f"{probed.spec.label}: {tally(known + fresh) or probed.failure}")
        return self._count(known + fresh, runs, failure)

    def _begin(self, release: str) -> ReleaseResult:
        """A release before its runs; of several toolchains that may be made, the first with known runs."""
        try:
            spec = self._question.spec(release)
        except ConfigError as error:
            return ReleaseResult(release, None, failure=_on_one_line(error))
        candidates = spec.candidates()
        known = next((one for one in candidates if self._journal.outcomes(one.digest)), None)
        return ReleaseResult(release, known or spec, passed_over=spec.passed_over)

    def _run(self, probed: ReleaseResult, runs: int) -> tuple[list[Outcome], ProbeError | None]:
        """The outcomes of so many runs; fewer, or none, and why, where it failed."""
        outcomes: list[Outcome] = []

        def take(event: Event) -> None:
            if event["event"] == "outcome":
                outcome = Outcome.from_json(event["outcome"])
                assert probed.spec is not None
                self._journal.add(probed.spec.digest, probed.release, outcome)
                outcomes.append(outcome)

        if not runs:
            return outcomes, None
        try:
            toolchain = self._make_toolchain(probed)
            self._runner.run(self._shard(toolchain, runs), take, threading.Event())
        except (ProvisionError, RunnerError, ToolchainError) as error:
            return outcomes, error
        return outcomes, None

    def _make_toolchain(self, probed: ReleaseResult) -> Build:
        """Makes it; all runs of a release are on the one that is made first."""
        assert probed.spec is not None
        steps: list[str] = []

        def progress(line: str) -> None:
            steps.append(line)
            self._on_line(line)

        ready = self._make(probed.spec, self._data_dir, progress)
        probed.spec = ready.spec
        probed.passed_over = tuple(ready.passed_over) or probed.passed_over
        self.cost.installs += any(not step.endswith((" before", "there")) for step in steps)
        return ready

    def _shard(self, toolchain: Build, runs: int) -> Shard:
        question = self._question
        return Shard(
            corpus=str(question.corpus.resolve()),
            cases=(question.case.id,),
            backend=question.backend,
            toolchain=toolchain.digest,
            python=str(toolchain.python),
            device=question.device,
            options=dict(question.options),
            profile=question.profile,
            fresh=True,
            repeats=runs,
        )

    def _count(self, outcomes: Sequence[Outcome], runs: int, failure: ProbeError | None) -> Counts:
        if self.wanted is None:
            self.wanted = _most_frequent(outcomes)
        words = [self._classify(outcome) for outcome in outcomes]
        failed = 0 if failure is None or _is_permanent(failure) else runs - len(words)
        bad, good, other = map(words.count, ("bad", "good", "other"))
        doubtful = words.count("reworded") + words.count("replaced")
        if not self._accept_doubtful:
            return Counts(bad, good, other + doubtful, failed)
        return Counts(bad + doubtful, good, other, failed, doubtful)

    def _classify(self, outcome: Outcome) -> str:
        """Classifies one run. A release that refuses the case does not have the bug, and has not fixed it.

        "reworded": the bug with another message, as releases change messages. "replaced": another failure
        where a fix is wanted, which a release that fails is not.
        """
        clean = (Verdict.PASS,) if self._question.fixed_by else (Verdict.PASS, Verdict.UNSUPPORTED)
        if outcome.verdict in clean:
            return "good"
        if self._question.any_failure and outcome.verdict.is_failure:
            return "bad"
        if self.wanted is None or not outcome.verdict.is_failure:
            return "other"
        if has_symptom(outcome, self.wanted):
            return "bad"
        if explain_similarity(symptom_of(outcome), self.wanted):
            return "reworded"
        return "replaced" if self._question.fixed_by else "other"

    @property
    def further(self) -> int:
        """As in the question."""
        return self._question.further

    def accepting_doubtful(self) -> ReleaseProbe:
        """A probe that counts reworded and replaced failures; reuses all runs."""
        again = ReleaseProbe(
            self._question,
            self._releases,
            self._data_dir,
            self._journal,
            self._runner,
            self._on_line,
            self._make,
            self._out_of_time,
            accept_doubtful=True,
        )
        again.cost = self.cost
        return again

    def doubt(self, revision: int) -> str:
        """A predicate: why another failure of a release counts as the bug; "" if it shows the bug itself."""
        words = self._words(revision)
        if self.wanted is None or "bad" in words:
            return ""
        if "reworded" in words:
            why = explain_similarity(symptom_of(words["reworded"]), self.wanted)
            return f"fails with another message, taken for the same bug: {why}"
        return "fails in another way; the bug may have been fixed before" if "replaced" in words else ""

    def is_reworded(self, revision: int) -> bool:
        """Whether a release shows the bug with another message only."""
        words = self._words(revision)
        return "reworded" in words and "bad" not in words

    def _words(self, revision: int) -> dict[str, Outcome]:
        """What the runs of a release are classified as, with an outcome of each."""
        outcomes = self.probed[revision].outcomes if revision in self.probed else []
        return {self._classify(outcome): outcome for outcome in reversed(outcomes)}


class _NotCertainError(Exception):
    """Exact symptoms give no certain answer within few further releases."""


def bisect_releases(
    release_probe: ReleaseProbe, releases: int, rule: DecisionRule
) -> tuple[BisectionResult, ReleaseProbe]:
    """The result, and the probe it is from.

    Reworded failures count as the bug, and for a fix all failures. Where the failing release next to the
    clean one shows no exact symptom, these decide if they give a certain answer with few further releases;
    between releases with another failure a range is certain, too.
    """
    accepting = release_probe.accepting_doubtful()
    answer = bisect(releases, accepting, rule)
    if answer.failing is None or not accepting.doubt(answer.failing):
        return answer, accepting
    release_probe.wanted = accepting.wanted
    known = set(accepting.probed)

    def exact(revision: int, runs: int) -> Counts:
        further = release_probe.probed.keys() - known
        if len(further) >= release_probe.further and revision not in known | further:
            raise _NotCertainError
        return release_probe(revision, runs)

    with suppress(_NotCertainError):
        certain = bisect(releases, exact, rule)
        is_range = certain.kind is ResultKind.RANGE and not accepting.is_reworded(answer.failing)
        if certain.kind is ResultKind.FOUND or is_range:
            return certain, release_probe
    return answer, accepting


def _is_permanent(failure: ProbeError) -> bool:
    """Whether the release cannot be made or judged, rather than the machine failed.

    One on which even the smoke test hangs is skipped: each further try costs minutes.
    """
    return isinstance(failure, (ToolchainError, CheckUnfinishedError)) or not failure.transient


def _most_frequent(outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    """The symptom of most failures in `outcomes`; None without failures."""
    seen = Counter(
        json.dumps(symptom_of(outcome), sort_keys=True) for outcome in outcomes if outcome.verdict.is_failure
    )
    return json.loads(seen.most_common(1)[0][0]) if seen else None


def tally(outcomes: Sequence[Outcome]) -> str:
    """Counts of verdicts: "crash ×9, pass ×1"."""
    seen = Counter(outcome.verdict.value for outcome in outcomes)
    return ", ".join(f"{verdict} ×{times}" for verdict, times in seen.most_common())


def _on_one_line(failure: Exception, label: str = "") -> str:
    """The message without the label and the folder of a toolchain and the advice to pin others.

    Of a traceback or what a build printed, its last line and what it is about.
    """
    if isinstance(failure, ProvisionError) and failure.causes:
        return "; ".join(_on_one_line(cause, label) for cause in failure.causes)
    text = str(failure).removeprefix(f"{label}: ")
    lines = [line.strip() for line in text.splitlines() if not line.startswith("To fix:")]
    if len(lines) > _MESSAGE_LINES:
        lines = [f"{lines[-1]};", lines[0].rstrip(":")]
    return re.sub(r"\S+/bin/python\b", "its python", " ".join(lines))
