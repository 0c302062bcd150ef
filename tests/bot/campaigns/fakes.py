"""Deterministic stand-ins for the other rooms; none of them keeps anything between processes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bot.campaigns.plan.catalog import open_catalogs
from bot.campaigns.report.summary import Summary
from bot.campaigns.services import CampaignProblem, Script, Services
from bot.commit_files import ReadFile
from bot.errors import ConfigError, RunnerError, UsageError
from bot.runners.protocol import OnEvent
from bot.store.campaigns import Session
from bot.store.models import Classification, Effect
from bot.toolchains.registry import Folder
from bot.toolchains.unreachable_sources import UnreachableSources
from fuzzing.cases import Corpus, OnnxModel, Provenance, TestCase
from fuzzing.oracles.tolerance_profiles import format_configuration
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict
from fuzzing.triage.signature import Signature
from fuzzing.triage.traits import Traits

CONFIG = ".github/assay.yml"
PIN = "requirements.txt"

#: Behavior of one test on one release: what the ordinary run gives, then each fresh one; the last repeats.
Behavior = tuple[str, ...]

#: test → (on release 1, on release 2). Named after what a campaign from 1 to 2 should make of them.
TESTS: dict[str, tuple[Behavior, Behavior]] = {
    "Abs_fine": (("pass",), ("pass",)),
    "Add_regressed": (("pass",), ("crash",)),
    "Conv_regressed_wrong": (("pass",), ("wrong_result",)),
    "Cos_regressed_hang": (("pass",), ("hang",)),
    "Div_already_broken": (("crash",), ("crash",)),
    "Erf_fixed": (("crash",), ("pass",)),
    "Exp_flaky_at_head": (("pass",), ("crash", "crash", "pass", "crash")),
    "Gelu_flaky_at_base": (("pass", "pass", "crash"), ("crash",)),
    "Hann_support_lost": (("pass",), ("unsupported",)),
    "If_never_supported": (("unsupported",), ("unsupported",)),
    "Loop_supported_at_last": (("unsupported",), ("crash",)),
    "Max_fine": (("pass",), ("pass",)),
    "Neg_changed": (("wrong_result",), ("crash",)),
    "Not_changed_once": (("wrong_result", "crash"), ("crash",)),
}

#: What a campaign over TESTS from release 1 to release 2 finds.
EXPECTED: dict[str, tuple[Classification, str]] = {
    "Add_regressed": (Classification.REGRESSION, "crash"),
    "Conv_regressed_wrong": (Classification.REGRESSION, "wrong_result"),
    "Cos_regressed_hang": (Classification.REGRESSION, "hang"),
    "Div_already_broken": (Classification.ALREADY_BROKEN, "crash"),
    "Erf_fixed": (Classification.FIXED, "crash"),
    "Exp_flaky_at_head": (Classification.FLAKY, "crash"),
    "Gelu_flaky_at_base": (Classification.FLAKY, "crash"),
    "Hann_support_lost": (Classification.SUPPORT_LOST, "unsupported"),
    "Loop_supported_at_last": (Classification.INCONCLUSIVE, "crash"),
    "Neg_changed": (Classification.CHANGED, "crash"),
    "Not_changed_once": (Classification.ALREADY_BROKEN, "crash"),
}


@dataclass(frozen=True)
class Intent:
    """What a push asks for."""

    target: str = "octo/compiler"
    head: str = "2" * 40
    base: str = "1" * 40
    ref: str = "refs/heads/main"
    trigger: str = "push"
    pull: int | None = None
    requested_by: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)
    delivery: str = "d-1"


@dataclass(frozen=True)
class PlainReduction:
    budget: float = 60.0
    cases: int = 0


@dataclass(frozen=True)
class PlainConfig:
    backend: str = "standin"
    sources: tuple[str, ...] = ("standin-tests",)
    budget: float = 300.0
    branches: tuple[str, ...] | None = None
    device: str = "CPU"
    options: dict[str, str] = field(default_factory=dict)
    profile: str = "default"
    repeats: int = 3
    frontend: str | None = None
    strategy: str | None = None
    reduction: PlainReduction = PlainReduction()

    def with_overrides(self, changes: Mapping[str, Any]) -> PlainConfig:
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> PlainConfig:
        tuples = {key: tuple(value) for key, value in obj.items() if isinstance(value, list)}
        reduction = PlainReduction(**obj.get("reduction", {}))
        return cls(**(obj | tuples | {"reduction": reduction}))


def parse_config(text: bytes, name: str) -> PlainConfig:
    try:
        return PlainConfig.from_json(json.loads(text))
    except TypeError as error:
        raise ConfigError(f"{name}: {error}", key="budgte", line=3) from None


def to_bytes(config: PlainConfig) -> bytes:
    """The configuration as `parse_config` reads it."""
    return json.dumps(config.to_json()).encode()


def own_config(read: ReadFile) -> PlainConfig | None:
    text = read(CONFIG)
    return None if text is None else parse_config(text, CONFIG)


def config_of(read: ReadFile) -> PlainConfig | None:
    own = own_config(read)
    return own if own is not None or read(PIN) is None else PlainConfig()


@dataclass
class Repositories:
    """Commit → path → content; a commit of one digit repeated pins that release."""

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    default: str = "main"
    problem: Exception | None = None
    of_forks: set[str] = field(default_factory=set)  # commits on no branch

    def read(self, target: str, sha: str, path: str) -> bytes | None:
        if sha in self.files:
            return self.files[sha].get(path)
        return b"standin==" + sha[:1].encode() if path == PIN else None

    def is_on_branch(self, target: str, commit: str) -> bool:
        return commit not in self.of_forks

    def merge_base(self, target: str, base: str, head: str) -> str:
        return "" if {base, head} & self.of_forks else base

    def default_branch(self, target: str) -> str:
        return self.default

    def changed_files(self, target: str, base: str, head: str) -> Sequence[str]:
        return ("op.cc",)

    def commits(self, target: str, base: str, head: str, paths: Sequence[str]) -> Sequence[str]:
        shas = list(self.files)
        return shas[shas.index(base) + 1 : shas.index(head) + 1]

    def change(self, target: str, base: str, head: str) -> dict[str, Any]:
        if self.problem is not None:
            raise self.problem
        file = {"path": "op.cc", "old_path": None, "old": base, "new": head, "hunks": [[1, 1, 1, 1]]}
        return {"base": base, "head": head, "files": [file | {"binary": False}], "truncated": False}


@dataclass(frozen=True)
class PlainSpec:
    label: str
    provisioner: str = "standin"
    backend: str = "standin"
    overlay: tuple[Folder, ...] = ()
    commit: object = None
    predates: str = ""

    @property
    def digest(self) -> str:
        return digest_of(self.label.removeprefix("standin=="))

    def candidates(self) -> Iterator[PlainSpec]:
        yield self

    def like(self, other: object) -> PlainSpec:
        return self

    def is_out_of_reach(self, path: str) -> bool:
        return False


@dataclass(frozen=True)
class PlainReady:
    spec: PlainSpec
    digest: str
    python: str
    versions: dict[str, str]
    requirements: tuple[str, ...]
    passed_over: tuple[str, ...] = ()


def resolve(config: Any, read: ReadFile) -> PlainSpec:
    pin = read(PIN)
    if pin is None:
        raise ConfigError(f"{PIN} pins no standin")
    return PlainSpec(pin.decode())


def digest_of(release: str) -> str:
    return hashlib.sha256(f"standin=={release}".encode()).hexdigest()


def provision(spec: Any, data_dir: Path, progress: Callable[[str], None]) -> PlainReady:
    progress(f"installing {spec.label}")
    release = spec.label.removeprefix("standin==")
    return PlainReady(spec, digest_of(release), f"/toolchains/{release}", {"standin": release}, (spec.label,))


@dataclass(frozen=True)
class PlainShard:
    config: Any
    corpus: str
    cases: tuple[str, ...]
    backend: str
    toolchain: str
    python: str
    device: str
    profile: str
    options: dict[str, str]
    workers: int
    fresh: bool
    repeats: int
    ablate: bool
    budget_s: float | None
    forked: bool = False
    unforked: tuple[str, ...] = ()
    limit_factor: float = 1.0

    def to_json(self) -> dict[str, Any]:
        return {"corpus": self.corpus, "cases": list(self.cases), "toolchain": self.toolchain}


def case_of(test: str) -> TestCase:
    origin = Provenance("standin-tests", test, test.split("_")[0], "standin", "1.0")
    return TestCase(OnnxModel(test.encode()), (), origin)


IDS = {test: case_of(test).id for test in TESTS}
NAMES = {case_id: test for test, case_id in IDS.items()}

#: Tests that a reduction leaves, and how they behave; their cases are in no plan.
SMALL: dict[str, tuple[Behavior, Behavior]] = {
    "Add_small": (("pass",), ("crash",)),
    "Conv_small": (("wrong_result",), ("wrong_result",)),  # broken at base too: another bug
    "Div_small": (("crash",), ("crash",)),
    "Sub_other": (("pass",), ("crash",)),  # met on the way from Add_regressed
    "Sub_small": (("pass",), ("crash",)),
}
SMALL_IDS = {test: case_of(test).id for test in SMALL}
NAMES |= {case_id: test for test, case_id in SMALL_IDS.items()}

#: Test → what it is reduced to, and what is met on the way; of others the reducer says that they cannot be.
REDUCED: dict[str, tuple[str, tuple[str, ...]]] = {
    "Add_regressed": ("Add_small", ("Sub_other",)),
    "Conv_regressed_wrong": ("Conv_small", ()),
    "Div_already_broken": ("Div_small", ()),
    "Sub_other": ("Sub_small", ()),
}
#: Of which the reducer itself dies.
DEADLY = "Cos_regressed_hang"


def write_corpus(root: Path) -> None:
    corpus = Corpus(root)
    for test in TESTS:
        corpus.add(case_of(test))


def outcome_of(
    case_id: str,
    toolchain: str,
    run: int,
    backend: str = "standin",
    device: str = "CPU",
    *,
    replaced: Mapping[str, tuple[Behavior, Behavior]] | None = None,
) -> Outcome:
    """What the case's `run`-th run gives there; run 0 is the ordinary one. `replaced` goes before `TESTS`."""
    test = NAMES[case_id]
    behavior = (TESTS | SMALL | dict(replaced or {}))[test][0 if toolchain == digest_of("1") else 1]
    verdict = Verdict(behavior[min(run, len(behavior) - 1)])
    evidence = (
        Evidence() if verdict is Verdict.PASS else Evidence(error="RuntimeError", message=f"{test} fails")
    )
    return Outcome(
        case=case_id,
        backend=backend,
        toolchain=toolchain,
        device=device,
        verdict=verdict,
        phase=Phase.RUN if verdict in (Verdict.PASS, Verdict.WRONG_RESULT) else Phase.COMPILE,
        summary=f"{test}: {verdict.value}",
        durations={"compile": 0.25},
        evidence=evidence,
    )


class Runner:
    """Runs shards in no time; a case costs `seconds` of `clock` if one is given.

    `replaced` says what single tests do otherwise than in `TESTS`.
    """

    def __init__(
        self,
        clock: ManualClock | None = None,
        seconds: float = 0.0,
        replaced: Mapping[str, tuple[Behavior, Behavior]] | None = None,
    ) -> None:
        self.clock, self.seconds, self.replaced = clock, seconds, replaced
        self.shards: list[PlainShard] = []
        self.before: Callable[[str, threading.Event], None] | None = None

    def run(self, shard: PlainShard, on_event: OnEvent, stop: threading.Event) -> None:
        self.shards.append(shard)
        sent, spent = 0, 0.0
        on_event({"event": "start", "versions": {"standin": "1"}, "cases": len(shard.cases)})
        for case_id in shard.cases:
            for number in range(shard.repeats):
                if self.before is not None:
                    self.before(case_id, stop)
                if stop.is_set():
                    return
                if shard.budget_s is not None and spent >= shard.budget_s:
                    on_event({"event": "end", "outcomes": sent, "stopped": "budget"})
                    return
                run = number + 1 if shard.fresh else 0
                made_for = (case_id, shard.toolchain, run, shard.backend, shard.device)
                outcome = outcome_of(*made_for, replaced=self.replaced)
                named = format_configuration(shard.options, shard.profile)
                outcome = replace(outcome, configuration=named)
                if self.clock is not None:
                    self.clock.advance(self.seconds)
                spent += self.seconds
                on_event({"event": "outcome", "repeat": number, "outcome": outcome.to_json()})
                sent += 1
        end = {"outcomes": sent, "seconds": 2.0, "busy": 1.5, "respawns": 1, "phases": {"compile": 1.25}}
        on_event({"event": "end", "stopped": "", "cached": {"references": 3}, **end})

    @property
    def executed(self) -> int:
        """Cases asked for, over all shards."""
        return sum(len(shard.cases) * shard.repeats for shard in self.shards)


class Tools:
    """`fuzzing.migrate`, `fuzzing.prioritize`, `fuzzing.reduce` and `fuzzing.triage.program_text`.

    A reduction costs `seconds` of `clock`, if one is given.
    """

    def __init__(self, clock: ManualClock | None = None, seconds: float = 0.0) -> None:
        self.clock, self.seconds = clock, seconds
        self.calls: list[str] = []
        self.batches: list[list[str]] = []  # the tests given to each reducer
        self.beside: dict[str, str | None] = {}  # test → the toolchain it must pass on while it is reduced
        self.reduced: list[str] = []  # tests, in the order in which they were to be reduced
        self.asked: list[dict[str, str]] = []  # of rankings: option → value
        self.order: Callable[[list[str]], list[str]] = list
        self.touched: list[dict[str, Any]] = []

    def __call__(self, module: str, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
        self.calls.append(module)
        if module == "fuzzing.migrate":
            self.migrate(args, on_event, stop)
        elif module == "fuzzing.prioritize":
            self.rank(args, on_event, stop)
        elif module == "fuzzing.reduce":
            self.reduce_all(args, on_event, stop)
        elif module == "fuzzing.triage.program_text":
            assert args[0] == "--corpus"
            for case_id in args[2:]:
                if case_id != "--traits":
                    traits = read_traits(NAMES[case_id])
                    on_event({"id": case_id, "program": f"program of {NAMES[case_id]}", "traits": traits})

    def reduce_all(self, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
        shard = json.loads(Path(args[0]).read_bytes())
        given = list(zip(args[1::2], args[2::2], strict=True))
        named = dict(given)
        beside = json.loads(Path(named["--passes"]).read_bytes()) if "--passes" in named else {}
        assert [name for name, _ in given].count("--journal") == len(shard["cases"])
        self.batches.append([NAMES[case] for case in shard["cases"]])
        spent = 0.0
        for case in shard["cases"]:
            if stop.is_set() or spent >= float(named["--within"]):
                return
            self.beside[NAMES[case]] = beside.get("toolchain")
            on_event({"event": "begin", "case": case})
            try:
                self.reduce(shard | {"case": case}, on_event)
            except UsageError as error:
                on_event({"event": "unreducible", "case": case, "reason": str(error)})
            spent += self.seconds
            if self.clock is not None:
                self.clock.advance(self.seconds)

    def reduce(self, shard: dict[str, Any], on_event: OnEvent) -> None:
        test = NAMES[shard["case"]]
        self.reduced.append(test)
        if test == DEADLY:
            raise RunnerError("fuzzing.reduce was killed by SIGSEGV and logged nothing")
        if test not in REDUCED:
            raise UsageError(f"{test} cannot be reduced")
        small, others = REDUCED[test]
        for name in (small, *others):
            Corpus(shard["corpus"]).add(case_of(name))
        on_event({"event": "step", "run": 3, "by": "nodes", "size": [1, 2]})
        for name in others:
            on_event({"event": "other", "id": SMALL_IDS[name]})
        outcome = outcome_of(SMALL_IDS[small], shard["toolchain"], 1).to_json()
        end = {
            "id": SMALL_IDS[small],
            "from": shard["case"],
            "outcome": outcome,
            "traits": read_traits(small),
        }
        sizes = {"before": [7, 12], "after": [1, 2], "words": ["operators", "edges used"]}
        counts = {"runs": 9, "replayed": 0, "seconds": 1.5, "minimal": True, "confirmed": True}
        on_event({"event": "end", **end, **sizes, **counts})

    def migrate(self, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
        for test, case_id in IDS.items():
            on_event({"event": "case", "id": case_id, "test": test, "operator": test.split("_")[0]})
        on_event({"event": "case", "id": IDS["Abs_fine"], "test": "again", "operator": "Abs"})
        end = {"cases": len(IDS) + 1, "new": 0, "skipped": {"no values": 2}}
        on_event({"event": "end", "library": "standin", "version": "1.0", **end})

    def rank(self, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
        self.asked.append(dict(zip(args[::2], args[1::2], strict=True)))
        for told in self.touched:
            on_event({"event": "touched", **told})
        for case_id in self.order(catalogued_ids(args)):
            on_event({"event": "ranked", "id": case_id})
        on_event({"event": "end", "cases": len(IDS), "strategy": args[1], "seconds": 0.5})


def catalogued_ids(args: Sequence[str]) -> list[str]:
    """The ids in the catalogs that a ranking is given, each once."""
    paths = [Path(value) for name, value in pairwise(args) if name == "--catalog"]
    lines = (json.loads(line) for path in paths for line in path.read_text().splitlines())
    return list(dict.fromkeys(line["id"] for line in lines if "id" in line))


def read_traits(test: str) -> dict[str, Any]:
    operator = test.split("_")[0]
    return {"pattern": operator, "dtypes": ["float"], "needs": [], "operators": [operator]}


def sign(outcome: Outcome, operator: str, frontend: str, reduced: Traits | None = None) -> Signature:
    text = f"{outcome.verdict.value} {outcome.phase.value} {operator}"
    fields: dict[str, Any] = {
        "verdict": outcome.verdict.value, "phase": outcome.phase.value, "operator": operator, "complaint": "",
    }  # fmt: skip
    if reduced is not None:
        text += " reduced"
        fields |= {"operator": reduced.pattern, "dtypes": list(reduced.dtypes), "needs": list(reduced.needs)}
    return Signature(hashlib.sha256(text.encode()).hexdigest()[:16], text, fields)


class Reports:
    """Writes one effect a campaign and one a regression; a plain insert, so doing it twice would fail."""

    def __init__(self) -> None:
        self.written: list[Summary] = []
        self.published: list[Summary] = []
        self.troubles: list[CampaignProblem] = []

    def scripts(self, summary: Summary) -> list[list[Script]]:
        return [
            [Script(one.reduced.case_id if one.reduced else one.case_id, "script")]
            for one in summary.classification(Classification.REGRESSION)
        ]

    def write(self, summary: Summary) -> None:
        self.written.append(summary)

    def publish(self, session: Session, summary: Summary) -> None:
        self.published.append(summary)
        text = {side.value: {v.value: n for v, n in by.items()} for side, by in summary.counts.items()}
        _effect(session, "check_run", summary.target, summary.campaign_id, summary.head, text)
        for key in sorted({one.signature for one in summary.classification(Classification.REGRESSION)}):
            _effect(session, "issue", summary.target, summary.campaign_id, key, {"signature": key})

    def publish_problem(self, session: Session, problem: CampaignProblem) -> None:
        self.troubles.append(problem)
        payload = {"conclusion": "neutral", "kind": problem.kind, "reason": problem.reason}
        _effect(session, "check_run", problem.target, problem.campaign_id, problem.head, payload)


def _effect(
    session: Session, kind: str, target: str, campaign_id: int, what: str, payload: dict[str, Any]
) -> None:
    session.add(
        Effect(
            key=f"{kind}-{campaign_id}-{what[:16]}",
            kind=kind,
            target=target,
            campaign_id=campaign_id,
            payload=payload,
            created_at=datetime.now(UTC),
        )
    )
    session.flush()


class ManualClock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        return self._seconds

    def advance(self, seconds: float) -> None:
        self._seconds += seconds


@dataclass(frozen=True)
class PlainSettings:
    data_dir: Path
    workers: int = 2


def services(**replaced: Any) -> Services:
    """Stand-ins for everything; keyword arguments replace single ones."""
    fields: dict[str, Any] = {
        "repositories": Repositories(),
        "config_of": config_of,
        "own_config": own_config,
        "restore_config": PlainConfig.from_json,
        "resolve": resolve,
        "provision": provision,
        "unreachable_sources": lambda _spec, _base: UnreachableSources(),
        "make_shard": PlainShard,
        "runner": Runner(),
        "try_script": lambda text, python, ending="": 1,
        "proposal_fork": lambda _target: "",
        "run_tool": Tools(),
        "run_test": lambda *_: pytest.fail("campaigns run no tests of a repository"),
        "sign": sign,
        "reports": Reports(),
        "catalogs": open_catalogs,
    }
    return Services(**(fields | replaced))
