"""A compiler that costs nothing: releases that are never installed, and cases that do as they are told.

Everything of Assay around it is the real thing. What a case does depends on the release its toolchain was
made of, so that a change of one line in requirements.txt makes things regress, and another mends them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.campaigns.services import OnEvent
from bot.toolchains import Ready, Spec
from fuzzing.execute.shard import Shard
from fuzzing.oracles.profiles import configuration
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict
from tests.bot.campaigns import standins

GOOD, BAD, OTHER = "2024.0.0", "2026.4.1", "2025.4.0"
#: What cases do on the release that is not good: test → verdict; the others pass.
BROKEN = {
    BAD: {"Add_regressed": "crash", "Conv_regressed_wrong": "wrong_result", "Div_already_broken": "crash"},
    OTHER: {"Conv_regressed_wrong": "wrong_result", "Div_already_broken": "crash"},
    GOOD: {"Div_already_broken": "crash"},
}

CONFIG = """\
version: 1
backend: openvino
sources: [onnx-node-tests]
budget: 1m
repeats: 2
reduction:
  cases: 0
reports:
  mode: {mode}
  issues_per_day: 5
  bisect: asked
"""


def files(release: str, mode: str = "auto", **more: str) -> dict[str, str | None]:
    """The files of a repository that pins a release."""
    config = CONFIG.format(mode=mode)
    return {".github/assay.yml": config, "requirements.txt": f"openvino=={release}\n", **more}


def provision(spec: Spec, data_dir: Path, progress: Callable[[str], None]) -> Ready:
    """A toolchain in name only."""
    progress(f"installing {spec.label}")
    release = spec.label.rpartition(" ")[2].rpartition("=")[2]
    assert release in BROKEN, spec.label
    versions = {"openvino": release, "python": "3.11.7"}
    return Ready(
        spec, standins.digest_of(release), "/nowhere/bin/python", versions, (f"openvino=={release}",)
    )


class Runner:
    """Runs shards; each case takes `seconds`."""

    def __init__(self, seconds: float = 0.002) -> None:
        self._seconds = seconds
        self._releases = {standins.digest_of(release): release for release in BROKEN}

    def run(self, shard: Shard, on_event: OnEvent, stop: threading.Event) -> None:
        """As `bot.runners` do."""
        release, sent = self._releases[shard.toolchain], 0
        versions = {"openvino": release}
        on_event({"event": "start", "cases": len(shard.cases), "versions": versions})
        for case_id in shard.cases:
            for number in range(shard.repeats):
                if stop.is_set():
                    return
                time.sleep(self._seconds)
                outcome = self._outcome(shard, case_id, release)
                on_event({"event": "outcome", "repeat": number, "outcome": outcome.to_json()})
                sent += 1
        figures = {"seconds": 0.1, "busy": 0.1, "respawns": 0, "phases": {}, "cached": {}}
        on_event({"event": "end", "outcomes": sent, "stopped": "", "versions": versions, **figures})

    def _outcome(self, shard: Shard, case_id: str, release: str) -> Outcome:
        test = standins.NAMES[case_id]
        verdict = Verdict(BROKEN[release].get(test, "pass"))
        wrong = verdict is not Verdict.PASS
        outcome = Outcome(
            case=case_id,
            backend=shard.backend,
            toolchain=shard.toolchain,
            device=shard.device,
            verdict=verdict,
            phase=Phase.COMPILE if verdict is Verdict.CRASH else Phase.RUN,
            summary=f"{test}: {verdict.value}",
            durations={"compile": 0.01},
            evidence=Evidence(error="RuntimeError", message=f"{test} fails") if wrong else Evidence(),
        )
        return replace(outcome, configuration=configuration(dict(shard.options), shard.profile))


class Tools(standins.Tools):
    """The data plane's programs, without processes."""

    def __call__(self, module: str, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
        """Runs one; there are no others than these."""
        assert module in ("fuzzing.migrate", "fuzzing.prioritize", "fuzzing.triage.describe"), module
        super().__call__(module, args, on_event, stop)


def replaced(data_dir: Path) -> dict[str, Any]:
    """The fields of `bot.campaigns.services.Services` that this stands in for; the cases are written too."""
    standins.write_corpus(data_dir / "corpus")
    return {"provision": provision, "runner": Runner(), "run_tool": Tools()}
