"""A compiler that costs nothing: releases that are never installed, and cases that do as they are told.

Everything of Assay around it is the real thing. What a case does depends on the release its toolchain was
made of, so that a change of one line in requirements.txt makes things regress, and another mends them.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from packaging.version import Version

from bot.bisection.releases import Range, releases
from bot.bugs.release_bisection import YEARS
from bot.runners.protocol import OnEvent
from bot.runners.repository_test import RunResult
from bot.toolchains import ReadyToolchain, ToolchainSpec
from fuzzing.cases import Corpus, Tensor
from fuzzing.cases.values import value_to_json
from fuzzing.execute.limits import Limits
from fuzzing.execute.reference_runner import ReferenceRunner
from fuzzing.execute.shard import Shard
from fuzzing.oracles.tolerance_profiles import format_configuration
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict
from tests.bot.campaigns import fakes

GOOD, BAD, OTHER = "2024.0.0", "2026.4.1", "2025.4.0"
_ALWAYS = {"Div_already_broken": "crash", "Div_small": "crash"}
_SINCE_OTHER = {
    "Conv_regressed_wrong": "wrong_result",
    "Conv_small": "wrong_result",
    "Sub_other": "crash",
    "Sub_small": "crash",
}
#: What cases do on the release that is not good: test → verdict; the others pass.
BROKEN = {
    BAD: {"Add_regressed": "crash", "Add_small": "crash", **_SINCE_OTHER, **_ALWAYS},
    OTHER: {**_SINCE_OTHER, **_ALWAYS},
    GOOD: _ALWAYS,
}
#: Test → what it is reduced to, and what is met on the way. Others cannot be reduced.
REDUCED: dict[str, tuple[str, tuple[str, ...]]] = {
    "Add_regressed": ("Add_small", ()),
    "Conv_regressed_wrong": ("Conv_small", ("Sub_other",)),
    "Div_already_broken": ("Div_small", ()),
    "Sub_other": ("Sub_small", ()),
}
#: Sizes that a reduction goes through, each after so many seconds.
STEPS, STEP_S = 4, 0.05

CONFIG = """\
version: 1
backend: openvino
sources: [onnx-node-tests]
budget: 1m
repeats: 2
reduction:
  cases: {cases}
reports:
  mode: {mode}
  issues_per_day: 5
  bisect: {bisect}
"""


def configured(mode: str = "auto", *, cases: int = 0, bisect: str = "manual") -> str:
    """A configuration; `cases` are made small at most."""
    return CONFIG.format(mode=mode, cases=cases, bisect=bisect)


def files(release: str, config: str, **more: str) -> dict[str, str | None]:
    """The files of a repository that pins a release."""
    return {".github/assay.yml": config, "requirements.txt": f"openvino=={release}\n", **more}


#: While there is such a file in a service's data folder, no toolchain gets ready. Cases may be known already.
BLOCK_FILE = "held"


def provision(spec: ToolchainSpec, data_dir: Path, progress: Callable[[str], None]) -> ReadyToolchain:
    """A toolchain in name only."""
    progress(f"installing {spec.label}")
    while (data_dir / BLOCK_FILE).exists():
        time.sleep(STEP_S)
    release = spec.label.rpartition(" ")[2].rpartition("=")[2]
    assert release in BROKEN, spec.label
    versions = {"openvino": release, "python": "3.11.7"}
    return ReadyToolchain(
        spec, fakes.digest_of(release), f"/nowhere/{release}/bin/python", versions, (f"openvino=={release}",)
    )


#: The code of every case's model.
MODEL = '''model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
g (float[2] x) => (float[2] y) { y = Relu(x) }""")'''


class Runner:
    """Runs shards; each case takes `seconds`."""

    def __init__(self, seconds: float = 0.002) -> None:
        self._seconds = seconds
        self._releases = {fakes.digest_of(release): release for release in BROKEN}

    def run(self, shard: Shard, on_event: OnEvent, stop: threading.Event) -> None:
        """As `bot.runners` do."""
        sent, versions = 0, {"openvino": self._releases[shard.toolchain]}
        on_event({"event": "start", "cases": len(shard.cases), "versions": versions})
        for case_id in shard.cases:
            for number in range(shard.repeats):
                if stop.is_set():
                    return
                time.sleep(self._seconds)
                outcome = self.outcome(shard, case_id)
                on_event({"event": "outcome", "repeat": number, "outcome": outcome.to_json()})
                sent += 1
        figures = {"seconds": 0.1, "busy": 0.1, "respawns": 0, "phases": {}, "cached": {}}
        on_event({"event": "end", "outcomes": sent, "stopped": "", "versions": versions, **figures})

    def outcome(self, shard: Shard, case_id: str) -> Outcome:
        """What a case does on a shard's toolchain."""
        test = fakes.NAMES[case_id]
        verdict = Verdict(BROKEN[self._releases[shard.toolchain]].get(test, "pass"))
        wrong = verdict is not Verdict.PASS
        message = f"{test.partition('_')[0]} fails"
        outcome = Outcome(
            case=case_id,
            backend=shard.backend,
            toolchain=shard.toolchain,
            device=shard.device,
            verdict=verdict,
            phase=Phase.COMPILE if verdict is Verdict.CRASH else Phase.RUN,
            summary=f"{test}: {verdict.value}",
            durations={"compile": 0.01},
            evidence=Evidence(error="RuntimeError", message=message) if wrong else Evidence(),
        )
        return replace(outcome, configuration=format_configuration(dict(shard.options), shard.profile))


class Tools(fakes.Tools):
    """The data plane's programs, without processes."""

    def __init__(self, runner: Runner) -> None:
        super().__init__()
        self._runner = runner

    def __call__(self, module: str, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
        """Runs one; there are no others than these."""
        if module == "fuzzing.reduce":
            shard = Shard.read(Path(args[0]))
            for case in shard.cases:
                if not stop.is_set():
                    self._reduce(replace(shard, cases=(case,)), on_event, stop)
        elif "--outline" in args:
            for case_id in args[args.index("--outline") + 1 :]:
                on_event({"id": case_id, "program": "a program", "code": MODEL})
        elif module == "fuzzing.localize":
            fact = {"what": "converter", "found": ["convert"], "how": "traced", "confirmed": True}
            on_event({"event": "fact", **fact})
            on_event({"event": "end", "runs": 1})
        else:
            assert module in ("fuzzing.migrate", "fuzzing.prioritize", "fuzzing.triage.program_text"), module
            super().__call__(module, args, on_event, stop)

    def _reduce(self, shard: Shard, on_event: OnEvent, stop: threading.Event) -> None:
        test = fakes.NAMES[shard.case]
        on_event({"event": "begin", "case": shard.case})
        if test not in REDUCED:
            on_event({"event": "unreducible", "case": shard.case, "reason": f"{test} cannot be reduced"})
            return
        small, others = REDUCED[test]
        for step in range(STEPS):
            if stop.wait(STEP_S):
                return
            on_event({"event": "step", "run": step, "by": "nodes", "size": [STEPS - step, 2]})
        for name in (small, *others):
            Corpus(Path(shard.corpus)).add(fakes.case_of(name))
        for name in others:
            on_event({"event": "other", "id": fakes.SMALL_IDS[name]})
        outcome = self._runner.outcome(shard, fakes.SMALL_IDS[small])
        end = {"id": outcome.case, "from": shard.case, "outcome": outcome.to_json()}
        sizes = {"before": [7, 12], "after": [1, 2], "words": ["operators", "edges used"]}
        counts = {"runs": 9, "replayed": 0, "seconds": 1.5, "minimal": True, "confirmed": True}
        on_event({"event": "end", **end, "traits": fakes.read_traits(small), **sizes, **counts})


def fake_services(data_dir: Path) -> dict[str, Any]:
    """The fields of `bot.campaigns.services.Services` that this stands in for; the cases are written too."""
    fakes.write_corpus(data_dir / "corpus")
    _store_references(data_dir / "corpus")
    runner = Runner()
    return {
        "provision": provision,
        "runner": runner,
        "run_tool": Tools(runner),
        "try_script": _shows,
        "run_test": _run_test,
    }


def _store_references(corpus: Path) -> None:
    """Stores what the library gives for each case."""
    output = value_to_json(Tensor.of(np.ones(2, np.float32)))
    for test in fakes.TESTS:
        case = fakes.case_of(test)
        runner = ReferenceRunner(case.program.kind, corpus, sys.executable, Limits())
        runner.store(case, {"outputs": [["y", output]]})


def _run_test(
    python: str, files: Mapping[str, str], arguments: Sequence[str], _timeout_s: float
) -> RunResult:
    """A proposed test that passes on the good release only."""
    assert any(path in argument for path in files for argument in arguments)
    return RunResult(ran=True, passed=GOOD in python, seconds=0.1, output="")


def _shows(_text: str, _python: str, _ending: str = "") -> int:
    """A reproducer that shows its bug."""
    return 1


class _Index:
    """Who knows the releases of this compiler, oldest first."""

    def __init__(self, there: Sequence[str]) -> None:
        self._left = list(there)

    def lowest_release(self, python: Path, requirement: str, /) -> str | None:
        """The next one."""
        return self._left.pop(0) if self._left else None


def write_releases(data_dir: Path) -> None:
    """Has a service know the releases that its jobs look through, so that it asks no index."""
    folder = data_dir / "bisections"
    folder.mkdir(parents=True)
    known = sorted(BROKEN)
    for newest in known:
        for oldest in (str(int(newest[:4]) - YEARS), *known[: known.index(newest)]):
            wanted = Range.parse(f"openvino:{oldest}..{newest}")
            there = [one for one in known if Version(oldest) <= Version(one) <= Version(newest)]
            assert releases(wanted, _Index(there), folder / "releases") == tuple(there)
