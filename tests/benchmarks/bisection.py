"""Bisection: compares `assay bisect` with a scan of all releases, for ten old bugs of OpenVINO.

    python -m tests.benchmarks bisection [--scan TEST,TEST,…]

`assay bisect` runs each case of bisection_data/openvino.json over all releases of its range. It must name the
release in the file; the case is then run again on that release and the one before it. --scan instead runs the
named tests on every release and prints the results in the format of the file. Needs the package index and
about 200 MB per release; ASSAY_DATA_DIR keeps them. Each run uses a fresh process, since some of these tests
crash others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

from bot.bisection.releases import Range, releases
from bot.bisection.search import max_probed
from bot.errors import ProvisionError
from bot.runners import LocalRunner
from bot.toolchains import ReadyToolchain, ToolchainSpec, provision
from bot.toolchains.installer import Installer
from fuzzing import backends
from fuzzing.cases import Corpus
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome
from fuzzing.reduce.symptom_check import symptom_of
from tests.benchmarks._common import machine, verdict

DATA = Path(__file__).parent / "bisection_data" / "openvino.json"
WHOLE = Range.parse("openvino:2023.0..2026.4")
BAR = (
    "10 real old bugs named right, with at most ceil(log2 n) + 2 releases tried where none had to be skipped"
)
_CLEAN = {"since": ("pass", "unsupported"), "fixed by": ("pass",)}


def main(argv: Sequence[str]) -> int:
    """Runs the benchmark; 1 if the bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks bisection")
    parser.add_argument("--scan", default="", help="tests to run on every release, with commas between")
    given = parser.parse_args(argv)
    with _data_dir() as data_dir:
        tests = _collected(data_dir)
        if given.scan:
            return _scan(data_dir, {name: tests[name] for name in given.scan.split(",")})
        return _bisect_all(data_dir, tests)


@contextmanager
def _data_dir() -> Iterator[Path]:
    if os.environ.get("ASSAY_DATA_DIR"):
        yield Path(os.environ["ASSAY_DATA_DIR"]).absolute()
        return
    with tempfile.TemporaryDirectory(prefix="assay-bisection-") as folder:
        yield Path(folder)


def _collected(data_dir: Path) -> dict[str, str]:
    """Name → id of ONNX's node tests; collects them into an empty corpus."""
    corpus = Corpus(data_dir / "corpus")
    if next(corpus.ids(), None) is None:
        command = [sys.executable, "-m", "fuzzing.migrate", "onnx-node-tests", "--corpus", str(corpus.root)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    cases = map(corpus.get, corpus.ids())
    return {case.provenance.test: case.id for case in cases}


def _scan(data_dir: Path, tests: dict[str, str]) -> int:
    """Prints the verdict of each test on consecutive releases, with a number for each distinct failure."""
    found = releases(WHOLE, Installer(data_dir), data_dir / "bisections" / "releases")
    did: dict[str, list[str]] = {name: [] for name in tests}
    seen: dict[str, list[dict[str, Any]]] = {name: [] for name in tests}
    for release in found:
        outcomes = _outcomes(data_dir, release, tuple(tests.values()))
        for name, case_id in tests.items():
            did[name].append(_label(outcomes.get(case_id), seen[name]))
        print(f"{release}: {len(outcomes)} of {len(tests)} tests run", file=sys.stderr, flush=True)
    lengths = {name: [(label, len(list(run))) for label, run in groupby(row)] for name, row in did.items()}
    print(json.dumps({"releases": found, "did": lengths}))
    return 0


def _label(outcome: Outcome | None, seen: list[dict[str, Any]]) -> str:
    """A verdict and the number of its symptom, such as "crash 1"; "" if not run."""
    if outcome is None:
        return ""
    if not outcome.verdict.is_failure:
        return outcome.verdict.value
    found = symptom_of(outcome)
    if found not in seen:
        seen.append(found)
    return f"{outcome.verdict.value} {seen.index(found) + 1}"


def _outcomes(data_dir: Path, release: str, cases: tuple[str, ...]) -> dict[str, Outcome]:
    """Outcomes on a release by case id; empty if it cannot be installed."""
    adapter = backends.get("openvino")
    spec = ToolchainSpec("release", "openvino", tuple(adapter.requirements(release)), f"openvino {release}")
    try:
        toolchain = provision(spec, data_dir, lambda _line: None)
    except ProvisionError as error:
        print(error, file=sys.stderr)
        return {}
    return _run(data_dir, toolchain, cases)


def _run(data_dir: Path, toolchain: ReadyToolchain, cases: tuple[str, ...]) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}

    def take(event: dict[str, Any]) -> None:
        if event["event"] == "outcome":
            outcome = Outcome.from_json(event["outcome"])
            outcomes[outcome.case] = outcome

    shard = Shard(
        corpus=str(data_dir / "corpus"),
        cases=cases,
        backend="openvino",
        toolchain=toolchain.digest,
        python=toolchain.python,
        fresh=True,
    )
    LocalRunner(1).run(shard, take, threading.Event())
    return outcomes


def _bisect_all(data_dir: Path, tests: dict[str, str]) -> int:
    print(machine())
    cases = json.loads(DATA.read_bytes())["cases"]
    right = beyond = 0
    for case in cases:
        reported = _bisected(data_dir, tests[case["test"]], case)
        named = (reported["before"], reported["release"]) == (case["before"], case["release"])
        verified = named and _holds(data_dir, tests[case["test"]], case)
        skipped = sum(row["judgement"] == "skipped" for row in reported["probed"])
        right += verified
        beyond += reported["cost"]["probes"] > max_probed(reported["releases"]) and not skipped
        print(
            f"{'right' if verified else 'WRONG'}  {case['test']}: {case['asked']} {reported['release']}, "
            f"{_cost(reported)}"
        )
        print(
            f"       at most {max_probed(reported['releases'])} if none is skipped; {skipped} skipped",
            flush=True,
        )
    print(f"named right and verified: {right} of {len(cases)}; beyond the bound without a skip: {beyond}")
    return verdict(right == len(cases) >= 10 and not beyond, BAR)


def _cost(reported: dict[str, Any]) -> str:
    cost = reported["cost"]
    return (
        f"{reported['kind']}, confidence {reported['confidence']:.4f}; "
        f"tried {cost['probes']} of {reported['releases']}: "
        f"{cost['runs']} runs, {cost['replayed']} known from before, {cost['seconds']:.0f} s"
    )


def _bisected(data_dir: Path, case_id: str, case: dict[str, Any]) -> dict[str, Any]:
    command = [
        sys.executable,
        "-P",
        "-m",
        "bot.cli",
        "bisect",
        case_id,
        "--releases",
        case["range"],
        "--json",
    ]
    command += ["--fixed-by"] if case["asked"] == "fixed by" else []
    environment = os.environ | {"ASSAY_DATA_DIR": str(data_dir)}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    reported: dict[str, Any] = json.loads(done.stdout)
    return reported


def _holds(data_dir: Path, case_id: str, case: dict[str, Any]) -> bool:
    """Whether both releases give the results in the file when run again."""
    fails = {"since": "release", "fixed by": "before"}[case["asked"]]
    did = {which: _outcomes(data_dir, case[which], (case_id,)) for which in ("before", "release")}
    return all(
        did[which][case_id].verdict.is_failure
        if which == fails
        else did[which][case_id].verdict.value in _CLEAN[case["asked"]]
        for which in did
    )
